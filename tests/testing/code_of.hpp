// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/error.hpp>

#include "support/catch.hpp"

namespace holdfast::test {

/// Of the error that the call throws.
errc code_of(const auto& call) {
  try {
    call();
  } catch (const error& e) {
    return static_cast<errc>(e.code().value());
  }
  FAIL("nothing was thrown");
  return {};
}

}  // namespace holdfast::test
