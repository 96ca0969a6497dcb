// SPDX-License-Identifier: BSL-1.0
// Grants that come late, or twice.
#include <boost/asio/error.hpp>

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
namespace asio = boost::asio;

namespace {

constexpr auto backoff = 20ms;  // the first pause; without jitter every pause

}  // namespace

TEST_CASE_METHOD(engine_fixture, "the validity of a grant counts from before its command was queued") {
  const auto a = lock("a");
  const auto asked = clock.now();
  advance(400ms);
  grants();
  CHECK(a.value()->of->valid_until() == asked + 30s - 302ms);
}

TEST_CASE_METHOD(engine_fixture, "a grant after SCRIPT FLUSH counts from the send of the text") {
  const auto a = lock("a");
  const auto asked = clock.now();
  advance(100ms);
  errs("NOSCRIPT No matching script. Please use EVAL.");
  CHECK(server.last().argv[0] == "EVAL");
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  CHECK(server.last().timeout == 500ms);
  advance(100ms);
  grants();
  CHECK(a.value()->of->valid_until() == asked + 100ms + 30s - 302ms);
}

TEST_CASE_METHOD(engine_fixture, "NOSCRIPT to EVAL as well is no endless loop") {
  const auto a = try_lock("a");
  errs("NOSCRIPT No matching script.");
  errs("NOSCRIPT No matching script.");
  CHECK(a.failed_with(errc::server_refused));
  CHECK(server.count() == 2);
}

TEST_CASE_METHOD(engine_fixture,
                 "a grant with less than the least validity is given back and tried again under a new field") {
  const auto a = lock("a", with({.ttl = 1s}));  // valid for 988 ms, of which 50 ms are the least
  timers.on_step = nullptr;
  server.reply(0, replies::nil());
  clock.skip(938ms);
  run();
  CHECK(a.waits());
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  frees();
  CHECK(last_sent() == "acquire(a; 1000, #2)");
  grants();
  CHECK(a.granted());
}

TEST_CASE_METHOD(engine_fixture, "a grant with just the least validity is a grant") {
  const auto a = lock("a", with({.ttl = 1s}));
  timers.on_step = nullptr;
  server.reply(0, replies::nil());
  clock.skip(938ms - 1ns);
  run();
  CHECK(a.granted());
}

TEST_CASE_METHOD(engine_fixture, "try_lock answers unreachable when its grant comes too late") {
  const auto a = try_lock("a", with({.ttl = 1s}));
  timers.on_step = nullptr;
  server.reply(0, replies::nil());
  clock.skip(940ms);
  run();
  CHECK(a.failed_with(errc::unreachable));
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "an attempt without an answer is repeated under the same field") {
  const auto a = lock("a");
  fails(errc::unconfirmed);
  advance(backoff);
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  grants();
  CHECK(a.granted());
  unlock(a);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
}

TEST_CASE_METHOD(engine_fixture, "an attempt without an answer that is busy later is given back when the wait ends") {
  const auto a = lock("a");
  fails(errc::unconfirmed);
  advance(backoff);
  busy(10s);
  a.cancel();
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  not_yours();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture,
                 "an attempt without an answer is given back when its waiter is cancelled while it backs off") {
  const auto a = lock("a");
  fails(errc::unconfirmed);
  a.cancel();
  CHECK(a.failed_with(asio::error::operation_aborted));
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "an attempt that was never written needs nothing given back") {
  link_down();
  const auto a = lock("a");
  advance(500ms);
  a.cancel();
  CHECK(server.count() == 1);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "NOSCRIPT that arrives after the cancellation does not send the script") {
  const auto a = lock("a");
  a.cancel();
  CHECK(in_flight() == 2);
  errs("NOSCRIPT No matching script.");
  CHECK(sent("acquire") == 1);
  not_yours();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a grant that arrives after the cancellation is undone by the release behind it") {
  const auto a = lock("a");
  a.cancel();
  CHECK(a.failed_with(asio::error::operation_aborted));
  CHECK(wire(1) == "release(a; publish, redisson_lock__channel:{a}, #1)");
  grants();
  frees();
  CHECK(heard() == "acquire_cancelled released_late");
  check_nothing_is_left();
}
