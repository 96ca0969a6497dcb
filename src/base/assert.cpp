// SPDX-License-Identifier: BSL-1.0
#include "base/assert.hpp"

#if defined(HOLDFAST_ASSERTIONS) && HOLDFAST_ASSERTIONS
#include <cstdio>
#include <cstdlib>

namespace holdfast::detail {

void assertion_failed(const char* text, const char* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: holdfast asserts: %s\n", file, line, text);
  std::abort();
}

}  // namespace holdfast::detail
#endif
