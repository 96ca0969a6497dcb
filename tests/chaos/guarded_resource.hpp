// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <string>

#include "support/raw_client.hpp"

namespace holdfast::chaos {

/// What the locks guard, on a server that no fault touches. For each lock there is
/// - a counter that believes whoever writes to it: the control, which shows what happens without tokens;
/// - a register behind fenced_task.lua, which refuses a token lower than one it has seen.
/// Calls block, for some 50 µs. One thread.
class guarded_resource {
 public:
  explicit guarded_resource(const std::string& socket_path);

  long long read_counter(const std::string& lock);
  void write_counter(const std::string& lock, long long value);

  struct verdict {
    bool accepted;
    long long number;  ///< the order of all accepted writes to all registers, as the server saw it
  };
  verdict write_register(const std::string& lock, std::uint64_t token);
  /// A reader leaves the counter as it is.
  void count_read(const std::string& lock);
  /// The sum of all counters, and of the looks of readers at one.
  long long counted();

 private:
  test::raw_client server_;
  std::string fenced_task_;
};

}  // namespace holdfast::chaos
