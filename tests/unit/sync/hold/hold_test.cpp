// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/hold.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "support/catch.hpp"
#include "support/fork.hpp"
#include "unit/sync/hold/hold_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::terms;

TEST_CASE_METHOD(hold_fixture, "a hold is exclusive until its validity ends and not at that instant") {
  CHECK_FALSE(h->exclusive());
  extend(clock.now() + 1s);
  CHECK(h->exclusive());
  CHECK(h->left() == 1s);
  CHECK(h->state() == lease_state::held);
  clock.skip(1s - 1ns);
  CHECK(h->exclusive());
  clock.skip(1ns);
  CHECK_FALSE(h->exclusive());
  CHECK(h->left() == 0s);
  clock.skip(1h);
  CHECK(h->left() == 0s);
}

TEST_CASE_METHOD(hold_fixture, "a hold whose validity is over reads as lost before anybody noticed") {
  extend(clock.now() + 1s);
  clock.skip(1s);
  CHECK(h->state() == lease_state::lost);
  CHECK_FALSE(h->ended());
  on->doubt(on->sole_share());
  CHECK(h->state() == lease_state::lost);
}

TEST_CASE_METHOD(hold_fixture, "a hold that is released while it is looked at is not lost") {
  struct interrupting final : detail::clock {
    test::manual_clock time;
    mutable std::function<void()> meanwhile;
    detail::time_point now() const noexcept override {
      if (const auto once = std::exchange(meanwhile, {})) once();
      return time.now();
    }
  } looked_at;
  const auto claimed = make_claim(new detail::client_state(looked_at, new detail::block_pool));
  const auto looked_at_hold = make_hold(claimed);
  claimed->confirm(claimed->sole_share(), looked_at.now() + 1s);
  looked_at.meanwhile = [&] {
    release(looked_at_hold);
    looked_at.time.skip(1s);
  };
  CHECK(looked_at_hold->state() == lease_state::released);
}

TEST_CASE_METHOD(hold_fixture, "a suspended hold is exclusive still") {
  extend(clock.now() + 1s);
  on->doubt(on->sole_share());
  CHECK(h->exclusive());
  CHECK(h->state() == lease_state::suspended);
  CHECK_FALSE(h->ended());
}

TEST_CASE_METHOD(hold_fixture, "lost and released holds are never exclusive again") {
  const auto over = GENERATE(lease_state::lost, lease_state::released);
  extend(clock.now() + 1s);
  over == lease_state::lost ? h->lose(errc::lost) : release(h);
  extend(clock.now() + 1h);
  CHECK_FALSE(h->exclusive());
  CHECK(h->state() == over);
  CHECK(h->ended());
}

TEST_CASE_METHOD(hold_fixture, "closing the client ends a hold at once and from any thread") {
  extend(clock.now() + 1s);
  client->closed = true;
  CHECK_FALSE(h->exclusive());
  CHECK(h->state() == lease_state::lost);
  CHECK(h->left() == 0s);
}

TEST_CASE_METHOD(hold_fixture, "the TTL of a hold is the largest of its leases") {
  CHECK(h->ttl() == 0s);
  lease({.ttl = 1s, .renew = true, .max_hold = {}});
  lease({.ttl = 10s, .renew = false, .max_hold = {}});
  CHECK(h->ttl() == 10s);
}

TEST_CASE_METHOD(hold_fixture, "a hold wants renewal while one of its leases does") {
  lease({.ttl = 10s, .renew = false, .max_hold = {}});
  CHECK_FALSE(h->wants_renewal(clock.now()));
  auto& renewed = lease({.ttl = 10s, .renew = true, .max_hold = {}});
  CHECK(h->wants_renewal(clock.now()));
  CHECK(renewed.try_release());
  CHECK_FALSE(h->wants_renewal(clock.now()));
}

TEST_CASE_METHOD(hold_fixture,
                 "a hold covers a lease while two thirds of its TTL are left, and no longer TTL nor more replicas") {
  const terms renewed{.ttl = 30s, .renew = true, .max_hold = {}};
  CHECK_FALSE(h->covers(renewed, clock.now()));
  extend(clock.now() + 40s);
  CHECK_FALSE(h->covers(renewed, clock.now()));  // it has no lease
  lease(renewed);
  CHECK(h->covers(renewed, clock.now()));
  CHECK_FALSE(h->covers({.ttl = 31s, .renew = true, .max_hold = {}}, clock.now()));
  CHECK_FALSE(h->covers({.ttl = 30s, .renew = true, .min_replicas = 1, .max_hold = {}}, clock.now()));
  clock.skip(20s);
  CHECK(h->covers(renewed, clock.now()));
  clock.skip(1ms);
  CHECK_FALSE(h->covers(renewed, clock.now()));
  const terms for_a_time{.ttl = 19s, .renew = false, .max_hold = {}};
  CHECK(h->covers(for_a_time, clock.now()));
  clock.skip(1s);
  CHECK_FALSE(h->covers(for_a_time, clock.now()));
}

TEST_CASE_METHOD(hold_fixture, "a hold that is not renewed at present covers no lease that wants to be renewed") {
  const terms renewed{.ttl = 30s, .renew = true, .max_hold = {}};
  extend(clock.now() + 30s);
  SECTION("its renewal is paused") {
    lease(renewed);
    h->pause_renewal();
  }
  SECTION("none of its leases asks for it") { lease({.ttl = 30s, .renew = false, .max_hold = {}}); }
  CHECK_FALSE(h->covers(renewed, clock.now()));
  CHECK(h->covers({.ttl = 30s, .renew = false, .max_hold = {}}, clock.now()));
}

TEST_CASE_METHOD(hold_fixture, "a hold is exclusive in the process that took it and in no child of it") {
  extend(clock.now() + 1s);
  CHECK(test::in_child([&] { return !h->exclusive() && h->left() == 0s && h->state() == lease_state::lost; }));
  CHECK(h->exclusive());
}

TEST_CASE_METHOD(hold_fixture,
                 "a lease that is fed while renewal is being paused goes on, or its feeder sees the pause") {
  auto& l = lease({.ttl = 1s, .renew = true, .max_hold = 5s});
  clock.skip(5s);
  const int moment = GENERATE(1, 2);
  int looks = 0;
  bool saw_the_pause = false;
  const bool paused = h->pause_renewal_unless([&] {
    const bool wanted = h->wants_renewal(clock.now());
    if (++looks == moment) saw_the_pause = l.feed();
    return wanted;
  });
  CHECK(paused == saw_the_pause);
  CHECK(paused == (moment == 2));
}

TEST_CASE_METHOD(hold_fixture, "a lease whose renewal goes on shows no pause to who feeds it") {
  auto& l = lease({.ttl = 1s, .renew = true, .max_hold = 5s});
  bool saw_a_pause = false;
  CHECK_FALSE(h->pause_renewal_unless([&] {
    saw_a_pause |= l.feed();
    return h->wants_renewal(clock.now());
  }));
  CHECK_FALSE(saw_a_pause);
}
