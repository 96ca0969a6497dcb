// SPDX-License-Identifier: BSL-1.0
#include "cli/web/read_budget.hpp"

#include "support/catch.hpp"

using holdfast::cli::read_budget;
using namespace std::chrono_literals;

namespace {

constexpr read_budget::clock::time_point start{1h};

}  // namespace

TEST_CASE("polls come every second while they cost little") {
  read_budget budget;
  CHECK(budget.pause(start) == 1s);
  budget.spend(5ms, start);
  CHECK(budget.pause(start) == 1s);
}

TEST_CASE("a poll is followed by a hundred times its cost") {
  read_budget budget;
  budget.spend(50ms, start);
  CHECK(budget.pause(start) == 5s);
  CHECK(budget.pause(start + 3s) == 2s);
  CHECK(budget.pause(start + 1h) == 1s);
}

TEST_CASE("a poll comes every minute, whatever it costs") {
  read_budget budget;
  budget.spend(10s, start);
  CHECK(budget.pause(start) == 60s);
  CHECK(budget.pause(start + 60s) == 1s);
  CHECK(budget.may_read(start + 60s));
}

TEST_CASE("reads after messages stop when they have cost the work of a second") {
  read_budget budget;
  for (int i = 0; i < 10; ++i) {
    CHECK(budget.may_read(start));
    budget.spend(1ms, start);
  }
  CHECK_FALSE(budget.may_read(start));
  CHECK(budget.may_read(start + 200ms));
}

TEST_CASE("work of an hour is at most a hundredth of it, beyond the first second") {
  read_budget budget;
  auto now = start;
  auto work = 0us;
  while (now < start + 1h) {
    budget.spend(20ms, now);
    work += 20ms;
    while (budget.may_read(now)) {
      budget.spend(500us, now);
      work += 500us;
    }
    now += budget.pause(now);
  }
  CHECK(work <= 36s + 20ms);
}
