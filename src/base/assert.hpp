// SPDX-License-Identifier: BSL-1.0
#pragma once

/// HOLDFAST_ASSERT(condition): what must be so, whatever a server, a user or the network does; no side effects. A
/// violation is a bug of holdfast, and ends the process with its place. Builds without HOLDFAST_ASSERTIONS contain
/// nothing of it. In sources only: two translation units may differ in it.
#if defined(HOLDFAST_ASSERTIONS) && HOLDFAST_ASSERTIONS
#define HOLDFAST_ASSERT(...) \
  ((__VA_ARGS__) ? static_cast<void>(0) : ::holdfast::detail::assertion_failed(#__VA_ARGS__, __FILE__, __LINE__))
#else
#define HOLDFAST_ASSERT(...) static_cast<void>(0)
#endif

namespace holdfast::detail {

[[noreturn]] void assertion_failed(const char* text, const char* file, int line) noexcept;

}  // namespace holdfast::detail
