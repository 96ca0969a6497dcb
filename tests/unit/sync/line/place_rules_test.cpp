// SPDX-License-Identifier: BSL-1.0
// The line of a kind that serves all waiters of all clients in the order of their arrival: when its first waiter asks.
#include "protocol/fair/fair_lock.hpp"
#include "support/catch.hpp"
#include "unit/sync/line/rules_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::acquire_answer;
using detail::line_action;
using detail::line_rules;
using act = line_action::act;
using turn = line_rules::turn;
using wait_mode = detail::lock_request::wait_mode;

namespace {

struct without_jitter {
  fixed_random random;
};
struct ordered_line : without_jitter, rules_fixture {
  ordered_line() : rules_fixture(detail::fair_lock, random) {}

  line_action join(wait_mode wait = wait_mode::forever) {
    add(request(wait));
    return sent(rules.joined(at()));
  }
  line_action answer(acquire_answer of) {
    const detail::attempt attempt{.reply = {{}, std::move(of)}, .answered = true, .sent = now};
    return sent(rules.answered(attempt, at()));
  }
  line_action fail_unanswered() {
    const redis::failure lost{errc::unreachable, {}, true};
    return sent(rules.answered({.reply = {lost, {}}, .answered = false, .sent = now}, at()));
  }
  line_action busy(milliseconds ttl = 30s) { return answer({.type = acquire_answer::kind::busy, .holder_ttl = ttl}); }
  line_action is_turn_of_other() {
    return answer({.type = acquire_answer::kind::busy, .holder_ttl = 0ms, .reserved = true, .turn = "other"});
  }
  line_action shown(std::optional<milliseconds> ttl, unsigned others = 0) {
    return sent(rules.shown({ttl, others + 1}, others, at()));
  }
  line_action freed(turn of) { return sent(rules.freed(of, at())); }
  line_action alarm(nanoseconds after) {
    now += after;
    return sent(rules.alarm(at()));
  }
  /// The first waiter has found the lock held, and its place stands.
  void stand() {
    REQUIRE(join().then == act::send);
    REQUIRE(busy().then == act::park);
    REQUIRE(rules.listening());
    REQUIRE(shown(30s).then == act::park);
    REQUIRE(rules.listens());
  }
  void leave(bool served) {
    auto leaver = std::move(line.front());
    line.pop_front();
    const detail::line_waiter gone{leaver.request, row, leaver.since, leaver.answer_by, leaver.tries, leaver.backoff};
    rules.left(gone, true, served, detail::nowhere, at());
  }
};

}  // namespace

TEST_CASE_METHOD(ordered_line, "a waiter that stands asks when it is called, and when the holder's TTL is over") {
  stand();
  SECTION("called") { CHECK(sent(rules.called(at())).then == act::send); }
  SECTION("the TTL") {
    const auto parked = shown(100ms);
    CHECK(parked.then == act::park);
    CHECK(parked.until - now >= 100ms);
    CHECK(alarm(parked.until - now).then == act::send);
  }
  CHECK_FALSE(rules.suspects());
}

TEST_CASE_METHOD(ordered_line, "calls have no budget, because each of them is a turn") {
  stand();
  for (int n = 0; n < 100; ++n) {
    REQUIRE(sent(rules.called(at())).then == act::send);
    busy();
  }
}

TEST_CASE_METHOD(ordered_line, "a free lock is asked for at once by the only one that stands") {
  stand();
  CHECK(shown(std::nullopt).then == act::send);
}

TEST_CASE_METHOD(ordered_line, "a free lock with others before this client is left to them for 300 to 400 ms") {
  stand();
  line_action waits;
  SECTION("by a release of this client") { waits = freed(turn::other); }
  SECTION("by an attempt") {
    rules.called(at());
    waits = is_turn_of_other();
  }
  REQUIRE(waits.then == act::park);
  CHECK(waits.until - now >= 300ms);
  CHECK(waits.until - now <= 400ms);
  CHECK(alarm(waits.until - now).then == act::send);
  CHECK(rules.suspects());
}

TEST_CASE_METHOD(ordered_line,
                 "a free lock that a look has found is asked for after 30 to 40 ms, to learn whose turn it is") {
  stand();
  const auto waits = shown(std::nullopt, 1);
  REQUIRE(waits.then == act::park);
  CHECK(waits.until - now >= 30ms);
  CHECK(waits.until - now <= 40ms);
  CHECK(alarm(waits.until - now).then == act::send);
}

TEST_CASE_METHOD(ordered_line, "a later look does not put off the suspicion, and a holder ends it") {
  stand();
  const auto until = freed(turn::other).until;
  now += 10ms;
  SECTION("free still") {
    CHECK(shown(std::nullopt, 1).then == act::wait);
    CHECK(alarm(until - now).then == act::send);
    CHECK(rules.suspects());
  }
  SECTION("held") {
    const auto parked = shown(100ms, 1);
    CHECK(alarm(parked.until - now).then == act::send);
    CHECK_FALSE(rules.suspects());
  }
}

TEST_CASE_METHOD(ordered_line, "a look does not put off the question after an attempt without an answer") {
  stand();
  rules.called(at());
  const auto parked = fail_unanswered();
  REQUIRE(parked.then == act::park);
  CHECK(shown(30s, 0).then == act::wait);
  CHECK(alarm(parked.until - now).then == act::send);
}

TEST_CASE_METHOD(ordered_line, "a release that tells nobody wakes the first waiter, and one for this client does not") {
  stand();
  SECTION("nobody stands") { CHECK(freed(turn::nobody).then == act::send); }
  SECTION("unknown") { CHECK(freed(turn::unknown).then == act::send); }
  SECTION("the call comes") { CHECK(freed(turn::ours).then == act::wait); }
}

TEST_CASE_METHOD(ordered_line, "a release takes the lock for a waiter that is parked, and for no other") {
  SECTION("parked") {
    stand();
    REQUIRE(rules.may_ride(at()));
    line.front().tries.field = fields.next();
    rules.rides(at());
    CHECK(rules.riding());
    SECTION("granted") {
      CHECK(answer({}).then == act::grant);
      CHECK_FALSE(rules.riding());
    }
    SECTION("the turn of another client") { CHECK(is_turn_of_other().then == act::park); }
    SECTION("no answer") {
      CHECK(sent(rules.rode_in_vain(at())).then == act::send);
      CHECK(line.front().tries.unanswered == 1);
      CHECK_FALSE(rules.riding());
    }
  }
  SECTION("an attempt is under way") {
    join();
    CHECK_FALSE(rules.may_ride(at()));
  }
  SECTION("an earlier attempt has no answer") {
    stand();
    line.front().tries.unanswered = 1;
    CHECK_FALSE(rules.may_ride(at()));
  }
  SECTION("the place of one that has left stands") {
    stand();
    around.leaving = true;
    CHECK_FALSE(rules.may_ride(at()));
  }
  SECTION("the first caller asks once") {
    around.leaving = true;
    REQUIRE(join(wait_mode::once).then == act::park);
    around.leaving = false;
    CHECK_FALSE(rules.may_ride(at()));
  }
  SECTION("nobody waits") { CHECK_FALSE(rules.may_ride(at())); }
}

TEST_CASE_METHOD(ordered_line, "nobody asks while the place of one that has left stands") {
  stand();
  around.leaving = true;
  CHECK(sent(rules.called(at())).then == act::park);
  SECTION("its own call follows") {
    around.leaving = false;
    CHECK(sent(rules.called(at())).then == act::send);
  }
  SECTION("all places have left") {
    around.leaving = false;
    CHECK(sent(rules.places_left(at())).then == act::send);
  }
}

TEST_CASE_METHOD(ordered_line, "a try_lock waits for such a place half of its time") {
  around.leaving = true;
  const auto parked = join(wait_mode::once);
  REQUIRE(parked.then == act::park);
  CHECK(parked.until - now == settings.command_timeout / 2);
  CHECK(alarm(parked.until - now).then == act::send);
}

TEST_CASE_METHOD(ordered_line, "a next caller stands before it asks, if the queue was crowded") {
  stand();
  rules.called(at());
  REQUIRE(answer({}).then == act::grant);
  around.may_linger = true;
  leave(true);
  REQUIRE(rules.lingers());
  const bool crowded = GENERATE(true, false);
  const auto lingers = freed(crowded ? turn::other : turn::nobody);
  CHECK(lingers.then == act::park);
  CHECK(lingers.until - now == 100ms);
  CHECK(join().then == (crowded ? act::park : act::send));
}

TEST_CASE_METHOD(ordered_line, "a lock without a TTL is corrupt") {
  stand();
  const auto over = shown(milliseconds::max());
  CHECK(over.then == act::done);
  CHECK(over.failed->code == errc::corrupt_lock);
}
