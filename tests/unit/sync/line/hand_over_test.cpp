// SPDX-License-Identifier: BSL-1.0
#include "sync/line/hand_over.hpp"

#include "support/catch.hpp"

using namespace std::chrono_literals;
using holdfast::detail::claim_left;
using holdfast::detail::may_take_over;
using holdfast::detail::terms;
using holdfast::detail::time_point;
using holdfast::detail::valid_until;

namespace {

constexpr time_point now{1h};
constexpr double drift = 0.01;

/// A claim of 30 s that was confirmed at this moment.
claim_left fresh() { return {valid_until(now, 30s, drift), 30s, 0}; }
terms renewed() { return {.ttl = 30s, .renew = true, .max_hold = {}}; }

}  // namespace

TEST_CASE("a waiter takes over a claim that gives it all that it asks for") {
  CHECK(may_take_over(renewed(), fresh(), now, drift));
}

TEST_CASE("a claim is passed on while two thirds of the TTL are left") {
  auto left = fresh();
  left.valid_until = now + 20s;
  CHECK(may_take_over(renewed(), left, now, drift));
  left.valid_until -= 1ms;
  CHECK_FALSE(may_take_over(renewed(), left, now, drift));
}

TEST_CASE("a claim that lasts longer than a grant is not passed on") {
  auto left = fresh();
  left.valid_until += 1ms;
  CHECK_FALSE(may_take_over(renewed(), left, now, drift));
}

TEST_CASE("a claim whose key may live longer than the TTL is not passed on") {
  auto left = fresh();
  left.may_live += 1ms;
  CHECK_FALSE(may_take_over(renewed(), left, now, drift));
}

TEST_CASE("a claim is not passed on to a waiter that wants more replicas than have it") {
  auto asked = renewed();
  asked.min_replicas = 2;
  auto left = fresh();
  left.replicas = 1;
  CHECK_FALSE(may_take_over(asked, left, now, drift));
  left.replicas = 2;
  CHECK(may_take_over(asked, left, now, drift));
}

TEST_CASE("a claim is not passed on to a waiter that wants no renewal") {
  auto asked = renewed();
  asked.renew = false;
  CHECK_FALSE(may_take_over(asked, fresh(), now, drift));
}
