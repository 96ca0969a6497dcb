// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::demo {

using std::chrono::milliseconds;
using std::chrono::steady_clock;  // CLOCK_MONOTONIC: the same in every process of this machine

/// What the reader sees: one line for each thing that happened, in columns. Colours on a terminal, without NO_COLOR.
/// When nobody reads any more, it raises SIGTERM.
class timeline {
 public:
  timeline();

  void heading();
  void scene(std::string_view title);
  void line(steady_clock::time_point at, std::string_view actor, std::optional<milliseconds> ttl,
            std::string_view text);
  void verdict(bool ok, std::string_view text);
  void problem(std::string_view expected, std::string_view seen);
  void note(std::string_view text);

  std::string stamp(steady_clock::time_point at) const;  ///< seconds since the start, as in the first column
  std::chrono::duration<double> since_start(steady_clock::time_point at = steady_clock::now()) const {
    return at - start_;
  }

 private:
  std::string painted(std::string_view colour, std::string_view text) const;
  void print(const std::string& text);

  steady_clock::time_point start_ = steady_clock::now();
  bool colours_;
  bool read_ = true;  // somebody does
};

/// "1234.5 ms"; "0.41 ms" below ten.
std::string in_ms(steady_clock::duration);
/// "1 waiter", "3 waiters".
std::string counted(std::size_t n, std::string_view noun);

}  // namespace holdfast::demo
