// SPDX-License-Identifier: BSL-1.0
#include "support/wait_for_servers.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto failover_limit = 40s;  // failovers of sanitizer builds on a busy machine
constexpr auto pause = 10ms;
constexpr std::size_t log_end = 3'000;

std::string ends_of_logs(const std::deque<real_redis>& servers) {
  std::string all;
  for (const auto& server : servers) {
    const auto log = server.log();
    all += "\n--- port " + std::to_string(server.port()) + (server.running() ? "" : ", dead") +
           (server.stopped() ? ", stopped" : "") + "\n" + log.substr(log.size() - std::min(log.size(), log_end));
  }
  return all;
}

}  // namespace

void wait_for_servers(const std::string& what, const std::deque<real_redis>& servers,
                      const std::function<bool()>& condition) {
  const auto deadline = steady_clock::now() + failover_limit;
  std::string last;
  for (;;) {
    try {
      last.clear();
      if (condition()) return;
    } catch (const std::exception& e) {
      last = e.what();
    }
    if (steady_clock::now() >= deadline)
      throw std::runtime_error("not in time: " + what + (last.empty() ? "" : " (" + last + ")") +
                               ends_of_logs(servers));
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace holdfast::test
