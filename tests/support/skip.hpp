// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <stdexcept>
#include <string>

namespace holdfast::test {

/// What skip() throws where no test runner is in charge (the demo).
struct skipped : std::runtime_error {
  using runtime_error::runtime_error;
};

/// Set by the test runner: notes the reason and throws the test framework's own end-of-test exception.
inline void (*on_skip)(const std::string& reason) = nullptr;

/// Ends the test case by an exception, so destructors run. ctest counts it as skipped, unless a check had failed
/// before.
[[noreturn]] inline void skip(const std::string& reason) {
  if (on_skip != nullptr) on_skip(reason);
  throw skipped{reason};
}

}  // namespace holdfast::test
