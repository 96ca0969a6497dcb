// SPDX-License-Identifier: BSL-1.0
#include "chaos/cpu_steal.hpp"

#include <unistd.h>

#include <string>

#include "support/catch.hpp"

using namespace holdfast::chaos;
using namespace std::chrono_literals;
using times = std::vector<std::chrono::nanoseconds>;

TEST_CASE("the stolen time is the eighth number of each processor") {
  const auto three = std::to_string(3 * ::sysconf(_SC_CLK_TCK));
  CHECK(cpu_steal_times("cpu  1 2 3 4 5 6 7 999 9 10\ncpu0 1 2 3 4 5 6 7 " + three +
                        " 9 10\ncpu1 1 2 3 4 5 6 7 0 9 10\nintr 1 2 3 4 5 6 7 8\n") == times{3s, 0s});
}

TEST_CASE("a kernel that does not count stolen time says nothing of it") {
  CHECK(cpu_steal_times("cpu 1 2 3 4 5 6 7\ncpu0 1 2 3 4 5 6 7\n").empty());
  CHECK(cpu_steal_times("intr 1 2 3 4 5 6 7 8\n").empty());
  CHECK(cpu_steal_times("").empty());
}
