// SPDX-License-Identifier: BSL-1.0
#include "chaos/stranger.hpp"

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

namespace holdfast::chaos {
namespace {

constexpr auto between_changes = std::chrono::milliseconds(100);
constexpr auto longest_answer = std::chrono::milliseconds(200);  // with a server that is stopped

}  // namespace

stranger::stranger(const std::string& history_path, std::string server, std::uint64_t seed)
    : log_(history_path), server_(std::move(server)), dice_(seed),
      thread_([this](const std::stop_token& end) { change(end); }) {}

void stranger::change(const std::stop_token& end) {
  std::optional<test::raw_client> connection;
  for (; !end.stop_requested(); std::this_thread::sleep_for(between_changes)) {
    try {
      if (!connection) connection.emplace(server_).patience = longest_answer;
      change_one(*connection);
    } catch (const std::exception&) {  // the server is away
      connection.reset();
    }
  }
}

void stranger::change_one(test::raw_client& server) {
  const auto kept = server("KEYS", std::string(kept_names) + "*").strings();
  if (kept.empty()) return;
  const auto& lock = kept[dice_.below(kept.size())];
  const auto since = now();
  const auto way = dice_.below(3);
  const auto made = way == 0 ? server("DEL", lock) : way == 1 ? server("UNLINK", lock) : server("PEXPIRE", lock, 0);
  if (!made.is_error() && made.integer() == 1) log_.write("changed").add("lock", lock).add("since", since);
}

}  // namespace holdfast::chaos
