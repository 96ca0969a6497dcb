// SPDX-License-Identifier: BSL-1.0
#include "chaos/permit_watch.hpp"

#include <optional>
#include <utility>

#include "support/raw_client.hpp"

namespace holdfast::chaos {
namespace {

constexpr auto between_looks = std::chrono::milliseconds(10);
// A missing counter is -1, a number that no semaphore has.
constexpr auto look = "return {tonumber(redis.call('get', KEYS[1]) or -1), redis.call('zcard', KEYS[2])}";

}  // namespace

permit_watch::permit_watch(const std::string& history_path, std::string server, std::string semaphore, long long total)
    : log_(history_path), server_(std::move(server)), semaphore_(std::move(semaphore)), total_(total),
      thread_([this](const std::stop_token& end) { watch(end); }) {}

void permit_watch::watch(const std::stop_token& end) {
  std::optional<test::raw_client> server;
  long long looks = 0;
  for (; !end.stop_requested(); std::this_thread::sleep_for(between_looks)) {
    try {
      if (!server) server.emplace(server_);
      const auto permits = (*server)("EVAL", look, 2, semaphore_, "{" + semaphore_ + "}:timeout").array();
      const auto left = permits.at(0).integer(), out = permits.at(1).integer();
      if (left == -1) continue;
      ++looks;
      if (left + out != total_) log_.write("sum").add("left", left).add("out", out);
    } catch (const std::exception&) {  // the server is away, or its script was killed
      server.reset();
    }
  }
  log_.write("looks").add("number", looks);
}

}  // namespace holdfast::chaos
