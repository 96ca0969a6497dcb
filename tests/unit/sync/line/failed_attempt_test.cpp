// SPDX-License-Identifier: BSL-1.0
// Attempts and subscriptions that Redis refuses or does not answer.
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr auto backoff = 20ms;  // the first pause; without jitter every pause

}  // namespace

TEST_CASE_METHOD(engine_fixture, "a lock without TTL is corrupt") {
  const auto a = lock("a");
  answers(replies::integer(-1));
  CHECK(a.failed_with(errc::corrupt_lock));
  CHECK(heard() == "acquire_failed");
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a key of another type is corrupt") {
  const auto a = lock("a");
  errs("WRONGTYPE Operation against a key holding the wrong kind of value");
  CHECK(a.failed_with(errc::corrupt_lock));
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a failure of one waiter leaves the next to try for itself") {
  const auto a = lock("a");
  const auto b = lock("a");
  answers(replies::integer(-1));
  CHECK(a.failed_with(errc::corrupt_lock));
  CHECK(b.waits());
  grants();
  CHECK(b.granted());
}

namespace {

struct failure_case {
  redis::reply reply;
  errc connection{};  // instead of a reply
  errc code;
  bool lock_waits;
};
const failure_case failures[] = {
    {replies::error("OOM command not allowed when used memory > 'maxmemory'."), {}, errc::server_refused, true},
    {replies::error("NOREPLICAS Not enough good replicas to write."), {}, errc::server_refused, true},
    {replies::error("MISCONF Redis is configured to save RDB snapshots"), {}, errc::server_refused, true},
    {replies::error("LOADING Redis is loading the dataset in memory"), {}, errc::server_refused, true},
    {replies::error("BUSY Redis is busy running a script."), {}, errc::server_refused, true},
    {replies::error("ERR anything else"), {}, errc::server_refused, true},
    {replies::error("READONLY You can't write against a read only replica."), {}, errc::not_primary, false},
    {replies::error("NOAUTH Authentication required."), {}, errc::auth_failed, false},
    {replies::error("NOPERM this user has no permissions"), {}, errc::no_permission, false},
    {replies::error("WRONGTYPE Operation against a key"), {}, errc::corrupt_lock, false},
    {{}, errc::unreachable, errc::unreachable, true},
    {{}, errc::unconfirmed, errc::unreachable, true},
    {{}, errc::server_refused, errc::server_refused, true},
    {{}, errc::auth_failed, errc::auth_failed, false},
    {{}, errc::no_permission, errc::no_permission, false},
    {{}, errc::not_primary, errc::not_primary, false},
    {{}, errc::tls_failed, errc::tls_failed, false},
    {{}, errc::protocol_error, errc::protocol_error, false},
    {{}, errc::overloaded, errc::overloaded, false},
    {{}, errc::closed, errc::closed, false},
};

void give(engine_fixture& f, const failure_case& c) {
  if (c.connection == errc{})
    f.answers(c.reply);
  else
    f.fails(c.connection);
}

}  // namespace

TEST_CASE("lock waits through what may mend itself and fails at once with the rest") {
  for (const auto& c : failures) {
    CAPTURE(c.reply.text, error_code(c.code).message());
    engine_fixture f;
    const auto a = f.lock("a");
    give(f, c);
    if (c.lock_waits) {
      CHECK(a.waits());
      f.advance(backoff);
      f.grants();
      CHECK(a.granted());
    } else {
      CHECK(a.failed_with(c.code));
      CHECK(f.timers.idle());
      CHECK(f.locks->idle());
    }
  }
}

TEST_CASE_METHOD(engine_fixture, "an answer of an unexpected form fails and what it may have granted is given back") {
  const auto a = lock("a");
  answers(replies::status("OK"));
  CHECK(a.failed_with(errc::protocol_error));
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  not_yours();
  check_nothing_is_left();
}

TEST_CASE("try_lock fails with every error at once") {
  for (const auto& c : failures) {
    CAPTURE(c.reply.text, error_code(c.code).message());
    engine_fixture f;
    const auto a = f.try_lock("a");
    give(f, c);
    if (c.connection == errc::unconfirmed) f.fails(errc::unconfirmed);  // it was sent once more
    CHECK(a.failed_with(c.code));
    if (c.connection == errc::unconfirmed) f.not_yours();
    f.check_nothing_is_left();
  }
}

TEST_CASE_METHOD(engine_fixture,
                 "a try_lock whose connection ends is sent once more under its field, in its own time") {
  const auto a = try_lock("a");
  advance(100ms);
  fails(errc::unconfirmed);
  CHECK(a.waits());
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  CHECK(unanswered().timeout == 400ms);
  SECTION("and granted") {
    grants();
    CHECK(a.granted());
    unlock(a);
    CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  }
  SECTION("and busy") {
    busy(10s);
    CHECK(a.refused());
    not_yours();
    check_nothing_is_left();
  }
  SECTION("and not a third time") {
    advance(100ms);
    fails(errc::unconfirmed);
    CHECK(a.failed_with(errc::unreachable));
    frees();
    check_nothing_is_left();
  }
}

TEST_CASE_METHOD(engine_fixture, "a try_lock whose time is over is not sent once more") {
  const auto a = try_lock("a");
  advance(500ms);
  CHECK(a.failed_with(errc::unreachable));
  CHECK(sent("acquire") == 1);
  frees();
  check_nothing_is_left();
}

TEST_CASE("try_lock_for waits for what may mend itself until its deadline") {
  for (const auto& c : failures) {
    CAPTURE(c.reply.text, error_code(c.code).message());
    engine_fixture f;
    const auto a = f.try_lock_for("a", 10ms);
    give(f, c);
    CHECK(a.waits() == c.lock_waits);
    f.advance(10ms);
    CHECK(a.failed_with(c.code));
    if (c.connection == errc::unconfirmed) f.not_yours();
    f.check_nothing_is_left();
  }
}

TEST_CASE_METHOD(engine_fixture,
                 "pauses between failed tries grow from 20 ms to a second and start anew after an answer") {
  random.number = ~0ULL;  // anything: only bounds are checked
  const auto a = lock("a");
  nanoseconds longest{};
  for (int i = 0; i < 40; ++i) {
    errs("LOADING Redis is loading the dataset in memory");
    REQUIRE(timers.next_due());
    const auto pause = *timers.next_due() - clock.now();
    CHECK(pause >= 20ms);
    CHECK(pause <= 1s);
    if (i == 0) CHECK(pause == 20ms);
    longest = std::max(longest, pause);
    random.number = random.number * 6364136223846793005 + 1442695040888963407;
    advance(pause);
  }
  CHECK(longest > 500ms);
  busy(10s);
  acknowledges("a");
  errs("LOADING Redis is loading the dataset in memory");
  CHECK(*timers.next_due() - clock.now() == 20ms);
}

TEST_CASE_METHOD(engine_fixture, "a refused subscription fails the waiter") {
  const auto a = lock("a");
  busy(10s);
  server.refuse(channel("a"), errc::no_permission, "NOPERM this user has no permissions to access one of the channels");
  run();
  CHECK(a.failed_with(errc::no_permission));
  CHECK(a.detail().starts_with("NOPERM"));
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "each waiter subscribes anew after a refusal") {
  const auto a = lock("a");
  const auto b = lock("a");
  busy(10s);
  server.refuse(channel("a"), errc::no_permission);
  run();
  CHECK(a.failed_with(errc::no_permission));
  busy(10s);
  CHECK(subscribers("a") == 1);
  acknowledges("a");
  grants();
  CHECK(b.granted());
}
