// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "timeline.hpp"

namespace holdfast::demo {

/// What one worker process is to do: goes through its command line. The URL, which may hold a password, goes through
/// its stdin.
struct job {
  enum class role {
    contend,  ///< `tasks` tasks increment the witness file `rounds` times each under the lock
    hold,     ///< `tasks` tasks take the lock and keep it until told
    guard,    ///< works inside with_lock until it is cancelled
  };

  role what = role::hold;
  std::string actor;   // its name in the timeline
  std::string prefix;  // of keys
  std::string lock;    // without it
  milliseconds ttl{30'000};
  int tasks = 1, rounds = 1;
  double drift = 0.01;
  std::string folder;
  bool pauses = false;      // its first task stays inside at first, until told
  bool fails_over = false;  // its server does: a grant needs a replica, and an unlock may be unconfirmed
  std::string url{};        // not in arguments(); empty: the stage's

  std::vector<std::string> arguments() const;
  static std::optional<job> parse(const std::vector<std::string>& arguments);
};

inline constexpr std::string_view worker_flag = "--worker";
inline constexpr std::string_view witness_name = "/witness";  // in job::folder

/// One line of a worker's stdout.
struct news {
  steady_clock::time_point at;
  std::string who;
  std::string event;   // one word: the director waits for it
  std::string text;    // for the reader; empty: nothing to show
  bool holds = false;  // shown with the lock's TTL

  std::string line() const;
  static std::optional<news> parse(std::string_view line);
};

int run_worker(const job& what);

}  // namespace holdfast::demo
