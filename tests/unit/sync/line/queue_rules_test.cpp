// SPDX-License-Identifier: BSL-1.0
// The line of a kind whose clients stand in a queue in Redis: which attempts ask for a place, when they are sent, and
// who gives the place up.
#include <map>

#include "support/catch.hpp"
#include "unit/sync/line/rules_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::acquire_answer;
using detail::everywhere;
using detail::line_action;
using detail::nowhere;
using detail::standing;
using act = line_action::act;
using message = detail::queue_place::message;
using wait_mode = detail::lock_request::wait_mode;

namespace {

/// Rows of one layout. No call is made here.
detail::kind row_of(bool writes) {
  auto row = detail::plain_lock;
  row.bars = row.passes = writes;
  row.looks = 500ms;
  row.queue.acquire = [](const detail::lock_keys&, std::chrono::milliseconds, const detail::owner_field&, standing) {
    return detail::call();
  };
  return row;
}
const detail::kind writer = row_of(true), reader = row_of(false);

struct without_jitter {
  fixed_random random;
};
struct queued_line : without_jitter, rules_fixture {
  queued_line() : rules_fixture(writer, random) {}

  detail::line_waiter seen(rules_waiter& waiter) const {
    return {waiter.request, *kinds.at(&waiter), waiter.since, waiter.answer_by, waiter.tries, waiter.backoff};
  }
  detail::line_conditions at() {
    auto conditions = around;
    conditions.now = now;
    if (!line.empty()) conditions.first.emplace(seen(line.front()));
    return conditions;
  }
  void add(const detail::kind& of, wait_mode wait = wait_mode::forever) {
    kinds[&rules_fixture::add(request(wait))] = &of;
  }
  line_action join(const detail::kind& of, wait_mode wait = wait_mode::forever) {
    add(of, wait);
    return sent(rules.joined(at()));
  }
  line_action answer(acquire_answer of) {
    const detail::attempt attempt{.reply = {{}, of}, .answered = true, .sent = now};
    now += 1ms;
    return sent(rules.answered(attempt, at()));
  }
  line_action busy(std::optional<std::uint8_t> rank = {}, milliseconds ttl = 30s) {
    return answer({.type = acquire_answer::kind::busy, .holder_ttl = ttl, .rank = rank});
  }
  /// The first waiter has found the lock taken, listens, and stands in the queue.
  line_action stand(const detail::kind& of, std::optional<std::uint8_t> rank = {}) {
    join(of);
    busy();
    sent(rules.subscribed(at()));
    return busy(rank);
  }
  line_action leave(bool served = false) {
    auto leaver = std::move(line.front());
    const auto& row = *kinds.at(&line.front());
    line.pop_front();
    const detail::line_waiter gone{leaver.request, row, leaver.since, leaver.answer_by, leaver.tries, leaver.backoff};
    return sent(rules.left(gone, true, served, nowhere, at()));
  }
  standing place() const { return line.front().tries.place; }

  std::map<const rules_waiter*, const detail::kind*> kinds;
};

}  // namespace

// ---- the place

TEST_CASE_METHOD(queued_line, "the first attempt asks for no place, and the one after the acknowledgement does") {
  CHECK(join(writer).then == act::send);
  CHECK(place() == standing::none);
  CHECK(busy().then == act::park);
  CHECK(sent(rules.subscribed(at())).then == act::send);
  CHECK(place() == standing::last);
  CHECK(rules.stands());
}

TEST_CASE_METHOD(queued_line, "a try_lock asks for no place") {
  stand(writer);
  leave();
  rules.given_back(at());
  CHECK(join(writer, wait_mode::once).then == act::send);
  CHECK(place() == standing::none);
  CHECK_FALSE(rules.stands());
}

TEST_CASE_METHOD(queued_line, "a client that has a place asks again at least every 500 ms, and else only when told") {
  const auto parked = stand(writer, 3);
  CHECK(parked.then == act::park);
  CHECK(parked.until == now + 500ms);
  now = parked.until;
  CHECK(sent(rules.alarm(at())).then == act::send);
  CHECK(place() == standing::last);
}

TEST_CASE_METHOD(queued_line, "a called writer asks for the front at once, also after the attempt under way") {
  stand(writer, 3);
  SECTION("parked") { CHECK(sent(rules.called(at())).then == act::send); }
  SECTION("an attempt is under way") {
    rules.woken(detail::line_rules::incentive::news, at());
    CHECK(rules.called(at()).then == act::wait);
    CHECK(busy(2).then == act::send);
  }
  CHECK(place() == standing::front);
  CHECK(busy(0).then == act::park);
}

TEST_CASE_METHOD(queued_line, "a call for a writer leaves a reader that is the first where it is") {
  stand(reader);
  CHECK(rules.called(at()).then == act::wait);
}

TEST_CASE_METHOD(queued_line, "a lock that is reserved for a called client is asked for again when that time is over") {
  join(reader);
  busy();
  sent(rules.subscribed(at()));
  const auto parked = answer({.type = acquire_answer::kind::busy, .holder_ttl = 0ms, .reserved = true});
  CHECK(parked.then == act::park);
  CHECK(parked.until >= now + 20ms);
  CHECK(parked.until <= now + 22ms);
}

// ---- messages

TEST_CASE_METHOD(queued_line, "a reader that is the first asks after each message") {
  stand(reader);
  CHECK(rules.heard(at(), GENERATE(message::read_ended, message::write_ended)).then == act::send);
}

TEST_CASE_METHOD(queued_line, "the first writer asks after the last reader, and after a write gives the readers time") {
  stand(writer, 0);
  SECTION("the last reader") { CHECK(rules.heard(at(), message::read_ended).then == act::send); }
  SECTION("a write") {
    const auto parked = rules.heard(at(), message::write_ended);
    CHECK(parked.then == act::park);
    CHECK(parked.until == now + 30ms);
    CHECK(rules.heard(at(), message::write_ended).then == act::wait);
  }
}

TEST_CASE_METHOD(queued_line, "a writer behind others stays parked at each message, and asks when it is called") {
  stand(writer, 1);
  CHECK(rules.heard(at(), GENERATE(message::read_ended, message::write_ended)).then == act::wait);
}

TEST_CASE_METHOD(queued_line, "a message changes nothing while this client writes") {
  around.held_here = true;
  join(writer);
  CHECK(rules.heard(at(), message::read_ended).then == act::wait);
  CHECK(rules.called(at()).then == act::wait);
}

// ---- releases of this client

TEST_CASE_METHOD(queued_line, "the release of a write puts the next writer that listens at the end of the queue") {
  around.held_here = true;
  const auto wait = GENERATE(wait_mode::forever, wait_mode::until_deadline);
  const bool listens = GENERATE(true, false);
  join(writer, wait);
  if (listens) rules.subscribed(at());
  around.held_here = false;
  const auto wishes = rules.departs(writer, true, at().first);
  CHECK(wishes.again == listens);
  CHECK_FALSE(wishes.leave);
  CHECK(wishes.reserve == 20ms);
  CHECK(rules.stands() == listens);
  SECTION("nobody else waits") { CHECK(rules.released(0, at()).then == act::send); }
  SECTION("others wait") {
    const auto next = rules.released(2, at());
    CHECK(next.then == (listens ? act::park : act::send));
    if (listens) CHECK(next.until == now + 30ms);
  }
}

TEST_CASE_METHOD(queued_line, "a release leaves the place of a next waiter of the same kind, and of no other") {
  add(GENERATE(true, false) ? writer : reader);
  const bool same = kinds.at(&line.front()) == &reader;
  const auto wishes = rules.departs(reader, GENERATE(true, false), at().first);
  CHECK(wishes.leave == !same);
  CHECK_FALSE(wishes.again);
  CHECK(rules.departs(reader, true, std::nullopt).leave);
}

TEST_CASE_METHOD(queued_line, "a release that frees no field for the queue again puts nobody there") {
  around.held_here = true;
  join(writer);
  rules.subscribed(at());
  CHECK_FALSE(rules.departs(writer, false, at().first).again);
  CHECK_FALSE(rules.stands());
}

TEST_CASE_METHOD(queued_line,
                 "a writer that stands asks after no release of a reader of its client, because it is called") {
  stand(writer, 0);
  rules.departs(reader, true, at().first);
  CHECK(rules.released(GENERATE(0, 1), at()).then == act::wait);
}

TEST_CASE_METHOD(queued_line, "a waiter without a place asks after each release of its client") {
  join(writer);
  busy();
  CHECK(rules.released(GENERATE(0, 1), at()).then == act::send);
}

TEST_CASE_METHOD(queued_line, "a slow link gets more time to come") {
  join(writer);
  const detail::attempt attempt{
      .reply = {{}, {.type = acquire_answer::kind::busy, .holder_ttl = 30s}}, .answered = true, .sent = now};
  now += 5ms;
  rules.answered(attempt, at());
  CHECK(rules.departs(reader, true, at().first).reserve == 50ms);
}

// ---- the end of a place

TEST_CASE_METHOD(queued_line, "a waiter that leaves gives its place up, unless the next one is of its kind") {
  const auto* const next = GENERATE(static_cast<const detail::kind*>(nullptr), &writer, &reader);
  stand(writer, 1);
  const auto field = line.front().tries.field;
  if (next) add(*next);
  const auto action = leave();
  const bool stays = next == &writer;
  CHECK(action.given_back_at == (stays ? nowhere : everywhere));
  if (!stays) CHECK(action.given_back == field);
  CHECK(rules.stands() == stays);
  if (stays) CHECK(sent(rules.called(at())).then == act::send);
}

TEST_CASE_METHOD(queued_line, "a grant takes the client out of the queue") {
  stand(writer, 0);
  sent(rules.called(at()));
  CHECK(answer({}).then == act::grant);
  CHECK_FALSE(rules.stands());
  CHECK(leave(true).given_back_at == nowhere);
}

TEST_CASE_METHOD(queued_line, "a waiter whose attempts were not answered keeps the place for its next field") {
  stand(writer, 0);
  sent(rules.called(at()));
  const detail::attempt silent{
      .reply = {detail::failure{errc::unreachable, "silent", true}, {}}, .answered = false, .sent = now};
  const auto parked = rules.answered(silent, at());
  now = parked.until;
  sent(rules.alarm(at()));
  CHECK(rules.answered(silent, at()).given_back_at == everywhere);
  CHECK(rules.stands());
  CHECK_FALSE(rules.departs(writer, false, at().first).leave);
}
