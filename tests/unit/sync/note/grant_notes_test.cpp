// SPDX-License-Identifier: BSL-1.0
#include "sync/note/grant_notes.hpp"

#include "protocol/note/note.hpp"
#include "support/no_memory.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

config with_notes(bool turns = false) {
  config c;
  c.turns = turns;
  c.notes = true;
  return c;
}

asking about(std::string_view note, lock_options options = {}) {
  options.note = note;
  return with(options);
}

struct notes : engine_fixture {
  explicit notes(config c = with_notes()) : engine_fixture(std::move(c)) {}

  /// "29995: 0 #1 order 42": the TTL and the text of the last write that was sent.
  std::string last_note() const {
    const auto& c = server.last();
    if (!c.argv.at(0).starts_with("EVAL") || c.argv.at(1) != detail::lua::write_note.sha1) return "no note";
    auto text = c.arguments().at(1);
    if (const auto at = text.find(uuid + ':'); at != text.npos) text.replace(at, uuid.size() + 1, "#");
    return c.arguments().at(0) + ": " + text;
  }
  std::size_t written() const { return sent("write_note"); }
  void kept() { answers(replies::integer(1)); }
};

struct in_turns : notes {
  in_turns() : notes(with_notes(true)) {}
};

}  // namespace

TEST_CASE_METHOD(notes, "a grant is noted without a wait, and a release is not") {
  const auto held = lock("a", about("order 42"));
  grants();
  REQUIRE(held.granted());
  CHECK(in_flight() == 1);
  CHECK(last_note() == "29995: 0 #1 order 42");
  CHECK(server.last().keys() == std::vector<std::string>{"holdfast_note:{a}"});
  kept();
  unlock(held);
  frees();
  CHECK(written() == 1);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "without config::notes nothing is sent for a note, and holder asks once") {
  const auto held = hold("a", about("order 42"));
  CHECK(server.count() == 1);
  locks->ask().holder(keys("a"), [](const auto&) {});
  CHECK(server.count() == 2);
  answers(replies::nil());
  unlock(held);
  frees();
  CHECK(server.count() == 3);
  check_nothing_is_left();
}

TEST_CASE_METHOD(notes, "a grant without words is noted with its instant alone") {
  hold("a");
  CHECK(last_note() == "29995: 0 #1 ");
}

TEST_CASE_METHOD(notes, "each renewal writes the note again with its age, and a refused or lost write is made up for") {
  const auto held = hold("a", about("x", {.ttl = 30s, .renew = true}));
  errs("NOPERM this user has no permissions to access one of the keys");
  CHECK(held.value()->state() == lease_state::held);
  CHECK(in_flight() == 0);
  advance(10s);
  CHECK(sent("renew") == 1);
  CHECK(written() == 1);
  confirms();
  CHECK(last_note() == "30000: 10000 #1 x");
  fails(errc::unconfirmed);
  CHECK(written() == 2);
  advance(10s);
  confirms();
  CHECK(last_note() == "30000: 20000 #1 x");
  kept();
  CHECK(written() == 3);
}

TEST_CASE_METHOD(notes, "a refused note is reported once for a client, without its words") {
  heard();
  const auto refusal = "NOPERM this user has no permissions to access one of the keys used as arguments";
  hold("a", about("secret"));
  errs(refusal);
  CHECK(heard() == "acquired notes_degraded");
  CHECK(last_event().reason == errc::no_permission);
  CHECK(last_event().detail.find("no permissions") != std::string::npos);
  CHECK(last_event().detail.find("secret") == std::string::npos);
  hold("b", about("secret"));
  errs(refusal);
  CHECK(heard() == "acquired");
}

TEST_CASE_METHOD(notes, "a note that is only late or refused for now is not reported") {
  hold("a", about("x"));
  heard();
  fails(errc::unconfirmed);
  hold("b", about("x"));
  errs("OOM command not allowed when used memory > 'maxmemory'");
  CHECK(heard() == "acquired");
}

TEST_CASE_METHOD(in_turns, "each pass writes the note of the next hold, one write at a time and the latest last") {
  const auto first = hold("a", about("first"));
  const auto second = lock("a", about("second")), third = lock("a", about("third"));
  CHECK(last_note() == "29995: 0 #1 first");
  unlock(first);
  unlock(second);
  REQUIRE(third.granted());
  CHECK(written() == 1);
  advance(3ms);
  kept();
  CHECK(written() == 2);
  CHECK(last_note() == "29992: 3 #1 third");
  kept();
  CHECK(written() == 2);
}

TEST_CASE_METHOD(in_turns, "a pass is noted also if the write before it fails") {
  const auto first = hold("a", about("first"));
  const auto second = lock("a", about("second"));
  unlock(first);
  fails(errc::unconfirmed);
  CHECK(last_note() == "29995: 0 #1 second");
}

TEST_CASE_METHOD(in_turns, "a note that was lost with its connection is written when the hold is confirmed") {
  const auto first = hold("a", about("first"));
  const auto second = lock("a", about("second"));
  kept();
  unlock(first);
  REQUIRE(second.granted());
  CHECK(last_note() == "29995: 0 #1 second");
  link_down();
  link_up();
  confirms();
  CHECK(written() == 3);
  CHECK(last_note() == "30000: 0 #1 second");
}

TEST_CASE_METHOD(notes, "an answer after the end of the hold writes nothing more") {
  const auto held = hold("a", about("x"));
  unlock(held);
  CHECK(last_sent().starts_with("release("));
  kept();
  frees();
  CHECK(written() == 1);
  check_nothing_is_left();
}

TEST_CASE_METHOD(notes, "a lost lock is noted no more") {
  const auto lost = hold("a", about("x", {.ttl = 100ms}));
  advance(100ms);
  CHECK(lost.value()->state() == lease_state::lost);
  CHECK(written() == 1);
}

TEST_CASE_METHOD(notes, "a write that no longer fits the queue changes nothing else") {
  const auto held = lock("a", about("x"));
  run();
  server.reply(server.open().front(), replies::nil());
  server.refusal = errc::overloaded;
  run();
  CHECK(held.granted());
  server.refusal.reset();
  heard();
  advance(10s);
  confirms();
  CHECK(last_note() == "30000: 10000 #1 x");
}

TEST_CASE_METHOD(notes, "a lease that is renewed by its user has a note for as long") {
  const auto held = hold("a", about("x", {.ttl = 1s}));
  kept();
  renew(held, 5s);
  confirms();
  CHECK(last_note() == "5000: 0 #1 x");
}

TEST_CASE_METHOD(notes, "holder asks for the note in the same breath, and has it if it is of the holder's field") {
  call<std::optional<lock_holder>> asked;
  const auto a_holder = replies::array({replies::string("u:7"), replies::string("1"), replies::integer(1500)});
  const auto ask = [&] {
    asked = {};
    locks->ask().holder(keys("a"), [&](const auto& answer) { asked.answer(answer.failed, answer.value); });
    REQUIRE(in_flight() == 2);
  };
  ask();
  CHECK(server.sent(0).line() == "GETRANGE holdfast_note:{a} 0 511");
  answers(replies::string("1750000000000 u:7 order 42"));
  CHECK(asked.waits());
  answers(a_holder);
  CHECK(asked.value()->id == "u:7");
  CHECK(asked.value()->since->time_since_epoch() == 1'750'000'000'000ms);
  CHECK(asked.value()->note == "order 42");
  for (const auto& other : {replies::string("1750000000000 u:8 order 42"), replies::string("garbage"), replies::nil(),
                            replies::error("WRONGTYPE"), replies::error("NOPERM")}) {
    ask();
    server.reply(server.open().back(), redis::reply(a_holder));
    run();
    CHECK(asked.waits());
    answers(redis::reply(other));
    CHECK(asked.value()->id == "u:7");
    CHECK_FALSE(asked.value()->since);
    CHECK(asked.value()->note.empty());
  }
  ask();
  fails(errc::unconfirmed);
  answers(replies::nil());
  CHECK_FALSE(asked.value());
}

TEST_CASE_METHOD(notes, "a holder() that waits for its note is answered when the client is closed") {
  call<std::optional<lock_holder>> asked;
  locks->ask().holder(keys("a"), [&](const auto& answer) { asked.answer(answer.failed, answer.value); });
  server.reply(server.open().back(), replies::nil());
  run();
  CHECK(asked.waits());
  close(0s);
  run();
  CHECK(asked.failed_with(errc::shutting_down));
}

TEST_CASE_METHOD(notes, "all of several locks and any of several have the note of their call") {
  const auto all = lock_all({"a", "b"}, about("both"));
  grants();
  REQUIRE(all.granted());
  CHECK(written() == 2);
  const auto any = lock_any({"c"}, about("one"));
  server.reply(server.open().back(), replies::integer(1));
  run();
  REQUIRE(any.granted());
  CHECK(written() == 3);
  CHECK(last_note().ends_with(" one"));
}
