// SPDX-License-Identifier: BSL-1.0
#pragma once

/// HOLDFAST_ASSERT(condition): an invariant of the library, whatever a server, a user or the network does. The
/// condition has no side effects. A violation is a bug of holdfast; it prints its file and line and ends the process.
///
/// Decision: the presets for development, tests and sanitizers have assertions (HOLDFAST_ASSERTIONS). So unit tests,
/// simulator, history test and fuzzers run with them. A release build contains nothing of them. They stand in sources
/// only: a header may be compiled with and without them.
#if defined(HOLDFAST_ASSERTIONS) && HOLDFAST_ASSERTIONS
#define HOLDFAST_ASSERT(...) \
  ((__VA_ARGS__) ? static_cast<void>(0) : ::holdfast::detail::assertion_failed(#__VA_ARGS__, __FILE__, __LINE__))
#else
#define HOLDFAST_ASSERT(...) static_cast<void>(0)
#endif

namespace holdfast::detail {

[[noreturn]] void assertion_failed(const char* text, const char* file, int line) noexcept;

}  // namespace holdfast::detail
