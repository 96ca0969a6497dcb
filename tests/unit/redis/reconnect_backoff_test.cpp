// SPDX-License-Identifier: BSL-1.0
#include "redis/reconnect_backoff.hpp"

#include <deque>

#include "support/catch.hpp"
#include "support/seeded_random.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using redis::reconnect_backoff;

namespace {

constexpr auto start = detail::time_point{} + 1h;

}  // namespace

TEST_CASE("the first attempt is immediate, the second one waits") {
  test::seeded_random random;
  reconnect_backoff pacing(5s);
  CHECK(pacing.not_before() <= start);
  pacing.on_attempt(start, random);
  pacing.on_failed(start, true, random);
  CHECK(pacing.not_before() >= start + 25ms);
  CHECK(pacing.not_before() <= start + 50ms);
}

TEST_CASE("a connection that was up for a second is made again at once") {
  test::seeded_random random;
  reconnect_backoff pacing(5s);
  pacing.on_attempt(start, random);
  pacing.on_ready(start);
  pacing.on_lost(start + 1s, false, random);
  CHECK(pacing.not_before() == start + 1s);
}

TEST_CASE("a connection that was silent for long is made again at once, ten times a second at most") {
  test::seeded_random random;
  reconnect_backoff pacing(5s);
  auto now = start;
  for (int i = 0; i < 9; ++i) {
    pacing.on_attempt(now, random);
    pacing.on_ready(now);
    now += 50ms;
    pacing.on_lost(now, true, random);
    CHECK(pacing.not_before() == now);
  }
  pacing.on_attempt(now, random);
  pacing.on_lost(now, true, random);
  CHECK(pacing.not_before() == start + 1s);
}

TEST_CASE("another server is tried at once, however often the last one was") {
  test::seeded_random random;
  reconnect_backoff pacing(5s);
  for (int i = 0; i < 10; ++i) {
    pacing.on_attempt(start + i * 10ms, random);
    pacing.on_failed(start + i * 10ms, true, random);
  }
  REQUIRE(pacing.not_before() >= start + 1s);
  pacing.forget(start + 100ms);
  CHECK(pacing.not_before() == start + 100ms);
}

TEST_CASE("a connection that was lost early is made again after a short pause") {
  test::seeded_random random;
  reconnect_backoff pacing(5s);
  for (int i = 0; i < 8; ++i) {
    pacing.on_attempt(start, random);
    pacing.on_failed(start, true, random);
  }
  pacing.on_attempt(start + 10s, random);
  pacing.on_ready(start + 10s);
  pacing.on_lost(start + 10s + 100ms, false, random);
  CHECK(pacing.not_before() >= start + 10s + 125ms);
  CHECK(pacing.not_before() <= start + 10s + 150ms);
  auto now = pacing.not_before();
  for (int i = 0; i < 100; ++i) {
    pacing.on_attempt(now, random);
    pacing.on_ready(now);
    now += 10ms;
    pacing.on_lost(now, false, random);
    CHECK(pacing.not_before() >= now + 25ms);
    if (i > 10) CHECK(pacing.not_before() <= now + 1s);
    now = pacing.not_before();
  }
}

TEST_CASE("what does not mend itself is not tried more than once a second") {
  test::seeded_random random;
  reconnect_backoff pacing(50ms);
  pacing.on_attempt(start, random);
  pacing.on_failed(start, false, random);
  CHECK(pacing.not_before() == start + 1s);
}

TEST_CASE("an outage is probed with pauses up to the cap") {
  test::seeded_random random;
  reconnect_backoff pacing(400ms);
  auto now = start;
  for (int i = 0; i < 200; ++i) {
    pacing.on_attempt(now, random);
    pacing.on_failed(now, true, random);
    CHECK(pacing.not_before() - now <= 1s);
    if (i > 50) CHECK(pacing.not_before() - now <= 400ms);
    now = pacing.not_before();
  }
}

TEST_CASE("a flapping link sees at most ten attempts in any second") {
  test::seeded_random random(11);
  reconnect_backoff pacing(5s);
  std::deque<detail::time_point> attempts;
  auto now = start;
  for (int i = 0; i < 2000; ++i) {
    now = std::max(now, pacing.not_before());
    attempts.push_back(now);
    if (attempts.size() > 10) {
      CHECK(attempts.back() - attempts.front() >= 1s);
      attempts.pop_front();
    }
    pacing.on_attempt(now, random);
    now += random.up_to(5ms);
    if (random.next() % 2 == 0) {
      pacing.on_ready(now);
      now += random.up_to(100ms);
      pacing.on_lost(now, false, random);
    } else {
      pacing.on_failed(now, true, random);
    }
  }
}
