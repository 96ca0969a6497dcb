// SPDX-License-Identifier: BSL-1.0
// Catch2 v2 or v3, whichever is installed.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace holdfast::test {

/// For CHECK_THAT and CHECK_THROWS_WITH.
inline auto contains_text(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

}  // namespace holdfast::test
