// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <string>

#include "support/raw_client.hpp"

namespace holdfast::chaos {

/// What the locks guard, on a server that no fault touches. For each lock there is
/// - a counter that believes whoever writes to it: the control, which shows what happens without tokens;
/// - a register that refuses a token lower than one it has seen.
/// Calls block, for some 50 µs. One thread.
class guarded_resource {
 public:
  explicit guarded_resource(const std::string& socket_path) : server_(socket_path) {}

  long long read_counter(const std::string& lock);
  void write_counter(const std::string& lock, long long value);

  struct verdict {
    long long number;  ///< the order of all writes to all registers, as the server saw it
    bool accepted;
  };
  verdict write_register(const std::string& lock, std::uint64_t token);
  /// How many writes to registers there were.
  long long writes();

 private:
  test::raw_client server_;
};

}  // namespace holdfast::chaos
