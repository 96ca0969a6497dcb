// SPDX-License-Identifier: BSL-1.0
// Cancels an operation after the first, second, … handler that the context runs for it, until it completes before the
// cancellation comes: every suspension point, found by the test itself. After each nothing may be left, in Redis or
// here.
#include "integration/cancel_everywhere.hpp"

#include <optional>

#include "support/redisson_peer.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("a lock cancelled anywhere leaves nothing") {
  world w;
  auto make = [](client& redis) -> step {
    return [&redis]() -> asio::awaitable<void> { auto held = co_await redis.mutex("m").lock(); };
  };
  cancel_everywhere("lock", w, make, [](client&) {});
}

TEST_CASE("a lock that waits for another holder cancelled anywhere leaves nothing") {
  world w;
  redisson_peer java(w.server);
  auto make = [&](client& redis) -> step {
    REQUIRE(java.try_lock("m", 40ms));
    return [&redis]() -> asio::awaitable<void> { auto held = co_await redis.mutex("m").lock(); };
  };
  auto settle = [&](client&) { w.until([&] { return w.eye("EXISTS", "m") == 0; }); };
  cancel_everywhere("contended lock", w, make, settle);
}

TEST_CASE("a waiter for several permits cancelled anywhere leaves no permit and no door") {
  static constexpr unsigned all = 3;
  const std::string strangers = "0123456789abcdef";
  world w;
  auto make = [&](client& redis) -> step {
    constexpr auto* now = "local t = redis.call('time') return t[1] * 1000 + math.floor(t[2] / 1000)";
    const auto ends = w.eye("EVAL", now, 0).integer() + 40;
    w.eye("SET", "s", all - 1);
    w.eye("ZADD", "{s}:timeout", ends, strangers);
    return
        [&redis]() -> asio::awaitable<void> { auto held = co_await redis.expirable_semaphore("s", all).acquire(all); };
  };
  auto settle = [&](client&) {
    w.eye("PERSIST", "holdfast_turn:{s}");  // so that a door which stays is not opened by its TTL
    if (w.eye("ZREM", "{s}:timeout", strangers) == 1) w.eye("INCR", "s");
    w.until([&] { return w.eye("ZCARD", "{s}:timeout") == 0; });
    CHECK(w.eye("GET", "s").integer() == all);
    w.until([&] { return w.eye("EXISTS", "holdfast_turn:{s}") == 0; });
    w.eye("DEL", "s");
  };
  cancel_everywhere("acquire of several", w, make, settle);
}

TEST_CASE("a caller that arrives at a latch cancelled anywhere leaves a mark alone") {
  world w;
  auto make = [&](client& redis) -> step {
    w.eye("SET", "l", 2);
    return [&redis]() -> asio::awaitable<void> { co_await redis.latch("l").arrive_and_wait(2); };
  };
  auto settle = [&](client&) { w.eye("DEL", "l"); };
  cancel_everywhere("arrive_and_wait", w, make, settle);
}

TEST_CASE("a proclamation cancelled anywhere leaves the lead, and nothing else") {
  world w;
  std::optional<lease> lead;
  auto make = [&](client& redis) -> step {
    lead.emplace(w.run(redis.election("e").campaign("one")));
    return [&]() -> asio::awaitable<void> { co_await redis.election("e").proclaim(*lead, "two"); };
  };
  auto settle = [&](client&) {
    CHECK(lead->held());
    w.run(lead->unlock());
  };
  cancel_everywhere("proclaim", w, make, settle);
}

TEST_CASE("an observer of a leader whose TTL ends cancelled anywhere leaves nothing") {
  world w;
  const leader_info known{.term = 7, .value = "v", .id = "57a9e700-0000-8000-8000-000000000000:1"};
  auto make = [&](client& redis) -> step {
    w.eye("HSET", "e", known.id, 1, "leader", known.value, "term", 7);
    w.eye("PEXPIRE", "e", 15);
    return [&]() -> asio::awaitable<void> { (void)co_await redis.election("e").next(known); };
  };
  auto settle = [&](client&) { w.eye("DEL", "e"); };
  cancel_everywhere("next", w, make, settle);
}

TEST_CASE("a bounded wait for a latch cancelled anywhere leaves nothing") {
  constexpr auto wait = 15ms;
  world w;
  auto make = [&](client& redis) -> step {
    w.eye("SET", "l", 1);
    return [&redis, wait]() -> asio::awaitable<void> { co_await redis.latch("l").wait_for(wait); };
  };
  auto settle = [&](client&) { w.eye("DEL", "l"); };
  cancel_everywhere("wait_for", w, make, settle, {wait, errc::unreachable});
}

TEST_CASE("a bounded wait cancelled anywhere leaves nothing") {
  constexpr auto wait = 15ms;
  world w;
  redisson_peer java(w.server);
  auto make = [&](client& redis) -> step {
    REQUIRE(java.try_lock("m", 60s));
    return [&redis, wait]() -> asio::awaitable<void> { auto held = co_await redis.mutex("m").try_lock_for(wait); };
  };
  auto settle = [&](client&) { java.force_unlock("m"); };
  cancel_everywhere("try_lock_for", w, make, settle, {wait, errc::unreachable});
}

TEST_CASE("a re-entry cancelled anywhere leaves the outer hold and its count") {
  world w;
  const owner me;
  std::optional<lease> outer;
  auto make = [&](client& redis) -> step {
    outer.emplace(w.run(redis.mutex("m", me).lock()));
    return [&]() -> asio::awaitable<void> { auto inner = co_await redis.mutex("m", me).lock({.ttl = 1h}); };
  };
  auto settle = [&](client&) {
    w.until([&] { return w.eye("HVALS", "m").strings() == std::vector<std::string>{"1"}; });
    CHECK(outer->held());
    w.run(outer->unlock());
    outer.reset();
  };
  cancel_everywhere("re-entry", w, make, settle);
}

TEST_CASE("an unlock cancelled anywhere goes on in the background") {
  world w;
  std::optional<lease> held;
  auto make = [&](client& redis) -> step {
    held.emplace(w.run(redis.mutex("m").lock()));
    return [&]() -> asio::awaitable<void> { co_await held->unlock(); };
  };
  cancel_everywhere("unlock", w, make, [&](client&) { held.reset(); });
}

TEST_CASE("a renewal cancelled anywhere leaves the hold") {
  world w;
  std::optional<lease> held;
  auto make = [&](client& redis) -> step {
    held.emplace(w.run(redis.mutex("m").lock()));
    return [&]() -> asio::awaitable<void> { co_await held->renew(); };
  };
  auto settle = [&](client&) {
    CHECK(held->held());
    w.run(held->unlock());
    held.reset();
  };
  cancel_everywhere("renew", w, make, settle);
}

TEST_CASE("a downgrade cancelled anywhere leaves nothing, and a lease that it left held still writes") {
  world w;
  std::optional<lease> held;
  auto make = [&](client& redis) -> step {
    held.emplace(w.run(redis.shared_mutex("m").lock()));
    const auto lock = redis.shared_mutex("m");
    return [&, lock]() -> asio::awaitable<void> { co_await lock.downgrade(*held); };
  };
  auto settle = [&](client& redis) {
    const auto writes = w.run(redis.shared_mutex("m").holder());
    if (held->held()) CHECK((writes || w.run(redis.shared_mutex("m").read_holds()) == 1));
    held.reset();
  };
  cancel_everywhere("downgrade", w, make, settle);
}

TEST_CASE("with_lock cancelled anywhere leaves nothing") {
  world w;
  auto make = [](client& redis) -> step {
    return [&redis]() -> asio::awaitable<void> {
      auto body = [&redis](lease&) -> asio::awaitable<void> {
        auto inner = co_await redis.mutex("m").lock();
        co_await inner.unlock();
      };
      co_await with_lock(redis.mutex("m"), body);
    };
  };
  cancel_everywhere("with_lock", w, make, [](client&) {});
}

TEST_CASE("with_lock after a bounded wait cancelled anywhere leaves nothing") {
  world w;
  auto make = [](client& redis) -> step {
    return [&redis]() -> asio::awaitable<void> {
      auto body = [](lease&) -> asio::awaitable<int> { co_return 7; };
      (void)co_await try_with_lock_for(redis.mutex("m"), 1h, body);
    };
  };
  cancel_everywhere("try_with_lock_for", w, make, [](client&) {});
}

TEST_CASE("a body under a lease that is held already cancelled anywhere leaves the hold") {
  world w;
  std::optional<lease> held;
  auto make = [&](client& redis) -> step {
    held.emplace(w.run(redis.mutex("m").lock()));
    return [&]() -> asio::awaitable<void> {
      auto body = [](lease&) -> asio::awaitable<void> { co_await asio::post(asio::use_awaitable); };
      co_await with_lock(*held, body);
    };
  };
  auto settle = [&](client&) {
    CHECK(held->held());
    w.run(held->unlock());
    held.reset();
  };
  cancel_everywhere("with_lock of a lease", w, make, settle);
}
