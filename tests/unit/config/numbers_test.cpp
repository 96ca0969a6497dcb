// SPDX-License-Identifier: BSL-1.0
#include "config/numbers.hpp"

#include "support/catch.hpp"

using holdfast::detail::parse_number;

TEST_CASE("a number is decimal digits and fits") {
  CHECK(parse_number("0") == 0);
  CHECK(parse_number("007") == 7);
  CHECK(parse_number("9223372036854775807") == 9223372036854775807);
  for (const char* bad : {"", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "9223372036854775808"}) {
    INFO(bad);
    CHECK_FALSE(parse_number(bad));
  }
}
