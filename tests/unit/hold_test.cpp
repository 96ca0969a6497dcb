// SPDX-License-Identifier: BSL-1.0
#include "sync/hold.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "support/catch.hpp"
#include "support/fork.hpp"
#include "support/manual_clock.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using detail::lease_record;
using detail::terms;

namespace {

struct fixture {
  test::manual_clock clock;
  const std::shared_ptr<std::atomic<bool>> closed = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<detail::hold> h =
      std::make_shared<detail::hold>(clock, std::make_shared<const detail::lock_keys>("a", "p:"),
                                     detail::owner_field("uuid:1"), owner(), false, closed);
  std::vector<std::shared_ptr<lease_record>> records;

  lease_record& lease(terms t) {
    records.push_back(std::make_shared<lease_record>(h, t, clock.now(), std::weak_ptr<detail::core>()));
    h->leases.push_back(records.back().get());
    return *records.back();
  }
};

}  // namespace

TEST_CASE_METHOD(fixture, "a hold is exclusive until its validity ends and not at that instant") {
  CHECK_FALSE(h->exclusive());
  h->extend(clock.now() + 1s);
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

TEST_CASE_METHOD(fixture, "a validity is never shortened") {
  h->extend(clock.now() + 2s);
  h->extend(clock.now() + 1s);
  CHECK(h->left() == 2s);
}

TEST_CASE_METHOD(fixture, "a hold whose validity is over reads as lost before anybody noticed") {
  h->extend(clock.now() + 1s);
  clock.skip(1s);
  CHECK(h->state() == lease_state::lost);
  CHECK_FALSE(h->ended());
  h->enter(lease_state::suspended);
  CHECK(h->state() == lease_state::lost);
}

TEST_CASE_METHOD(fixture, "a validity that somebody has seen over is over for good") {
  h->extend(clock.now() + 1s);
  const auto end = h->valid_until();
  clock.skip(1s);
  CHECK_FALSE(h->exclusive());  // on another thread, between the strand's look and what it does
  CHECK_FALSE(h->extend(clock.now() + 1h));
  CHECK_FALSE(h->exclusive());
  CHECK(h->valid_until() == end);
}

TEST_CASE("a hold that is released while it is looked at is not lost") {
  struct interrupting final : detail::clock {
    test::manual_clock time;
    std::function<void()> meanwhile;
    detail::time_point now() const noexcept override {
      if (meanwhile) meanwhile();
      return time.now();
    }
  } clock;
  detail::hold h(clock, std::make_shared<const detail::lock_keys>("a", "p:"), detail::owner_field("uuid:1"), owner(),
                 false, std::make_shared<std::atomic<bool>>(false));
  h.extend(clock.now() + 1s);
  clock.meanwhile = [&] {
    h.enter(lease_state::released);
    clock.time.skip(1s);
  };
  CHECK(h.state() == lease_state::released);
}

TEST_CASE_METHOD(fixture, "a suspended hold is exclusive still") {
  h->extend(clock.now() + 1s);
  h->enter(lease_state::suspended);
  CHECK(h->exclusive());
  CHECK(h->state() == lease_state::suspended);
  CHECK_FALSE(h->ended());
}

TEST_CASE_METHOD(fixture, "lost and released holds are never exclusive again") {
  const auto over = GENERATE(lease_state::lost, lease_state::released);
  h->extend(clock.now() + 1s);
  h->enter(over);
  h->extend(clock.now() + 1h);
  CHECK_FALSE(h->exclusive());
  CHECK(h->state() == over);
  CHECK(h->ended());
}

TEST_CASE_METHOD(fixture, "closing the client ends a hold at once and from any thread") {
  h->extend(clock.now() + 1s);
  *closed = true;
  CHECK_FALSE(h->exclusive());
  CHECK(h->state() == lease_state::lost);
  CHECK(h->left() == 0s);
}

TEST_CASE_METHOD(fixture, "the TTL of a hold is the largest of its leases") {
  CHECK(h->ttl() == 0s);
  lease({.ttl = 1s, .renew = true, .max_hold = {}});
  lease({.ttl = 10s, .renew = false, .max_hold = {}});
  CHECK(h->ttl() == 10s);
}

TEST_CASE_METHOD(fixture, "a hold wants renewal while one of its leases does") {
  lease({.ttl = 10s, .renew = false, .max_hold = {}});
  CHECK_FALSE(h->wants_renewal(clock.now()));
  auto& renewed = lease({.ttl = 10s, .renew = true, .max_hold = {}});
  CHECK(h->wants_renewal(clock.now()));
  CHECK(renewed.try_release());
  CHECK_FALSE(h->wants_renewal(clock.now()));
}

TEST_CASE_METHOD(fixture, "max_hold counts from the grant or the last feed") {
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

TEST_CASE_METHOD(fixture, "a lease is released once") {
  h->extend(clock.now() + 1s);
  auto& l = lease({.ttl = 1s, .renew = false, .max_hold = {}});
  CHECK(l.state() == lease_state::held);
  CHECK(l.try_release());
  CHECK_FALSE(l.try_release());
  CHECK(l.state() == lease_state::released);
  CHECK(h->state() == lease_state::held);
}

TEST_CASE_METHOD(fixture, "listeners of an end are told once and in order") {
  auto& l = lease({.ttl = 1s, .renew = false, .max_hold = {}});
  std::vector<std::pair<int, error_code>> told;
  for (int i = 0; i < 3; ++i) l.end_listeners.push_back([&told, i](error_code why) { told.emplace_back(i, why); });
  l.tell_end(errc::lost);
  l.tell_end(errc::closed);
  const std::vector<std::pair<int, error_code>> expected{{0, errc::lost}, {1, errc::lost}, {2, errc::lost}};
  CHECK(told == expected);
}

TEST_CASE_METHOD(fixture, "a hold is exclusive in the process that took it and in no child of it") {
  h->extend(clock.now() + 1s);
  CHECK(test::in_child([&] { return !h->exclusive() && h->left() == 0s && h->state() == lease_state::lost; }));
  CHECK(h->exclusive());
}

TEST_CASE_METHOD(fixture, "a TTL that is sent covers what is claimed already, on a clock that is faster by the drift") {
  h->extend(clock.now() + 10s);
  CHECK(h->ttl_to_send(1ms, 0.01).ttl == 10'100ms);
  CHECK(h->ttl_to_send(1ms, 0).ttl == 10s);
  clock.skip(4s + 500us);
  CHECK(h->ttl_to_send(1ms, 0).ttl == 6s);
  CHECK(h->ttl_to_send(30s, 0.01).ttl == 30s);
  clock.skip(1min);
  CHECK(h->ttl_to_send(1ms, 0.01).ttl == 1ms);
}

TEST_CASE_METHOD(fixture, "the key may live as long as the longest TTL that was sent for it, heard of or not") {
  h->extend(clock.now() + 1s);
  CHECK(h->may_live(0.01) == 1010ms);
  CHECK(h->ttl_to_send(30s, 0).ttl == 30s);
  clock.skip(10s);
  CHECK(h->ttl_to_send(1s, 0).ttl == 1s);
  CHECK(h->may_live(0.01) == 20s);
  clock.skip(1min);
  CHECK(h->may_live(0.01) == 0s);
}

TEST_CASE_METHOD(fixture, "a lease that is fed while renewal is being paused goes on, or its feeder sees the pause") {
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

TEST_CASE_METHOD(fixture, "a lease whose renewal goes on shows no pause to who feeds it") {
  auto& l = lease({.ttl = 1s, .renew = true, .max_hold = 5s});
  bool saw_a_pause = false;
  CHECK_FALSE(h->pause_renewal_unless([&] {
    saw_a_pause |= l.feed();
    return h->wants_renewal(clock.now());
  }));
  CHECK_FALSE(saw_a_pause);
}

TEST_CASE_METHOD(fixture, "a key without TTL gets what covers all that was sent and may be claimed yet") {
  h->extend(clock.now() + 1s);
  CHECK(h->ttl_to_send(30s, 0.01).if_none == 30s);
  clock.skip(500ms);
  CHECK(h->ttl_to_send(1ms, 0.01).ttl == 505ms);
  CHECK(h->ttl_to_send(1ms, 0.01).if_none == 29'500ms);
  clock.skip(1min);
  CHECK(h->ttl_to_send(1s, 0.01).if_none == 1s);
}

TEST_CASE_METHOD(fixture, "dropped leases live until they are taken, the oldest first") {
  detail::dropped_leases dropped;
  CHECK_FALSE(dropped.pop());
  std::vector<std::weak_ptr<lease_record>> seen;
  for (int i = 0; i < 4; ++i) {
    auto one = std::make_shared<lease_record>(h, terms{}, clock.now(), std::weak_ptr<detail::core>());
    seen.push_back(one);
    dropped.push(std::move(one));
    if (i == 1) CHECK(dropped.pop() == seen[0].lock());
  }
  CHECK(seen[0].expired());
  for (int i = 1; i < 4; ++i) CHECK(dropped.pop() == seen[static_cast<std::size_t>(i)].lock());
  CHECK_FALSE(dropped.pop());
  CHECK(seen[3].expired());
}

TEST_CASE_METHOD(fixture, "a lease that is dropped when no hold refers to it any more is gone at once") {
  const auto make = [&] {
    return std::make_shared<lease_record>(h, terms{}, clock.now(), std::weak_ptr<detail::core>());
  };
  detail::dropped_leases dropped;
  auto before = make(), taken_over = make(), after = make();
  const std::weak_ptr<lease_record> a = before, b = taken_over, c = after;
  dropped.push(make());
  dropped.push(std::move(taken_over));
  dropped.pop();
  dropped.push(std::move(before));
  dropped.close();
  CHECK(a.expired());
  CHECK(b.expired());
  dropped.push(std::move(after));
  CHECK(c.expired());
  CHECK_FALSE(dropped.pop());
}
