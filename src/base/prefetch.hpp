// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>

namespace holdfast::detail {

/// All of it is on its way into the cache when it is needed soon, and other things are done meanwhile. Of what is
/// touched once in a period, each first touch would else be waited for.
template <class T>
void prefetch(const T& object) noexcept {
  constexpr std::size_t line = 64;
  const auto* const begin = reinterpret_cast<const char*>(&object);
  for (std::size_t offset = 0; offset < sizeof(T); offset += line) __builtin_prefetch(begin + offset);
  __builtin_prefetch(begin + sizeof(T) - 1);
}

}  // namespace holdfast::detail
