// SPDX-License-Identifier: BSL-1.0
// Questions about a lock, and force_unlock().
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE_METHOD(engine_fixture, "is_locked asks for the key") {
  verb_call asked;
  const auto ask = [&] {
    asked = {};
    locks->ask().is_locked(keys("a"), [&](const auto& answer) { asked.answer(answer.failed, answer.value); });
  };
  ask();
  CHECK(server.last().line() == "EXISTS a");
  answers(replies::integer(1));
  CHECK(asked.value());
  ask();
  fails(errc::unconfirmed);
  answers(replies::integer(0));
  CHECK_FALSE(asked.value());
  ask();
  fails(errc::unconfirmed);
  fails(errc::unconfirmed);
  CHECK(asked.failed_with(errc::unreachable));
  ask();
  errs("NOPERM no");
  CHECK(asked.failed_with(errc::no_permission));
}

TEST_CASE_METHOD(engine_fixture, "Redis says whether an owner holds, and its client how often") {
  const owner alice;
  const auto a = hold("a", by(alice));
  std::optional<unsigned> count;
  const auto ask = [&](owner holder) {
    count.reset();
    locks->hold_count(keys("a"), holder, [&](const auto& answer) {
      if (!answer.failed) count = answer.value;
    });
  };
  ask(owner());
  CHECK(count == 0U);
  ask(alice);
  CHECK(server.last().line() == "HGET a " + uuid + ":1");
  answers(replies::string("3"));
  CHECK(count == 1U);
  const auto inner = lock("a", by(alice));
  ask(alice);
  server.reply(server.open().at(1), replies::string("1"));  // before the count was told
  run();
  CHECK(count == 2U);
  reenters();
  ask(alice);
  answers(replies::nil());
  CHECK(count == 0U);
  ask(alice);
  unlock(inner);
  unlock(a);  // its leases are gone, and the answer is older
  answers(replies::string("2"));
  CHECK(count == 2U);
}

TEST_CASE_METHOD(engine_fixture, "holder asks once more if the first answer is lost") {
  call<std::optional<lock_holder>> asked;
  const auto ask = [&] {
    asked = {};
    locks->ask().holder(keys("a"), [&](const auto& answer) { asked.answer(answer.failed, answer.value); });
  };
  const auto a_holder = replies::array({replies::string("u:7"), replies::string("2"), replies::integer(1500)});
  ask();
  CHECK(server.last().argv.at(1) == detail::lua::holder.sha1);
  fails(errc::unconfirmed);
  answers(a_holder);
  CHECK(asked.value()->id == "u:7");
  CHECK(asked.value()->count == 2);
  CHECK(asked.value()->ttl == 1500ms);
  ask();
  answers(replies::nil());
  CHECK_FALSE(asked.value());
  ask();
  fails(errc::unconfirmed);
  fails(errc::unconfirmed);
  CHECK(asked.failed_with(errc::unreachable));
  ask();
  answers(replies::integer(3));
  CHECK(asked.failed_with(errc::corrupt_lock));
}

TEST_CASE_METHOD(engine_fixture, "remaining_ttl asks for the key's TTL") {
  std::optional<milliseconds> ttl;
  error_code error;
  const auto ask = [&] {
    locks->ask().remaining_ttl(keys("a"), [&](const auto& answer) {
      error = redis::error_of(answer.failed);
      ttl = answer.value;
    });
  };
  ask();
  CHECK(server.last().line() == "PTTL a");
  answers(replies::integer(1500));
  CHECK(ttl == 1500ms);
  ask();
  answers(replies::integer(-2));
  CHECK_FALSE(ttl);
  ask();
  answers(replies::integer(-1));
  CHECK(ttl == milliseconds::max());
}

TEST_CASE_METHOD(engine_fixture, "force_unlock says whether there was a hold and wakes who waits here") {
  const auto waiting = lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  const auto forced = force_unlock("a");
  CHECK(last_sent() == "force_release(a; publish, redisson_lock__channel:{a})");
  answers(replies::integer(1));
  CHECK(forced.value());
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  grants();
  CHECK(waiting.granted());
  const auto none = force_unlock("b");
  answers(replies::integer(0));
  CHECK_FALSE(none.value());
}

TEST_CASE_METHOD(engine_fixture,
                 "a force_unlock whose first answer was lost believes the second only if it found a hold") {
  const auto forced = force_unlock("a");
  fails(errc::unconfirmed);
  CHECK(sent("force_release") == 2);
  SECTION("it did") {
    answers(replies::integer(1));
    CHECK(forced.succeeded());
    CHECK(forced.value());
  }
  SECTION("it found nothing: the first may have broken one") {
    answers(replies::integer(0));
    CHECK(forced.failed_with(errc::unconfirmed));
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a hold of ours that is force-unlocked here finds out at once") {
  const auto a = hold("a"), waiting = lock("a");
  force_unlock("a");
  answers(replies::integer(1));
  advance(0ms);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  confirms_nothing();
  CHECK(state(a) == lease_state::lost);
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(engine_fixture,
                 "a hold of ours that is force-unlocked elsewhere finds out by the message when somebody waits") {
  const auto a = hold("a"), waiting = lock("a");
  acknowledges("a");
  publishes("a");
  advance(20ms);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  confirms_nothing();
  CHECK(state(a) == lease_state::lost);
  grants();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(engine_fixture, "the echo of the last holder's release costs a short hold nothing") {
  const auto first = hold("a"), second = lock("a"), third = lock("a");
  acknowledges("a");
  unlock(first);
  frees();
  grants();
  publishes("a");
  advance(19ms);
  unlock(second);
  frees();
  grants();
  CHECK(third.granted());
  CHECK(sent("renew") == 0);
}
