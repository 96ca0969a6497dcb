// SPDX-License-Identifier: BSL-1.0
#include "chaos/permit_watch.hpp"

#include <optional>
#include <utility>

#include "support/raw_client.hpp"

namespace holdfast::chaos {
namespace {

constexpr auto between_looks = std::chrono::milliseconds(10);
constexpr auto patience = std::chrono::milliseconds(200);  // with a server that is stopped
// A missing counter is -1, a number that no semaphore has.
constexpr auto look = "return {tonumber(redis.call('get', KEYS[1]) or -1), redis.call('zcard', KEYS[2])}";

}  // namespace

permit_watch::permit_watch(const std::string& history_path, std::vector<std::string> servers, std::string semaphore,
                           long long total)
    : log_(history_path), servers_(std::move(servers)), semaphore_(std::move(semaphore)), total_(total),
      thread_([this](const std::stop_token& end) { watch(end); }) {}

void permit_watch::watch(const std::stop_token& end) {
  std::vector<std::optional<test::raw_client>> connections(servers_.size());
  long long looks = 0;
  const auto look_at = [&](const std::string& server, std::optional<test::raw_client>& connection) {
    if (!connection) connection.emplace(server).patience = patience;
    const auto permits = connection->call({"EVAL", look, "2", semaphore_, "{" + semaphore_ + "}:timeout"});
    if (permits.is_error()) return;  // a replica of a cluster, or a server whose slot moves
    const auto left = permits.array().at(0).integer(), out = permits.array().at(1).integer();
    if (left == -1) return;
    ++looks;
    if (left + out != total_) log_.write("sum").add("left", left).add("out", out);
  };
  for (std::size_t n = 0; !end.stop_requested(); std::this_thread::sleep_for(between_looks)) {
    try {
      look_at(servers_[n], connections[n]);
    } catch (const std::exception&) {  // the server is away, or its script was killed
      connections[n].reset();
    }
    n = (n + 1) % servers_.size();
  }
  log_.write("looks").add("number", looks);
}

}  // namespace holdfast::chaos
