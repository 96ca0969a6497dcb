// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <ctime>
#include <utility>
#include <vector>

#include "bench/report.hpp"
#include "support/raw_client.hpp"

namespace holdfast::bench {

using clock = std::chrono::steady_clock;

inline double seconds_since(clock::time_point begun) {
  return std::chrono::duration<double>(clock::now() - begun).count();
}

/// Since the last lap.
inline double lap_us(clock::time_point& begun) {
  const auto now = clock::now();
  return std::chrono::duration<double, std::micro>(now - std::exchange(begun, now)).count();
}

using laps = std::vector<double>;  // of each pair, in us

/// CPU time that this process has used, in seconds: it says more than wall time on a busy machine.
inline double own_cpu() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// The same of the server.
inline double cpu_of(test::raw_client& server) {
  const auto info = server("INFO", "cpu").to_string();
  return number_in(info, "used_cpu_user") + number_in(info, "used_cpu_sys");
}

/// Scripts that the server was asked to run since the last CONFIG RESETSTAT: all lock commands are that.
inline long long scripts_run(test::raw_client& server) {
  const auto info = server("INFO", "commandstats").to_string();
  return calls_of(info, "evalsha") + calls_of(info, "eval");
}

/// The same with subscriptions: all that clients send who wait for locks.
inline long long commands_run(test::raw_client& server) {
  const auto info = server("INFO", "commandstats").to_string();
  long long all = 0;
  for (const auto* each : {"evalsha", "eval", "subscribe", "unsubscribe"}) all += calls_of(info, each);
  return all;
}

/// What a piece of work cost.
struct cost {
  double seconds = 0;     // wall time
  double client_cpu = 0;  // of this process
  double server_cpu = 0;
  long long scripts = 0;
};

/// What many pairs cost, all for one pair; CPU in us.
struct pair_cost {
  double p50_us = 0;  // wall time; 0 where pairs overlap
  double rate = 0;    // pairs a second
  double client_us = 0, server_us = 0;
};

inline pair_cost per_pair(const cost& all, long pairs, laps each = {}) {
  const auto n = static_cast<double>(pairs);
  return {each.empty() ? 0 : median(std::move(each)), n / all.seconds, all.client_cpu * 1e6 / n,
          all.server_cpu * 1e6 / n};
}

/// Measures from its construction to stop().
class meter {
 public:
  explicit meter(test::raw_client& server) : server_(server) { server_("CONFIG", "RESETSTAT"); }

  cost stop() {
    const auto wall = seconds_since(begun_);
    const auto client = own_cpu() - client_;
    return {wall, client, cpu_of(server_) - used_, scripts_run(server_)};
  }

 private:
  test::raw_client& server_;
  double used_ = cpu_of(server_), client_ = own_cpu();
  clock::time_point begun_ = clock::now();
};

/// Runs handlers until `done()` or the deadline; returns how long the longest took, in seconds of this thread's CPU
/// time.
template <class Done>
double run_handlers(boost::asio::io_context& io, Done done, clock::time_point deadline) {
  const auto now = [] {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
  };
  double longest = 0;
  for (auto before = now(); !done() && io.run_one_until(deadline) != 0;) {
    const auto after = now();
    longest = std::max(longest, after - before);
    before = after;
  }
  return longest;
}

}  // namespace holdfast::bench
