// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>

namespace holdfast::detail {

/// Loads the whole object into the cache while the caller does other work. An object that is touched once in a period
/// would otherwise cost a cache miss at each first touch.
template <class T>
void prefetch(const T& object) noexcept {
  constexpr std::size_t line = 64;
  const auto* const begin = reinterpret_cast<const char*>(&object);
  for (std::size_t offset = 0; offset < sizeof(T); offset += line) __builtin_prefetch(begin + offset);
  __builtin_prefetch(begin + sizeof(T) - 1);
}

}  // namespace holdfast::detail
