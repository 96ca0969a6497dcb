// SPDX-License-Identifier: BSL-1.0
#include "base/backoff.hpp"

#include <algorithm>

#include "support/catch.hpp"
#include "support/seeded_random.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

TEST_CASE("pauses between tries grow by chance and stay between base and cap") {
  test::seeded_random random(7);
  detail::retry_backoff backoff(20ms, 1s);
  CHECK(backoff.next(random) == 20ms);
  auto longest = detail::lease_clock::duration{};
  for (int i = 0; i < 1000; ++i) {
    const auto pause = backoff.next(random);
    CHECK(pause >= 20ms);
    CHECK(pause <= 1s);
    longest = std::max(longest, pause);
  }
  CHECK(longest == 1s);
  backoff.reset();
  CHECK(backoff.next(random) == 20ms);
}

TEST_CASE("a cap below the base is the base") {
  test::fixed_random random;
  detail::retry_backoff backoff(20ms, 1ms);
  CHECK(backoff.next(random) == 20ms);
  CHECK(backoff.next(random) == 20ms);
}

TEST_CASE("the first attempt to reconnect is immediate, the next ones are drawn from a growing range") {
  test::seeded_random random(3);
  detail::reconnect_backoff backoff(50ms, 5s);
  CHECK(backoff.next(random) == 0ms);
  detail::lease_clock::duration ceiling = 50ms;
  for (int i = 0; i < 100; ++i) {
    const auto pause = backoff.next(random);
    CHECK(pause >= 25ms);
    CHECK(pause <= ceiling);
    ceiling = std::min<detail::lease_clock::duration>(5s, 2 * ceiling);
  }
  backoff.reset();
  CHECK(backoff.next(random) == 0ms);
}
