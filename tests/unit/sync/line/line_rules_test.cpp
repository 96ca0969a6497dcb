// SPDX-License-Identifier: BSL-1.0
#include "sync/line/line_rules.hpp"

#include <csignal>
#include <cstdio>
#include <functional>
#include <vector>

#include "support/catch.hpp"
#include "support/fork.hpp"
#include "unit/sync/kind_of_several.hpp"
#include "unit/sync/line/rules_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::attempt;
using detail::everywhere;
using detail::failure;
using detail::line_action;
using detail::line_rules;
using detail::nanoseconds;
using detail::nowhere;
using act = line_action::act;
using wait_mode = detail::lock_request::wait_mode;

namespace {

struct without_jitter {
  fixed_random random;
};

template <const detail::kind& Row>
struct a_line_of : without_jitter, rules_fixture {
  a_line_of() : rules_fixture(Row, random) {}

  line_action join(const detail::lock_request& wanted) {
    add(wanted);
    return sent(rules.joined(at()));
  }
  line_action join(wait_mode wait = wait_mode::forever) { return join(request(wait)); }
  void join_behind() { add(request()); }
  rules_waiter& first() { return line.front(); }

  // The answers, to an attempt that was sent 1 ms ago.
  line_action answer(attempt of) {
    of.sent = now;
    now += 1ms;
    return sent(rules.answered(of, at()));
  }
  line_action answer(detail::acquire_answer of) { return answer({.reply = {{}, of}, .answered = true, .sent = now}); }
  line_action busy(std::optional<milliseconds> ttl = 30s) {
    return answer({.type = detail::acquire_answer::kind::busy, .holder_ttl = ttl});
  }
  line_action split(nanoseconds slowest) {
    return answer({.type = detail::acquire_answer::kind::busy, .holder_ttl = 30s, .split = slowest});
  }
  line_action acquired() { return answer(detail::acquire_answer{}); }
  line_action silence() {
    return answer({.reply = {failure{errc::unreachable, "silent", true}, {}}, .answered = false, .sent = now});
  }
  line_action refusal(errc why) { return answer({.reply = {failure{why, "no"}, {}}, .answered = true, .sent = now}); }

  line_action alarm(line_action parked) {
    now = parked.until;
    return sent(rules.alarm(at()));
  }
  line_action message() { return sent(rules.heard(at())); }
  line_action acknowledge() { return sent(rules.subscribed(at())); }
  line_action given_back() { return sent(rules.given_back(at())); }
  line_action time_out() { return sent(rules.timed_out(seen(line.front()), at())); }
  line_action leave(bool served = false, detail::primary_set granted_at = nowhere) {
    auto leaver = std::move(line.front());
    line.pop_front();
    return sent(rules.left(seen(leaver), true, served, granted_at, at()));
  }

  // The states of a line.
  void linger() {
    join();
    busy();
    around.may_linger = true;
    rules.inherited(now);
    leave(true);
  }
  line_action park() {
    join();
    return busy();
  }
  /// Blocked by the release of a waiter that has left.
  void block() {
    join();
    join_behind();
    leave(false, everywhere);
  }
  line_action pause() {
    join();
    alarm(silence());
    silence();
    return given_back();
  }
};
using plain_line = a_line_of<detail::plain_lock>;
using simple_line = a_line_of<detail::simple_lock>;
using voted_line = a_line_of<detail::red_plain_lock>;

const detail::kind several = kind_of_several();
struct several_line : a_line_of<several> {
  line_action want(std::uint8_t amount, wait_mode wait = wait_mode::forever) {
    auto wanted = request(wait);
    wanted.amount = amount;
    return join(wanted);
  }
};

}  // namespace

// ---- a busy lock

TEST_CASE_METHOD(plain_line, "a busy lock is listened to, and asked for again after the acknowledgement") {
  CHECK(join().then == act::send);
  CHECK_FALSE(rules.listening());
  const auto parked = busy();
  CHECK(parked.then == act::park);
  CHECK(parked.waits);
  CHECK(rules.listening());
  CHECK_FALSE(rules.listens());
  CHECK(acknowledge().then == act::send);
  CHECK(rules.listens());
}

TEST_CASE_METHOD(plain_line,
                 "a parked waiter asks again when the holder's TTL is over, at the poll cap, or at a message") {
  join();
  // The TTL counts from when the attempt was sent, and a key exists through its last millisecond.
  const auto sent_at = now;
  CHECK(busy(700ms).until == sent_at + 701ms);
  CHECK(message().then == act::send);
  const auto capped = busy(1h);
  CHECK(capped.until == now - 1ms + settings.poll_cap);
  CHECK(alarm(capped).then == act::send);
  CHECK(rules.take_incentive() == line_rules::incentive::poll);
  CHECK(rules.take_incentive() == line_rules::incentive::none);
}

TEST_CASE_METHOD(plain_line, "a message during an attempt causes one more, because the attempt may have run before") {
  park();
  acknowledge();
  CHECK(message().then == act::wait);
  CHECK(busy().then == act::send);
  CHECK(busy().then == act::park);
}

TEST_CASE_METHOD(plain_line, "a wake-up without a subscription causes none more: the acknowledgement will") {
  join();
  CHECK(rules.woken(line_rules::incentive::news, at()).then == act::wait);
  CHECK(busy().then == act::park);
}

TEST_CASE_METHOD(plain_line, "the twenty-first wake-up is delayed by at most 10 ms, and is not lost") {
  park();
  for (int i = 0; i < 20; ++i) {
    CHECK(message().then == act::send);
    now -= 1ms;  // the answers take no time
    CHECK(busy().then == act::park);
  }
  const auto delayed = message();
  CHECK(delayed.then == act::park);
  CHECK(delayed.until <= now + 10ms);
  // One wake-up waits already.
  CHECK(message().then == act::wait);
  now = delayed.until;
  CHECK(alarm(delayed).then == act::send);
  CHECK(rules.take_incentive() == line_rules::incentive::news);
  // It was paid for by the budget, so the next one is delayed as well. The holder is still the same.
  now -= 1ms;
  busy(30s - 10ms);
  CHECK(message().until == delayed.until + 10ms);
}

TEST_CASE_METHOD(plain_line, "a call that follows a busy answer for several locks begins with the subscription") {
  auto wanted = request();
  wanted.found_taken = true;
  const auto parked = join(wanted);
  CHECK(parked.then == act::park);
  CHECK(parked.until == now + settings.poll_cap);
  CHECK(rules.listening());
  CHECK(acknowledge().then == act::send);
}

TEST_CASE_METHOD(simple_line,
                 "a first try that finds the lock busy is followed by the script after the acknowledgement") {
  join();
  CHECK(first().tries.first_try);
  CHECK(busy(std::nullopt).then == act::park);
  CHECK(acknowledge().then == act::send);
  CHECK_FALSE(first().tries.first_try);
}

TEST_CASE_METHOD(simple_line,
                 "a first try is followed by the script at once where the line listens, or it was refused") {
  linger();
  CHECK(join().then == act::send);
  CHECK(first().tries.first_try);
  SECTION("busy") { CHECK(busy(std::nullopt).then == act::send); }
  SECTION("refused") { CHECK(sent(rules.first_try_refused(at())).then == act::send); }
  CHECK_FALSE(first().tries.first_try);
}

TEST_CASE_METHOD(simple_line,
                 "a kind whose releases may be silent is polled, at first after 20 ms and then less often") {
  for (auto [parked, pause] = std::pair(park(), nanoseconds(20ms)); pause < 1s; pause *= 2) {
    CHECK(parked.until == now + std::min<nanoseconds>(pause, 250ms));
    CHECK(alarm(parked).then == act::send);
    parked = busy();
  }
}

TEST_CASE_METHOD(plain_line, "other clients' turns bound the pause after a busy answer") {
  join();
  auto conditions = at();
  conditions.again_after = 15ms;
  CHECK(rules.answered({{{}, {detail::acquire_answer::kind::busy, 30s}}, true, now}, conditions).until == now + 15ms);
}

TEST_CASE_METHOD(plain_line, "tries that other clients' turns bring are of the budget of wake-ups") {
  join();
  for (int i = 0; i < 25; ++i) {
    auto conditions = at();
    conditions.again_after = 300us;
    const auto parked = rules.answered({{{}, {detail::acquire_answer::kind::busy, 30s}}, true, now}, conditions);
    CHECK(parked.until - now == (i < 20 ? 300us : (i - 19) * 10ms));
    CHECK(rules.alarm(at()).then == act::send);  // no time has passed
  }
}

TEST_CASE_METHOD(plain_line, "a key without a TTL fails the waiter: it would never end") {
  join();
  const auto corrupt = answer({.type = detail::acquire_answer::kind::busy_without_ttl});
  CHECK(corrupt.then == act::done);
  CHECK(corrupt.failed->code == errc::corrupt_lock);
}

TEST_CASE_METHOD(plain_line, "a refused subscription fails the first waiter, and the next one asks for itself") {
  park();
  join_behind();
  const auto refused = rules.unsubscribed({errc::no_permission, "SUBSCRIBE"}, at());
  CHECK(refused.then == act::done);
  CHECK(refused.failed->code == errc::no_permission);
  CHECK_FALSE(rules.listening());
  CHECK(leave().then == act::send);
}

// ---- the client's own hold, and the turns of other clients

TEST_CASE_METHOD(plain_line, "while its own client holds, a waiter listens and does not ask") {
  around.held_here = true;
  const auto parked = join();
  CHECK(parked.then == act::park);
  CHECK(parked.until == now + settings.poll_cap);
  CHECK(rules.listening());
  CHECK(message().then == act::wait);
  CHECK(alarm(parked).then == act::park);
  CHECK(rules.take_incentive() == line_rules::incentive::none);
  around.held_here = false;
  CHECK(sent(rules.woken(line_rules::incentive::news, at())).then == act::send);
}

TEST_CASE_METHOD(plain_line, "a try_lock asks while its own client holds, and in a cool-down") {
  SECTION("held") { around.held_here = true; }
  SECTION("cool-down") { around.cool_down_until = now + 1s; }
  CHECK(join(wait_mode::once).then == act::send);
  const auto result = busy();
  CHECK(result.then == act::done);
  CHECK_FALSE(result.failed);
}

TEST_CASE_METHOD(plain_line, "a waiter of before leaves a cool-down to other clients, at most half of its own time") {
  auto wanted = request(wait_mode::until_deadline);
  SECTION("without a deadline") { wanted.wait = wait_mode::forever; }
  SECTION("with one") { wanted.deadline = now + 100ms; }
  around.cool_down_until = now + 80ms;
  const auto parked = join(wanted);
  CHECK(parked.then == act::park);
  CHECK(parked.until == now + (wanted.wait == wait_mode::forever ? 80ms : 50ms));
  CHECK(rules.listening());
  // A release of another client brings the end nearer.
  around.cool_down_until = now + 20ms;
  CHECK(message().until == now + 20ms);
  CHECK(alarm(parked).then == act::send);
}

TEST_CASE_METHOD(plain_line, "a new first waiter has its own end of a cool-down") {
  auto wanted = request(wait_mode::until_deadline);
  wanted.deadline = now + 10ms;
  around.cool_down_until = now + 80ms;
  CHECK(join(wanted).until == now + 5ms);
  join_behind();
  CHECK(leave().until == now + 80ms);
}

TEST_CASE_METHOD(plain_line, "a waiter that came after a cool-down does not wait for it") {
  around.cool_down_until = now;
  CHECK(join().then == act::send);
}

TEST_CASE_METHOD(plain_line,
                 "a waiter whose owner holds leaves to re-enter, and the next one gets an alarm of its own") {
  const auto parked = park();
  join_behind();
  around.held_here = around.owner_holds = true;
  SECTION("found at the alarm") { CHECK(alarm(parked).then == act::reenter); }
  SECTION("found at a wake-up") { CHECK(rules.woken(line_rules::incentive::news, at()).then == act::reenter); }
  SECTION("found at a busy answer") {
    around.held_here = around.owner_holds = false;
    alarm(parked);
    around.held_here = around.owner_holds = true;
    CHECK(busy().then == act::reenter);
  }
  around.owner_holds = false;
  const auto next = leave();
  CHECK(next.then == act::park);
  CHECK(next.until == now + settings.poll_cap);
}

TEST_CASE_METHOD(plain_line, "an empty line keeps its subscription for a second, and only for the client's turns") {
  park();
  SECTION("a wait that was served") {
    around.may_linger = true;
    const auto lingering = leave(true);
    CHECK(lingering.then == act::park);
    CHECK(lingering.until == now + 1s);
    CHECK_FALSE(lingering.waits);
    CHECK(rules.lingers());
    CHECK(rules.listening());
    CHECK_FALSE(rules.over());
    SECTION("until its alarm") { CHECK(alarm(lingering).then == act::rest); }
    SECTION("until the cool-down ends") { CHECK(rules.stop_lingering(at()).then == act::rest); }
  }
  SECTION("a wait that was not") {
    around.may_linger = true;
    CHECK(leave(false).then == act::rest);
  }
  SECTION("no turns") { CHECK(leave(true).then == act::rest); }
  CHECK_FALSE(rules.lingers());
  CHECK_FALSE(rules.listening());
  CHECK(rules.over());
}

// ---- attempts without an answer

TEST_CASE_METHOD(plain_line,
                 "a waiter gives its field back after two unanswered attempts, and pauses for longer each time") {
  join();
  for (nanoseconds pause = 20ms; pause < 3s; pause *= 2) {
    const auto field = first().tries.field;
    const auto again = silence();
    CHECK(again.then == act::park);
    CHECK(alarm(again).then == act::send);
    CHECK(first().tries.field == field);
    const auto gave_up = silence();
    CHECK(gave_up.then == act::rest);
    CHECK(gave_up.given_back == field);
    CHECK(gave_up.given_back_at == everywhere);
    CHECK(rules.blocked());
    CHECK(message().then == act::wait);
    // The pause begins when Redis may have the release.
    now += 100ms;
    const auto pausing = given_back();
    CHECK(pausing.then == act::park);
    CHECK(pausing.until == now + std::min<nanoseconds>(pause, 1s));
    CHECK(message().then == act::wait);
    CHECK(alarm(pausing).then == act::send);
    CHECK(first().tries.field != field);
  }
  CHECK(alarm(refusal(errc::server_refused)).then == act::send);
  alarm(silence());
  silence();
  CHECK(given_back().until == now + 20ms);  // an answer has come since
}

TEST_CASE_METHOD(plain_line, "a pause goes on for the next waiter, and a release that ends meanwhile does not end it") {
  const auto pausing = pause();
  first().tries = {.field = fields.next(), .unanswered = 1};
  join_behind();
  CHECK(leave(false, everywhere).then == act::wait);
  CHECK(given_back().then == act::wait);
  CHECK(alarm(pausing).then == act::send);
}

TEST_CASE_METHOD(plain_line, "no attempt is sent while the release of an earlier one is under way") {
  join();
  join_behind();
  join_behind();
  const auto field = first().tries.field;
  const auto blocked = leave(false, everywhere);
  CHECK(blocked.then == act::rest);
  CHECK(blocked.given_back == field);
  CHECK(message().then == act::wait);
  CHECK(leave().then == act::wait);
  CHECK(given_back().then == act::send);
}

TEST_CASE_METHOD(plain_line, "several releases block the line until the last of them has ended") {
  const auto parked = park();
  first().tries.unanswered = 1;
  join_behind();
  CHECK(leave(false, everywhere).then == act::wait);
  CHECK(alarm(parked).then == act::rest);
  join_behind();
  first().tries = {.field = fields.next(), .unanswered = 1};
  CHECK(leave(false, everywhere).then == act::wait);
  CHECK(given_back().then == act::wait);
  CHECK(given_back().then == act::send);
}

TEST_CASE_METHOD(plain_line, "an empty line stays until its release has ended, and the next waiter finds it blocked") {
  join();
  CHECK(leave(false, everywhere).then == act::rest);
  CHECK_FALSE(rules.over());
  SECTION("nobody comes") { CHECK(given_back().then == act::rest); }
  SECTION("a lock() waits for the release") {
    CHECK(join().then == act::rest);
    CHECK(given_back().then == act::send);
  }
  SECTION("a try_lock() waits for it during half of its time") {
    CHECK(join(wait_mode::once).then == act::rest);
    CHECK(time_out().then == act::send);
    CHECK(given_back().then == act::wait);
    CHECK(busy().then == act::done);
  }
  CHECK((rules.trying() || rules.over() || !line.empty()));
}

TEST_CASE_METHOD(plain_line, "a try_lock whose connection has ended asks once more while it has time") {
  join(wait_mode::once);
  const auto field = first().tries.field;
  SECTION("in time") {
    CHECK(silence().then == act::send);
    CHECK(first().tries.field == field);
    const auto silent = silence();
    CHECK(silent.then == act::done);
    CHECK(silent.failed->code == errc::unreachable);
  }
  SECTION("too late") {
    now = first().answer_by;
    CHECK(silence().then == act::done);
  }
}

TEST_CASE_METHOD(plain_line,
                 "a failure that mends is followed by pauses from 20 ms to a second, and another one by the end") {
  join();
  for (int i = 0; i < 10; ++i) {
    const auto parked = refusal(errc::server_refused);
    CHECK(parked.then == act::park);
    CHECK(parked.until - now >= 20ms);
    CHECK(parked.until - now <= 1s);
    // The server answers, so nobody else reports it. Only the first refusal is news.
    CHECK(parked.outage == (i == 0));
    CHECK(alarm(parked).then == act::send);
  }
  const auto over = refusal(errc::no_permission);
  CHECK(over.then == act::done);
  CHECK(over.failed->code == errc::no_permission);
}

// ---- a grant

TEST_CASE_METHOD(plain_line, "a grant is the waiter's, unless it comes too late to be of use") {
  join();
  CHECK(acquired().then == act::grant);
  leave(true);
  join();
  const auto field = first().tries.field;
  const auto sent_at = now;
  now += 29s;
  const auto late = rules.answered({{{}, {}}, true, sent_at}, at());
  CHECK(late.then == act::park);
  CHECK(late.given_back == field);
}

TEST_CASE_METHOD(plain_line, "a grant waits for its replicas, and is given back if too few have it") {
  auto wanted = request(wait_mode::until_deadline);
  wanted.asked.min_replicas = 1;
  wanted.deadline = now + 1min;
  join(wanted);
  const auto field = first().tries.field;
  const attempt granted{{{}, {}}, true, now};
  CHECK(rules.answered(granted, at()).then == act::confirm);
  SECTION("they have it") { CHECK(rules.replicated(granted, {}, at()).then == act::grant); }
  SECTION("too few have it") {
    const auto failed = rules.replicated(granted, failure{errc::not_replicated, "0 of 1"}, at());
    CHECK(failed.then == act::park);
    CHECK(failed.given_back == field);
    CHECK_FALSE(first().tries.granted);
    CHECK(alarm(failed).then == act::rest);
  }
  SECTION("the time of the waiter is over before") {
    const auto over = time_out();
    CHECK(over.then == act::done);
    CHECK(over.failed->code == errc::not_replicated);
    CHECK(leave(false, everywhere).given_back == field);
  }
}

// ---- several primaries

TEST_CASE_METHOD(voted_line, "divided callers try again after pauses that no message interrupts, and that grow") {
  join();
  nanoseconds longest{80ms};
  for (int round = 1; round <= 10; ++round) {
    random = fixed_random(static_cast<std::uint64_t>(longest.count()));
    const auto divided = split(40ms);
    CHECK(divided.given_back_at == detail::only(0));
    CHECK(divided.then == act::park);
    CHECK(divided.until == now + longest);
    longest = std::min<nanoseconds>(2 * longest, 1s);
    CHECK(rules.blocked());
    CHECK(given_back().then == act::wait);
    CHECK(alarm(divided).then == act::send);
  }
  // After ten rounds the lock has a holder.
  CHECK(split(40ms).until > now + 1s);
  CHECK_FALSE(rules.blocked());
  CHECK(rules.granted_in_part() == detail::only(0));
}

TEST_CASE_METHOD(voted_line, "the pauses of divided callers grow up to the poll cap, but leave slow answers time") {
  settings.poll_cap = 100ms;
  const nanoseconds slow = GENERATE(20ms, 30ms, 70ms);
  const nanoseconds cap = std::max<nanoseconds>(2 * slow, 100ms);
  join();
  for (nanoseconds longest = 2 * slow;; longest = std::min(2 * longest, cap)) {
    const bool beyond = GENERATE(false, true);
    random = fixed_random(static_cast<std::uint64_t>(longest.count()) + (beyond ? 1 : 0));
    const auto divided = split(slow);
    CHECK(divided.until == now + (beyond ? 0ns : longest));
    (void)given_back();
    CHECK(alarm(divided).then == act::send);
    if (longest == cap) break;
  }
}

TEST_CASE_METHOD(voted_line, "a pause of divided callers is at most a second, however slow an answer seems to be") {
  random = fixed_random(~std::uint64_t{0} >> 1);
  join();
  CHECK(split(1h).until <= now + 1s);
}

TEST_CASE_METHOD(voted_line,
                 "a minority's grants are given back after each attempt that fails or finds the lock busy") {
  join();
  const auto field = first().tries.field;
  SECTION("busy") { CHECK(busy().given_back == field); }
  SECTION("no majority answers") { CHECK(silence().given_back == field); }
  CHECK(first().tries.field.empty());
  CHECK(first().tries.unanswered == 0);
}

// ---- the end of a wait

TEST_CASE_METHOD(plain_line, "a deadline means contention if there is a proof from the waiter's own time") {
  SECTION("an answer since") {
    join();
    alarm(busy());
    alarm(silence());
  }
  SECTION("a wait for a holder that an answer has named") {
    park();
    join_behind();
    line.pop_front();
  }
  SECTION("a hold of this client") {
    join();
    around.held_here = true;
  }
  SECTION("a hand-over") {
    join();
    rules.inherited(now);
  }
  const auto result = time_out();
  CHECK(result.then == act::done);
  CHECK_FALSE(result.failed);
}

TEST_CASE_METHOD(plain_line, "without a proof of contention the silence of the server decides, or the refusal") {
  SECTION("nothing was answered") {
    join();
    CHECK(time_out().then == act::silent);
  }
  SECTION("the answer is older than the call") {
    alarm(park());
    now += 1ms;
    join_behind();
    line.pop_front();
    silence();
    CHECK(time_out().then == act::silent);
  }
  SECTION("a cool-down") {
    around.cool_down_until = now + 1s;
    join();
    CHECK(time_out().then == act::silent);
  }
  SECTION("a refusal") {
    join();
    refusal(errc::server_refused);
    const auto result = time_out();
    CHECK(result.then == act::done);
    CHECK(result.failed->code == errc::server_refused);
  }
}

// ---- several at once

TEST_CASE_METHOD(several_line, "a waiter that wants several stands from its first attempt on") {
  want(2);
  CHECK(first().tries.stands);
  busy();
  message();
  CHECK(first().tries.stands);
}

TEST_CASE_METHOD(several_line, "a waiter that wants one does not stand, nor does one that asks once") {
  SECTION("one") { want(1); }
  SECTION("once") { want(2, wait_mode::once); }
  CHECK_FALSE(first().tries.stands);
}

TEST_CASE_METHOD(plain_line, "of a kind that has no party nobody stands") {
  auto wanted = request();
  wanted.amount = 2;
  join(wanted);
  CHECK_FALSE(first().tries.stands);
}

TEST_CASE_METHOD(several_line, "a waiter that stands asks again within 500 ms") {
  want(2);
  const auto parked = busy(30s);
  CHECK(parked.until == now + 500ms);
  CHECK(alarm(parked).then == act::send);
  const auto again = busy(30s);
  CHECK(again.until == now + 500ms);
}

TEST_CASE_METHOD(several_line, "a waiter that stands leaves no cool-down to others, which get nothing") {
  around.cool_down_until = now + 20ms;
  const auto parked = want(2);
  CHECK(parked.then == act::park);
  CHECK(alarm(parked).then == act::send);
  around.cool_down_until = now + 20ms;
  busy();
  CHECK(message().then == act::send);
}

namespace {

/// The first waiter has the lock, and the next one found it busy for 30 s.
struct refused_line : several_line {
  void grant_to_first(std::uint8_t next_wants = 1) {
    want(1);
    busy();
    acknowledge();
    join_behind();
    line.back().request.amount = next_wants;
    CHECK(answer({.holder_ttl = 30s}).then == act::grant);
  }
};

}  // namespace

TEST_CASE_METHOD(refused_line, "a waiter that the grant before it left too few parks, and asks at the next message") {
  grant_to_first();
  const auto parked = leave(true);
  CHECK(parked.then == act::park);
  CHECK(parked.waits);
  CHECK(parked.until == now - 1ms + settings.poll_cap);
  SECTION("the message") { CHECK(message().then == act::send); }
  SECTION("the alarm") { CHECK(alarm(parked).then == act::send); }
  SECTION("its own release") { CHECK(sent(rules.released(0, at())).then == act::send); }
}

TEST_CASE_METHOD(refused_line, "a waiter that the grant before it left too few begins to listen") {
  want(1);
  join_behind();
  answer({.holder_ttl = 30s});
  CHECK_FALSE(rules.listening());
  CHECK(leave(true).then == act::park);
  CHECK(rules.listening());
  CHECK(acknowledge().then == act::send);
}

TEST_CASE_METHOD(refused_line, "a waiter that the grant before it left too few asks when the next permit may end") {
  want(1);
  join_behind();
  const auto sent_at = now;
  answer({.holder_ttl = 700ms});
  CHECK(leave(true).until == sent_at + 701ms);
}

TEST_CASE_METHOD(refused_line,
                 "a waiter that the grant before it left too few asks at once after a message meanwhile") {
  want(1);
  busy();
  acknowledge();
  join_behind();
  message();
  answer({.holder_ttl = 30s});
  CHECK(leave(true).then == act::send);
}

TEST_CASE_METHOD(refused_line, "a waiter for several that becomes the first closes its door at once") {
  SECTION("the grant before it left too few") {
    grant_to_first(2);
    CHECK(leave(true).then == act::send);
  }
  SECTION("the waiter before it has left, which was parked") {
    want(1);
    busy();
    join_behind();
    line.back().request.amount = 2;
    CHECK(leave().then == act::send);
  }
  CHECK(first().tries.stands);
}

TEST_CASE_METHOD(refused_line, "a refusal holds for one waiter alone") {
  grant_to_first();
  leave(true);
  join_behind();
  message();
  answer(detail::acquire_answer{});
  CHECK(leave(true).then == act::send);
}

TEST_CASE_METHOD(several_line, "a field that was given back stands no more") {
  want(2);
  alarm(silence());
  CHECK(silence().given_back_at == everywhere);
  CHECK_FALSE(first().tries.stands);
}

// ---- no memory

TEST_CASE_METHOD(plain_line, "a line that found no memory is stuck until its first waiter leaves") {
  join();
  join_behind();
  rules.not_done();
  CHECK(rules.stuck());
  CHECK(leave().then == act::send);
}

// ---- what cannot happen

#if HOLDFAST_ASSERTIONS

namespace {

/// The rules assert that this event cannot happen now.
template <class Event>
bool asserts(Event event) {
  return !in_child([&] {
    std::signal(SIGABRT, [](int) { ::_exit(1); });
    std::fclose(stderr);
    event();
    return true;
  });
}

}  // namespace

TEST_CASE_METHOD(plain_line, "an event that cannot happen in a state of the line is asserted") {
  using event = std::function<void()>;
  const attempt any{{{}, {}}, true, now};
  const event joined = [&] { add(request()), rules.joined(at()); }, acknowledged = [&] { rules.subscribed(at()); },
              refused =
                  [&] {
                    rules.unsubscribed({errc::no_permission, ""}, at());
                  },
              fired = [&] { rules.alarm(at()); }, first_try = [&] { rules.first_try_refused(at()); },
              answered = [&] { rules.answered(any, at()); }, replicated = [&] { rules.replicated(any, {}, at()); },
              released = [&] { rules.given_back(at()); }, calm = [&] { rules.stop_lingering(at()); };
  std::vector<event> impossible;
  SECTION("a new line") {
    impossible = {acknowledged, refused, fired, first_try, answered, replicated, released, calm};
  }
  SECTION("a lingering line") {
    linger();
    impossible = {first_try, answered, replicated, released};
  }
  SECTION("a line that is over") {
    park();
    leave();
    impossible = {acknowledged, refused, fired, first_try, answered, replicated, released, calm};
  }
  SECTION("an attempt") {
    join();
    impossible = {joined, fired, replicated, released, calm, acknowledged};
  }
  SECTION("a parked line") {
    park();
    impossible = {joined, first_try, answered, replicated, released, calm};
  }
  SECTION("a blocked line") {
    block();
    impossible = {fired, first_try, answered, replicated, calm};
  }
  SECTION("a pause") {
    pause();
    impossible = {joined, first_try, answered, replicated, calm};
  }
  for (std::size_t i = 0; i < impossible.size(); ++i) {
    INFO("number " << i);
    CHECK(asserts(impossible[i]));
  }
}

TEST_CASE_METHOD(plain_line, "a deadline and a departure without a waiter are asserted") {
  rules_waiter nobody{request(), now};
  const auto late = [&] { rules.timed_out(seen(nobody), at()); };
  CHECK(asserts(late));
  linger();
  CHECK(asserts(late));
  CHECK(asserts([&] { rules.left(seen(nobody), true, false, nowhere, at()); }));
}

#endif
