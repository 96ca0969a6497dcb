// SPDX-License-Identifier: BSL-1.0
#include "sync/claim/validity.hpp"

#include "support/catch.hpp"
#include "unit/sync/hold/hold_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

TEST_CASE_METHOD(hold_fixture, "a validity is never shortened") {
  extend(clock.now() + 2s);
  extend(clock.now() + 1s);
  CHECK(h->left() == 2s);
}

TEST_CASE_METHOD(hold_fixture, "a validity that somebody has seen over is over for good") {
  extend(clock.now() + 1s);
  const auto end = h->valid_until();
  clock.skip(1s);
  CHECK_FALSE(h->exclusive());  // on another thread, between the strand's look and what it does
  CHECK_FALSE(extend(clock.now() + 1h));
  CHECK_FALSE(h->exclusive());
  CHECK(h->valid_until() == end);
}

TEST_CASE("a validity that is limited ends then at the latest, and is extended by it never") {
  manual_clock clock;
  detail::validity v(new detail::client_state(clock, new detail::block_pool));
  v.extend(clock.now() + 3s);
  v.limit(clock.now() + 5s);
  CHECK(v.left() == 3s);
  v.limit(clock.now() + 1s);
  CHECK(v.left() == 1s);
  clock.skip(1s);
  CHECK(v.left() == 0s);
  v.limit(clock.now() + 1s);
  CHECK(v.left() == 0s);
}
