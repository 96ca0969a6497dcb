// SPDX-License-Identifier: BSL-1.0
#include "sync/line/wake_budget.hpp"

#include "support/catch.hpp"

using holdfast::detail::nanoseconds;
using holdfast::detail::time_point;
using holdfast::detail::wake_budget;
using namespace std::chrono_literals;

namespace {

struct fixture {
  wake_budget budget;
  time_point now{1h};

  /// How many wake-ups may be followed now; they are.
  int follow_all() {
    int n = 0;
    for (; budget.next() <= now; ++n) budget.spend(now);
    return n;
  }
  /// The answer to a try that took so long.
  void busy(holdfast::milliseconds holder_ttl, nanoseconds way = 1ms) {
    now += way;
    budget.found_busy(now - way, now, holder_ttl);
  }
};

}  // namespace

TEST_CASE_METHOD(fixture, "twenty wake-ups are followed at once and then one in 10 ms") {
  CHECK(follow_all() == 20);
  CHECK(budget.next() == now + 10ms);
  now += 10ms - 1ns;
  CHECK(follow_all() == 0);
  now += 1ns;
  CHECK(follow_all() == 1);
  now += 1s;
  CHECK(follow_all() == 20);
  int in_a_second = 0;
  for (int i = 0; i < 1000; ++i) {
    now += 1ms;
    in_a_second += follow_all();
  }
  CHECK(in_a_second == 100);
}

TEST_CASE_METHOD(fixture, "a grant gives the whole budget back") {
  follow_all();
  budget.granted();
  CHECK(follow_all() == 20);
}

TEST_CASE_METHOD(fixture, "a holder that stays gives nothing back, however long the answers take") {
  const auto end = now + 30s;
  busy(30s);
  follow_all();
  const nanoseconds ways[] = {1ms, 300us, 9ms, 100us, 2ms};
  for (const auto way : ways) {
    busy(std::chrono::floor<holdfast::milliseconds>(end - now - way), way);  // Redis looked at the end of the way
  }
  CHECK(follow_all() == 1);  // for 12 ms
}

TEST_CASE_METHOD(fixture, "a renewal gives nothing back") {
  busy(75ms);
  follow_all();
  busy(100ms);
  CHECK(follow_all() == 0);
}

TEST_CASE_METHOD(fixture, "another's grant between two tries gives the whole budget back") {
  busy(30s);
  follow_all();
  SECTION("of the same TTL, within milliseconds") {
    busy(30s);
    busy(30s);
    CHECK(follow_all() == 20);
  }
  SECTION("of a shorter TTL") {
    busy(10s);
    CHECK(follow_all() == 20);
    busy(10s);
    busy(10s);
    CHECK(follow_all() == 20);
  }
  SECTION("in small steps") {
    for (int i = 0; i < 10; ++i) busy(30s, 200us);
    CHECK(follow_all() == 20);
  }
}
