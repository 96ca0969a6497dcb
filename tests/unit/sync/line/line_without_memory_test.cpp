// SPDX-License-Identifier: BSL-1.0
// Each allocation fails once while a line or a re-entry hears of something. Every caller is still answered.
#include "support/skip.hpp"
#include "unit/sync/quorum_fixture.hpp"
#include "unit/sync/starving.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

const auto out_of_memory = replies::error("OOM command not allowed when used memory > 'maxmemory'.");
const std::string long_reason = "redis.example.com:6379: the connection was closed by the peer";  // needs memory

/// The call has its answer. A cancellation changes nothing any more, and the client ends.
template <class Call>
void check_answered(engine_fixture& fixture, const Call& call) {
  CHECK_FALSE(call.waits());
  call.cancel();
  fixture.play_all();
  check_it_ends(fixture);
}

/// `prepare` makes a call that waits, and what is posted to it; then each allocation of run() fails once. Afterwards
/// Redis answers everything, and the call must have its answer.
template <class Prepare>
void starve_news(Prepare prepare) {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto runs = starve(
      prepare, [](engine_fixture& fixture, const lock_call&) { fixture.run(); },
      [](engine_fixture& fixture, const lock_call& waiter) {
        fixture.play_all();
        fixture.advance(70s);
        check_answered(fixture, waiter);
      });
  CHECK(runs > 1);
}

}  // namespace

TEST_CASE("no allocation that fails where an attempt has failed leaves its caller without an answer") {
  starve_news([](engine_fixture& fixture) {
    const auto waiter = fixture.lock("a");
    fixture.run();
    fixture.server.fail(0, errc::unreachable, long_reason);
    return waiter;
  });
}

TEST_CASE("no allocation that fails where an attempt is refused leaves its caller without an answer") {
  starve_news([](engine_fixture& fixture) {
    const auto waiter = fixture.lock("a");
    fixture.run();
    fixture.server.reply(0, out_of_memory);
    return waiter;
  });
}

TEST_CASE("no allocation that fails where an attempt is lost for the second time leaves its caller without an answer") {
  starve_news([](engine_fixture& fixture) {
    const auto waiter = fixture.lock("a");
    fixture.run();
    fixture.server.fail(0, errc::unconfirmed, long_reason);
    fixture.run();
    fixture.advance(50ms);
    REQUIRE(fixture.in_flight() == 1);
    fixture.server.fail(1, errc::unconfirmed, long_reason);
    return waiter;
  });
}

TEST_CASE("no allocation that fails where a subscription is refused leaves its caller without an answer") {
  starve_news([](engine_fixture& fixture) {
    const auto waiter = fixture.lock("a");
    fixture.busy(30s);
    fixture.server.refuse(fixture.channel("a"), errc::no_permission, long_reason);
    return waiter;
  });
}

TEST_CASE("no allocation that fails where too few replicas have a grant leaves its caller with nothing to wait for") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto granted = [](engine_fixture& fixture) {
    const auto waiter = fixture.lock("a", with({.min_replicas = 1}));
    fixture.grants();
    fixture.server.replicas_have(0, redis::failure{errc::unreachable, long_reason});
    return waiter;
  };
  const auto runs = starve(
      granted, [](engine_fixture& fixture, const lock_call&) { fixture.run(); },
      [](engine_fixture& fixture, const lock_call& waiter) {
        fixture.advance(2s);
        // The release, or the next attempt.
        CHECK((!waiter.waits() || fixture.in_flight() > 0));
        waiter.cancel();
        fixture.run();
        CHECK_FALSE(waiter.waits());
        check_it_ends(fixture);
      });
  CHECK(runs > 1);
}

TEST_CASE("no allocation that fails where a deadline comes leaves its caller waiting") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto refused = [](engine_fixture& fixture) {
    const auto waiter = fixture.try_lock_for("a", 30ms);
    fixture.answers(out_of_memory);
    fixture.advance(25ms);
    fixture.answers(out_of_memory);
    REQUIRE(waiter.waits());
    return waiter;
  };
  starve(
      refused, [](engine_fixture& fixture, const lock_call&) { fixture.advance(5ms); },
      [](engine_fixture& fixture, const lock_call& waiter) { check_answered(fixture, waiter); });
}

TEST_CASE("no allocation that fails where a hold is lost leaves a re-entry of its owner without an answer") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const owner alice;
  for (const bool paused : {true, false}) {
    INFO("its command has failed, and a pause goes on: " << paused);
    const auto doubted = [&](engine_fixture& fixture) {
      fixture.hold("a", by(alice));
      const auto inner = fixture.lock("a", by(alice, {.ttl = 1min}));
      if (paused) fixture.fails(errc::unreachable);
      fixture.force_unlock("a");
      fixture.run();
      fixture.server.reply(fixture.server.open().back(), replies::integer(1));
      fixture.run();
      fixture.advance(0ns);
      REQUIRE_FALSE(fixture.server.open().empty());
      fixture.server.reply(fixture.server.open().back(), replies::integers({0}));
      return inner;
    };
    const auto runs = starve(
        doubted, [](engine_fixture& fixture, const lock_call&) { fixture.run(); },
        [](engine_fixture& fixture, const lock_call& inner) {
          fixture.play_all();
          fixture.advance(2s);
          check_answered(fixture, inner);
        });
    CHECK(runs > 1);
  }
}

TEST_CASE("no allocation that fails where a re-entry goes back to its line leaves it without an answer") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const owner alice;
  const auto freed = [&](engine_fixture& fixture) {
    const auto outer = fixture.hold("a", by(alice));
    const auto inner = fixture.lock("a", by(alice, {.ttl = 1min}));
    fixture.fails(errc::unreachable);
    return std::pair(outer.value(), inner);
  };
  starve(
      freed,
      [](engine_fixture& fixture, const auto& calls) {
        fixture.locks->unlock(calls.first, [](const std::optional<detail::failure>&) {});
      },
      [](engine_fixture& fixture, const auto& calls) {
        fixture.play_all();
        fixture.advance(40s);
        check_answered(fixture, calls.second);
      });
}

namespace {

/// Takes no memory, but wants the ids.
struct deaf final : observer {
  void on(const event&) noexcept override {}
};

}  // namespace

TEST_CASE("no allocation that fails where a grant is reported leaves its caller without an answer") {
  starve_news([](engine_fixture& fixture) {
    fixture.settings.observer = std::make_shared<deaf>();
    const auto waiter = fixture.lock("a");
    fixture.run();
    fixture.server.reply(0, replies::nil());
    return waiter;
  });
}

TEST_CASE("no allocation that fails where a waiter leaves costs the next one its lock") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto two = [](engine_fixture& fixture) {
    const auto first = fixture.lock("a"), next = fixture.lock("a");
    fixture.run();
    return std::pair(first, next);
  };
  const auto runs = starve(
      two, [](engine_fixture&, const auto& calls) { calls.first.cancel(); },
      [](engine_fixture& fixture, const auto& calls) {
        fixture.play_all();
        fixture.advance(40s);
        CHECK(calls.second.granted());
        check_it_ends(fixture);
      });
  CHECK(runs > 1);
}

TEST_CASE("a call for several locks has its answer even if there is no memory for the name in its text") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  bool failed = true;
  for (std::size_t allocation = 0; failed; ++allocation) {
    INFO("allocation " << allocation << " fails, and all that follow");
    const guarded_blocks guard;
    engine_fixture fixture;
    fixture.settings.observer.reset();
    const auto first = fixture.lock_all({"a", "b"}), next = fixture.lock_all({"b", "c"});
    fixture.run();
    {
      const failing_allocations here(allocation, 1000);
      try {
        first.cancel();
        fixture.run();
      } catch (const std::bad_alloc&) {
      }
      failed = here.happened();
    }
    fixture.play_all();
    fixture.advance(70s);
    CHECK_FALSE(next.waits());
    check_it_ends(fixture);
  }
}

TEST_CASE("no allocation that fails where the deadline of a call for several locks comes leaves it waiting") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto waits = [](engine_fixture& fixture) {
    const auto all = fixture.try_lock_all_for({"a", "b"}, 1s);
    fixture.run();
    return all;
  };
  starve(
      waits, [](engine_fixture& fixture, const multi_call&) { fixture.advance(1s); },
      [](engine_fixture& fixture, const multi_call& all) { check_answered(fixture, all); });
}

TEST_CASE("no allocation that fails where a vote has failed leaves a field at a minority, or its caller waiting") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  for (const bool once : {true, false}) {
    const auto voted = [&](quorum_fixture& fixture) {
      const auto waiter = once ? fixture.try_lock("a") : fixture.lock("a");
      fixture.answer({0, 1});
      for (const std::size_t n : {2, 3, 4})
        for (const auto open : fixture.at[n]->open()) fixture.at[n]->fail(open, errc::unconfirmed, long_reason);
      return waiter;
    };
    starve<quorum_fixture>(
        voted, [](quorum_fixture& fixture, const lock_call&) { fixture.run(); },
        [](quorum_fixture& fixture, const lock_call& waiter) {
          fixture.answer_all();
          for (int n = 0; n < 70; ++n) {  // longer than the TTL
            fixture.timers.advance(500ms);
            fixture.answer_all();
          }
          CHECK_FALSE(waiter.waits());
          waiter.cancel();
          fixture.locks.reset();
        });
  }
}
