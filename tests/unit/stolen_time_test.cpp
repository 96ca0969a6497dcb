// SPDX-License-Identifier: BSL-1.0
#include "chaos/stolen_time.hpp"

#include <unistd.h>
#include <string>

#include "support/catch.hpp"

using namespace holdfast::chaos;
using namespace std::chrono_literals;

TEST_CASE("the stolen time is the eighth number of all processors") {
  const auto ticks_a_second = ::sysconf(_SC_CLK_TCK);
  CHECK(stolen_time("cpu  1 2 3 4 5 6 7 " + std::to_string(3 * ticks_a_second) + " 9 10") == 3s);
  CHECK(stolen_time("cpu 1 2 3 4 5 6 7 0") == 0s);
}

TEST_CASE("a kernel that does not count stolen time says nothing of it") {
  CHECK_FALSE(stolen_time("cpu 1 2 3 4 5 6 7"));
  CHECK_FALSE(stolen_time("intr 1 2 3 4 5 6 7 8"));
  CHECK_FALSE(stolen_time(""));
}
