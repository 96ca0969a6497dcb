// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "integration/every_kind.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

const auto with_turns = [](config& c) { c.turns = true; };

/// Who has had the lock, one after the other; never two at a time.
struct section {
  std::vector<int> had;
  int inside = 0, left = 0;

  asio::awaitable<void> enter(mutex m, int who, int rounds) {
    ++left;
    for (; rounds > 0; --rounds) {
      lease held = co_await m.lock();
      CHECK(++inside == 1);
      CHECK(held.held());
      had.push_back(who);
      co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
      --inside;
      co_await held.unlock();
    }
    --left;
  }
};

}  // namespace

TEST_CASE("waiters of a client get a lock in their order, most of them by a pass, and the server sees one owner") {
  world w;
  auto redis = w.make(with_turns);
  section s;
  // A turn lasts for 20 ms at most: on a machine that stands still for so long nothing is passed on in a round.
  w.until([&] {
    auto held = w.run(redis.mutex("m").lock());
    s.had.clear();
    for (int who = 0; who < 5; ++who) asio::co_spawn(w.io, s.enter(redis.mutex("m"), who, 1), asio::detached);
    w.pass(1ms);
    const auto owner = w.eye("HKEYS", "m").strings();
    w.run(held.unlock());
    w.until([&] { return s.left == 0; });
    CHECK(s.had == std::vector{0, 1, 2, 3, 4});
    CHECK(owner == std::vector{held.id()});
    return w.heard->count(event_kind::passed) > 0;
  });
  CHECK(w.keys().empty());
  CHECK(w.heard->count(event_kind::acquired) ==
        w.heard->count(event_kind::passed) + w.heard->count(event_kind::released));
}

TEST_CASE("each hold of a fenced_mutex has a larger token, whether it was passed on or granted, whoever grants next") {
  world w;
  auto redis = w.make(with_turns), other = w.make([](config& c) { c.turns = false; });
  std::vector<std::uint64_t> tokens;
  const auto take = [&tokens](fenced_mutex m, lease& into) -> asio::awaitable<void> {
    into = co_await m.lock();
    tokens.push_back(into.token().value());
  };
  const auto clock_us = [&w] {
    const auto time = w.eye("TIME").strings();
    return std::stoull(time.at(0)) * 1'000'000 + std::stoull(time.at(1));
  };
  w.until([&] {
    // A grant within a millisecond of another has one token.
    w.until([&] { return tokens.empty() || clock_us() > tokens.back() + 1'000; });
    auto first = w.run(redis.fenced_mutex("m").lock());
    tokens.push_back(first.token().value());
    lease second;
    asio::co_spawn(w.io, take(redis.fenced_mutex("m"), second), asio::detached);
    w.pass(1ms);
    w.run(first.unlock());
    w.until([&] { return second.held(); });
    const bool passed = second.id() == first.id() + "/1";
    if (passed) CHECK(second.token() == *first.token() + 1);
    CHECK(w.run(redis.fenced_mutex("m").last_token()) >= second.token());
    w.run(second.unlock());
    for (auto* c : {&other, &redis}) {
      auto next = w.run(c->fenced_mutex("m").lock());
      tokens.push_back(next.token().value());
      w.run(next.unlock());
    }
    return passed;
  });
  CHECK(std::is_sorted(tokens.begin(), tokens.end()));
  CHECK(std::adjacent_find(tokens.begin(), tokens.end()) == tokens.end());
}

TEST_CASE("clients that take turns exclude each other, and each comes to its end") {
  world w;
  std::vector<client> clients;
  for (int n = 0; n < 3; ++n) clients.push_back(w.make(with_turns));
  section s;
  for (auto& redis : clients)
    for (int who = 0; who < 4; ++who) asio::co_spawn(w.io, s.enter(redis.mutex("m"), who, 25), asio::detached);
  w.pass(1ms);
  w.until([&] { return s.left == 0; }, 60s);
  CHECK(s.had.size() == 300);
  CHECK(w.heard->count(event_kind::lost) == 0);
  CHECK(w.keys().empty());
}

TEST_CASE("a hold that was passed on is lost like any other, and the next waiter gets the lock from Redis") {
  world w;
  auto redis = w.make(with_turns);
  lease second, third;
  const auto take = [](mutex m, lease& into) -> asio::awaitable<void> { into = co_await m.lock(); };
  // Once in a round that the machine does not stand still in.
  w.until([&] {
    auto first = w.run(redis.mutex("m").lock());
    asio::co_spawn(w.io, take(redis.mutex("m"), second), asio::detached);
    w.pass(1ms);
    w.run(first.unlock());
    w.until([&] { return second.held(); });
    const bool passed = second.id() == first.id() + "/1";
    if (!passed) w.run(second.unlock());
    return passed;
  });
  asio::co_spawn(w.io, take(redis.mutex("m"), third), asio::detached);
  w.pass(1ms);
  w.eye("DEL", "m");
  CHECK(w.code_of(second.renew()) == errc::lost);
  CHECK(second.state() == lease_state::lost);
  w.until([&] { return third.held(); });
  CHECK(third.id() != second.id());
  w.run(third.unlock());
  CHECK(w.keys().empty());
}

TEST_CASE("a lock of every kind is passed on by a client that takes turns, and by no other") {
  of_every_kind([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    bool passed = false;
    const auto take = [](mutex m, lease& into) -> asio::awaitable<void> { into = co_await m.lock(); };
    // Once in a round that the machine does not stand still in.
    w.until([&] {
      auto first = w.run(k(redis).lock());
      lease second;
      asio::co_spawn(w.io, take(k(redis), second), asio::detached);
      w.pass(1ms);
      w.run(first.unlock());
      w.until([&] { return second.held(); });
      passed = second.id() == std::string(first.id()) + "/1";
      w.run(second.unlock());
      return passed || !k.turns;
    });
    CHECK(passed == k.turns);
    CHECK(w.locks().empty());
  });
}

TEST_CASE("who looks at a simple_mutex now and then comes to it, though a client passes it on among many") {
  world w;
  auto redis = w.make(with_turns);
  section s;
  bool enough = false;
  const auto again_and_again = [&]() -> asio::awaitable<void> {
    while (!enough) co_await s.enter(redis.simple_mutex("m"), 0, 1);
  };
  for (int n = 0; n < 4; ++n) asio::co_spawn(w.io, again_and_again(), asio::detached);
  const auto looks = [&] { return !w.eye("SET", "m", "stranger", "NX", "PX", 60'000).is_nil(); };
  w.until([&] { return w.heard->count(event_kind::passed) > 0; });
  w.until(looks, 60s);
  const auto had = s.had.size();
  w.pass(20ms);
  CHECK(s.had.size() == had);
  w.eye("DEL", "m");
  w.until([&] { return s.had.size() > had; });
  enough = true;
  w.until([&] { return s.left == 0 && w.keys().empty(); });
}
