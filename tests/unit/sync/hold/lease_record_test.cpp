// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/lease_record.hpp"

#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "unit/sync/hold/hold_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

TEST_CASE_METHOD(hold_fixture, "max_hold counts from the grant or the last feed") {
  auto& fed = lease({.ttl = 10s, .renew = true, .max_hold = 1min});
  const auto granted = clock.now();
  CHECK(fed.renewed_until() == granted + 1min);
  CHECK(h->wants_renewal(granted + 1min - 1ns));
  CHECK_FALSE(h->wants_renewal(granted + 1min));
  fed.fed_at = (granted + 50s).time_since_epoch().count();
  CHECK(fed.renewed_until() == granted + 110s);
  lease({.ttl = 10s, .renew = true, .max_hold = {}});
  CHECK(h->renewed_until() == detail::time_point::max());
}

TEST_CASE_METHOD(hold_fixture, "a lease is released once") {
  extend(clock.now() + 1s);
  auto& l = lease({.ttl = 1s, .renew = false, .max_hold = {}});
  CHECK(l.state() == lease_state::held);
  CHECK(l.try_release());
  CHECK_FALSE(l.try_release());
  CHECK(l.state() == lease_state::released);
  CHECK(h->state() == lease_state::held);
}

TEST_CASE_METHOD(hold_fixture, "listeners of an end are told once and in order") {
  auto& l = lease({.ttl = 1s, .renew = false, .max_hold = {}});
  std::vector<std::pair<int, error_code>> told;
  for (int i = 0; i < 3; ++i) l.add_listener([&told, i](error_code why) { told.emplace_back(i, why); });
  l.tell_end(errc::lost);
  l.tell_end(errc::closed);
  const std::vector<std::pair<int, error_code>> expected{{0, errc::lost}, {1, errc::lost}, {2, errc::lost}};
  CHECK(told == expected);
}

TEST_CASE_METHOD(hold_fixture,
                 "a listener that is taken back is not told, and one that was told cannot be taken back") {
  auto& l = lease({.ttl = 1s, .renew = false, .max_hold = {}});
  std::vector<int> told;
  const auto listens = [&](int i) { return l.add_listener([&told, i](error_code) { told.push_back(i); }); };
  const auto* first = listens(0);
  const auto* second = listens(1);
  const auto* third = listens(2);
  REQUIRE(l.remove_listener(second));
  CHECK_FALSE(l.remove_listener(second));
  REQUIRE(l.remove_listener(third));
  const auto* fourth = listens(3);
  l.tell_end(errc::lost);
  CHECK(told == std::vector<int>{0, 3});
  CHECK_FALSE(l.has_listeners());
  CHECK_FALSE(l.remove_listener(first));
  CHECK_FALSE(l.remove_listener(fourth));
}
