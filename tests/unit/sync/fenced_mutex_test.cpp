// SPDX-License-Identifier: BSL-1.0
#include "support/catch.hpp"

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

const owner me;

struct fixture : engine_fixture {
  lock_call hold_fenced(const std::string& name, long long token, std::optional<owner> who = {}) {
    auto c = lock(name, fenced(who));
    grants_token(token);
    REQUIRE(c.granted());
    return c;
  }
};

std::optional<std::uint64_t> token_of(const lock_call& c) { return c.value()->of->token(); }

}  // namespace

TEST_CASE_METHOD(fixture, "a fenced lock is one command that names the token's key") {
  const auto a = lock("a", fenced());
  CHECK(last_sent() == "acquire_fenced(a, redisson_lock_token:{a}; 30000, #1)");
  grants_token(41);
  CHECK(token_of(a) == 41);
}

TEST_CASE_METHOD(fixture, "a plain lock has no token") {
  const auto a = hold("a");
  CHECK(token_of(a) == std::nullopt);
}

TEST_CASE_METHOD(fixture, "a re-entry of a fenced hold keeps its token, whichever kind re-enters") {
  const auto outer = hold_fenced("a", 41, me);
  const auto inner = lock("a", fenced(me));
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
  reenters();
  REQUIRE(inner.granted());
  CHECK(token_of(inner) == 41);
  const auto plain = lock("a", by(me));
  reenters();
  REQUIRE(plain.granted());
  CHECK(token_of(plain) == 41);
}

TEST_CASE_METHOD(fixture, "a fenced re-entry of a hold without token is refused, and the hold goes on") {
  const auto outer = hold("a", by(me));
  const auto inner = lock("a", fenced(me));
  CHECK(inner.error() == errc::already_held);
  CHECK(outer.value()->of->exclusive());
  CHECK(sent("set_hold_count") == 0);
  unlock(outer);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "fenced and plain callers of one name wait in one line") {
  const auto first = hold_fenced("a", 41);
  const auto second = lock("a");
  const auto third = lock("a", fenced());
  unlock(first);
  frees();
  grants();
  CHECK(second.granted());
  CHECK_FALSE(third.granted());
  unlock(second);
  frees();
  grants_token(42);
  REQUIRE(third.granted());
  CHECK(token_of(third) == 42);
}

TEST_CASE_METHOD(fixture, "a busy fenced lock is waited for as a plain one") {
  const auto a = lock("a", fenced());
  busy(10s);
  acknowledges("a");
  busy(10s);
  publishes("a");
  grants_token(7);
  CHECK(token_of(a) == 7);
}

TEST_CASE_METHOD(fixture, "a fenced grant that is repeated after silence is asked for with the same field") {
  const auto a = lock("a", fenced());
  fails(errc::unconfirmed);
  advance(1s);
  CHECK(last_sent() == "acquire_fenced(a, redisson_lock_token:{a}; 30000, #1)");
  grants_token(8);
  CHECK(token_of(a) == 8);
}

TEST_CASE_METHOD(fixture, "a fenced grant without a token is a protocol error") {
  const auto a = lock("a", fenced());
  grants();
  CHECK(a.error() == errc::protocol_error);
}

TEST_CASE_METHOD(fixture, "a counter that is no number is a corrupt lock") {
  const auto a = lock("a", fenced());
  errs("HOLDFAST invalid token");
  CHECK(a.error() == errc::corrupt_lock);
}

TEST_CASE_METHOD(fixture, "a client whose counters end says for how long each grant keeps them") {
  settings.token_ttl = 24h;
  lock("a", fenced());
  CHECK(last_sent() == "acquire_fenced(a, redisson_lock_token:{a}; 30000, #1, 1, 86400000)");
  lock_any({"b"}, fenced());
  CHECK(last_sent() == "acquire_any_fenced(b, redisson_lock_token:{b}; 30000, #2, 86400000)");
  lock_all({"c", "d"}, fenced());
  CHECK(last_sent() ==
        "acquire_all_fenced(c, d, redisson_lock_token:{c}, redisson_lock_token:{d}; 30000, #3, #4, 86400000)");
  lock("e");
  CHECK(last_sent() == "acquire(e; 30000, #5)");
}

TEST_CASE_METHOD(fixture, "a counter lives for twice the TTL of its lock at least") {
  settings.token_ttl = 60s;
  auto long_one = fenced();
  long_one.options = {.ttl = 1h};
  lock("a", long_one);
  CHECK(last_sent() == "acquire_fenced(a, redisson_lock_token:{a}; 3600000, #1, 1, 7200000)");
}
