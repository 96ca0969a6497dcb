// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "integration/world.hpp"
#include "support/redisson_peer.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

asio::awaitable<void> lock_and_unlock(mutex m, int rounds) {
  for (; rounds > 0; --rounds) {
    lease held = co_await m.lock();
    co_await held.unlock();
  }
}

asio::awaitable<void> section(mutex m) {
  auto body = [](lease&) -> asio::awaitable<void> { co_return; };
  co_await with_lock(std::move(m), body);
}

asio::awaitable<void> three_branches(mutex m) {
  using namespace asio::experimental::awaitable_operators;
  co_await (lock_and_unlock(m, 1) && lock_and_unlock(m, 1) && lock_and_unlock(m, 1));
}

asio::awaitable<void> three_sections(mutex m) {
  using namespace asio::experimental::awaitable_operators;
  co_await (section(m) && section(m) && section(m));
}

}  // namespace

TEST_CASE("a lock excludes another owner of the same client and of another client") {
  world w;
  auto a = w.make(), b = w.make();
  auto held = w.run(a.mutex("m").lock());
  CHECK(held.held());
  CHECK_FALSE(w.run(a.mutex("m").try_lock()));
  CHECK_FALSE(w.run(b.mutex("m").try_lock()));
  CHECK(w.run(b.mutex("m").is_locked()));
  w.run(held.unlock());
  CHECK_FALSE(held.held());
  CHECK(held.state() == lease_state::released);
  CHECK(w.keys().empty());
  CHECK(w.run(b.mutex("m").try_lock()));
}

TEST_CASE("a re-entry is counted in the hash and the last unlock frees the lock") {
  world w;
  auto redis = w.make();
  const owner me;
  auto mutex = redis.mutex("m", me);
  auto outer = w.run(mutex.lock());
  auto inner = w.run(mutex.lock());
  w.until([&] { return w.eye("HVALS", "m").strings() == std::vector<std::string>{"2"}; });  // nobody waits for that
  const auto hash = w.eye("HGETALL", "m").strings();
  REQUIRE(hash.size() == 2);
  CHECK(hash[0][14] == '8');  // a UUID of version 8: ours
  CHECK(w.run(mutex.hold_count(me)) == 2);
  CHECK(w.run(mutex.held_by(me)));
  CHECK_FALSE(w.run(mutex.held_by(owner{})));
  w.run(inner.unlock());
  w.until([&] { return w.eye("HGET", "m", hash[0]) == "1"; });
  CHECK(outer.held());
  w.run(outer.unlock());
  CHECK(w.keys().empty());
}

TEST_CASE("a task that is bound to an owner re-enters through a mutex of its own") {
  world w;
  auto redis = w.make();
  const owner task;
  auto nested = [&]() -> asio::awaitable<unsigned> {
    auto outer = co_await redis.mutex("m").lock();
    auto other_object = redis.mutex("m");
    auto inner = co_await other_object.lock();
    const auto count = co_await other_object.hold_count(inner.owner());
    co_await inner.unlock();
    co_await outer.unlock();
    co_return count;
  };
  CHECK(w.run_as(task, nested()) == 2);
  CHECK(w.keys().empty());
}

TEST_CASE("parallel branches of one owner unlock without an error, and the lock is free when they have") {
  world w;
  auto redis = w.make();
  for (int i = 0; i < 100; ++i) {
    CHECK_FALSE(w.code_of_as(owner(), three_branches(redis.mutex("m"))));
    CHECK(w.keys().empty());
    CHECK_FALSE(w.code_of_as(owner(), three_sections(redis.mutex("m"))));
    CHECK(w.keys().empty());
  }
}

TEST_CASE("many tasks of one owner lock and unlock without an error") {
  world w;
  auto redis = w.make();
  const auto mutex = redis.mutex("m", owner());
  std::vector<std::unique_ptr<started<void>>> tasks;
  for (int i = 0; i < 8; ++i) tasks.push_back(std::make_unique<started<void>>(w, lock_and_unlock(mutex, 200)));
  for (const auto& t : tasks) {
    w.until([&] { return t->answer.has_value(); }, 60s);
    CHECK(t->succeeded());
  }
  CHECK(w.keys().empty());
}

TEST_CASE("a lease is unlocked once and an empty one never") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock());
  auto moved = std::move(held);
  CHECK(w.code_of(held.unlock()) == errc::not_held);
  w.run(moved.unlock());
  CHECK(w.code_of(moved.unlock()) == errc::not_held);
  CHECK(w.code_of(lease{}.renew()) == errc::not_held);
}

TEST_CASE("unlock frees nobody else's lock and says that ours was lost") {
  world w;
  auto redis = w.make();
  redisson_peer java(w.server);
  auto held = w.run(redis.mutex("m").lock());
  w.eye("DEL", "m");
  REQUIRE(java.try_lock("m"));
  CHECK(text_of_failure([&] { w.run(held.unlock()); }) ==
        "the lock was lost: lock 'm': Redis answered that its key is gone or another's");
  CHECK(java.hold_count("m") == 1);
  CHECK(w.heard->count(event_kind::lost) == 1);
}

TEST_CASE("a lease with a ttl of its own is not renewed and ends with it") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock({.ttl = 150ms}));
  CHECK(held.valid_for() <= 150ms);
  CHECK(w.eye("PTTL", "m").integer() <= 150);
  w.until([&] { return !held.held(); });
  CHECK(held.state() == lease_state::lost);
  w.until([&] { return w.eye("EXISTS", "m") == 0; });
  CHECK(w.code_of(held.unlock()) == errc::lost);
}

TEST_CASE("a lease is renewed every third of its ttl and not after unlock") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 300ms; });
  raw_client monitor(w.server);
  monitor.monitor();
  auto held = w.run(redis.mutex("m").lock());
  w.pass(1000ms);
  CHECK(held.held());
  w.run(held.unlock());
  w.pass(250ms);
  std::vector<std::chrono::microseconds> renewals;
  std::chrono::microseconds unlocked{};
  w.eye("ECHO", "end");
  while (auto line = monitor.next_monitor_line(1s)) {
    if (line->argv[0] == "ECHO") break;
    if (line->argv[0] == "pexpire" && line->from == "lua") renewals.push_back(line->at);
    if (line->argv[0] == "hdel") unlocked = line->at;
  }
  REQUIRE(renewals.size() >= 5);  // the first is the grant
  CHECK(renewals.back() < unlocked);
  // Each is planned 95 to 100 ms after the one before was sent; a busy machine delays some, and none may come in vain.
  const auto average = (renewals.back() - renewals.front()) / static_cast<long>(renewals.size() - 1);
  CHECK(average > 93ms);
  CHECK(average < 200ms);
}

TEST_CASE("a renewal writes once, also where it changes nothing") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock());
  raw_client monitor(w.server);
  monitor.monitor();
  const auto of_script = [&] {
    w.run(held.renew(10s));
    w.eye("PING");
    std::vector<std::string> commands;
    while (auto line = monitor.next_monitor_line(1s)) {
      if (line->argv[0] == "PING") break;
      if (line->from == "lua") commands.push_back(line->argv[0]);
    }
    return commands;
  };
  w.eye("PEXPIRE", "m", 5'000);
  CHECK(of_script() == std::vector<std::string>{"hexists", "hlen", "pttl", "pexpire"});
  w.eye("PEXPIRE", "m", 60'000);
  CHECK(of_script() == std::vector<std::string>{"hexists", "hlen", "pttl", "hdel"});
}

TEST_CASE("a waiter is woken by the message and not by the holder's ttl") {
  world w;
  auto a = w.make(), b = w.make();
  auto held = w.run(a.mutex("m").lock());
  std::optional<lease> got;
  asio::co_spawn(w.io, b.mutex("m").lock(), [&](std::exception_ptr, lease l) { got.emplace(std::move(l)); });
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").array()[1] == 1; });
  w.pass(20ms);
  CHECK_FALSE(got);
  const auto freed = std::chrono::steady_clock::now();
  w.run(held.unlock());
  w.until([&] { return got.has_value(); });
  CHECK(std::chrono::steady_clock::now() - freed < 2s);  // the ttl is 30 s, the poll cap 5 s
  w.run(got->unlock());
  w.until([&] { return w.eye("PUBSUB", "CHANNELS", of_locks).array().empty(); });
}

TEST_CASE("a bounded wait ends on time and a busy reply is the remaining ttl") {
  world w;
  auto redis = w.make();
  redisson_peer java(w.server);
  REQUIRE(java.try_lock("m", 60s));
  const auto ttl = w.run(redis.mutex("m").remaining_ttl());
  REQUIRE(ttl);
  CHECK(*ttl > 55s);
  CHECK(*ttl <= 60s);
  const auto start = std::chrono::steady_clock::now();
  CHECK_FALSE(w.run(redis.mutex("m").try_lock_for(150ms)));
  const auto waited = std::chrono::steady_clock::now() - start;
  CHECK(waited >= 150ms);
  CHECK(waited < 2s);
  w.until([&] { return w.eye("PUBSUB", "CHANNELS", of_locks).array().empty(); });
  CHECK_FALSE(w.run(redis.mutex("free").remaining_ttl()));
}

TEST_CASE("a force-unlock breaks the hold and wakes waiters and tells the holder") {
  world w;
  auto a = w.make(), b = w.make();
  auto held = w.run(a.mutex("m").lock());
  std::optional<lease> got;
  asio::co_spawn(w.io, b.mutex("m").lock(), [&](std::exception_ptr, lease l) { got.emplace(std::move(l)); });
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").array()[1] == 1; });
  CHECK(w.run(a.mutex("m").force_unlock()));
  w.until([&] { return got.has_value() && !held.held(); });
  CHECK(got->held());
  CHECK(w.run(a.mutex("other").force_unlock()) == false);
}

TEST_CASE("names of any bytes meet Redisson's") {
  const auto name = GENERATE(as<std::string>{}, "plain", std::string("n\0ul", 4), "cr\r\nlf", "a{b}c", "{", "}",
                             "ünïcode", "\xff\xfe", "'\"");
  world w;
  auto redis = w.make();
  redisson_peer java(w.server);
  auto held = w.run(redis.mutex(name).lock());
  CHECK_FALSE(java.try_lock(name));
  CHECK(java.is_locked(name));
  raw_client listener(w.server);
  listener.subscribe(redisson_peer::channel(name));
  w.run(held.unlock());
  const auto message = listener.next_message(5s);
  REQUIRE(message);
  CHECK(message->payload == "0");
  REQUIRE(java.try_lock(name));
  CHECK_FALSE(w.run(redis.mutex(name).try_lock()));
  std::optional<lease> got;
  asio::co_spawn(w.io, redis.mutex(name).lock(), [&](std::exception_ptr, lease l) { got.emplace(std::move(l)); });
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", redisson_peer::channel(name)).array()[1] == 2; });
  CHECK(java.unlock(name) == true);
  w.until([&] { return got.has_value(); }, 3s);
}

TEST_CASE("clients with the same prefix meet and others do not") {
  world w;
  auto a = w.make([](config& c) { c.key_prefix = "app:"; });
  auto b = w.make([](config& c) { c.key_prefix = "app:"; });
  auto other = w.make();
  auto held = w.run(a.mutex("m").lock());
  CHECK(w.keys() == std::vector<std::string>{"app:m"});
  CHECK_FALSE(w.run(b.mutex("m").try_lock()));
  CHECK(w.run(other.mutex("m").try_lock()));
}

TEST_CASE("ten thousand waiters share one subscription and are served in order") {
  world w;
  auto redis = w.make();
  redisson_peer java(w.server);
  REQUIRE(java.try_lock("m"));
  constexpr int waiters = 10'000;
  std::vector<int> order;
  auto worker = [&](int number) -> asio::awaitable<void> {
    auto held = co_await redis.mutex("m").lock();
    order.push_back(number);
    co_await held.unlock();
  };
  for (int i = 0; i < waiters; ++i) asio::co_spawn(w.io, worker(i), asio::detached);
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").array()[1] == 1; });
  w.pass(20ms);
  CHECK(order.empty());
  CHECK(java.unlock("m") == true);
  w.until([&] { return order.size() == waiters; }, 60s);
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK(w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").array()[1].integer() <= 1);
  drain(w.io);
  CHECK(w.keys().empty());
  CHECK(w.eye("PUBSUB", "CHANNELS", of_locks).array().empty());
}

TEST_CASE("scripts that the server has forgotten are sent again") {
  world w;
  auto redis = w.make();
  const owner me;
  auto outer = w.run(redis.mutex("m", me).lock());
  w.eye("SCRIPT", "FLUSH");
  auto inner = w.run(redis.mutex("m", me).lock());
  w.eye("SCRIPT", "FLUSH");
  w.run(inner.renew());
  w.eye("SCRIPT", "FLUSH");
  w.run(inner.unlock());
  w.run(outer.unlock());
  CHECK(w.keys().empty());
}

TEST_CASE("an idle client keeps nothing running") {
  world w;
  auto redis = w.make();
  auto once = [&]() -> asio::awaitable<void> {
    auto held = co_await redis.mutex("m").lock();
    co_await held.unlock();
  };
  w.run(once());
  drain(w.io, 2s);  // throws if something is still pending
  w.run(once());
  drain(w.io, 2s);
  CHECK(w.eye("CLIENT", "LIST").to_string().find("name=holdfast") != std::string::npos);  // and the connection stays
}

TEST_CASE("a lease that goes out of scope is released in the background") {
  world w;
  auto redis = w.make();
  { auto held = w.run(redis.mutex("m").lock()); }
  drain(w.io, 5s);
  CHECK(w.keys().empty());
  CHECK(w.heard->count(event_kind::released) == 1);
}

TEST_CASE("a lock whose lease nobody keeps is told, and one that guards a co_await is not") {
  world w;
  auto redis = w.make();
  auto guarded = [&]() -> asio::awaitable<void> {
    auto held = co_await redis.mutex("m").lock();
    co_await asio::post(asio::use_awaitable);
  };
  for (int i = 0; i < 20; ++i) w.run(guarded());
  drain(w.io, 5s);
  CHECK(w.heard->count(event_kind::dropped_at_once) == 0);
  auto forgotten = [&]() -> asio::awaitable<void> { (void)co_await redis.mutex("m").lock(); };
  w.until([&] {
    w.run(forgotten());  // not found where this thread is interrupted just then
    return w.heard->count(event_kind::dropped_at_once) > 0;
  });
  drain(w.io, 5s);
  CHECK(w.keys().empty());
}

TEST_CASE("a coroutine without owner that waits for what it has locked is reported, and another is not") {
  world w;
  auto redis = w.make();
  const auto heard = [&](event_kind what) { return w.heard->count(what); };
  auto nested = [&]() -> asio::awaitable<void> {
    auto held = co_await redis.mutex("m").lock();
    CHECK_FALSE(co_await redis.mutex("m").try_lock_for(10ms));
    CHECK(heard(event_kind::waiting_for_ourselves) == 0);
    auto again = co_await redis.mutex("m").lock();
  };
  auto next = [&]() -> asio::awaitable<void> {
    auto held = co_await redis.mutex("n").lock();
    co_await asio::post(asio::use_awaitable);
  };
  asio::cancellation_signal stop;
  asio::co_spawn(w.io, nested(), asio::bind_cancellation_slot(stop.slot(), asio::detached));
  for (int i = 0; i < 20; ++i) asio::co_spawn(w.io, next(), asio::detached);
  w.until([&] { return heard(event_kind::waiting_for_ourselves) == 1; });
  stop.emit(asio::cancellation_type::terminal);
  w.until([&] { return w.keys().empty(); });
  CHECK(heard(event_kind::waiting_for_ourselves) == 1);
  CHECK(heard(event_kind::perhaps_waiting_for_ourselves) == 0);
}

TEST_CASE("a wait for this client's own hold by a call that no coroutine has made is a hint") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock());
  asio::cancellation_signal stop;
  asio::co_spawn(w.io, redis.mutex("m").lock(), asio::bind_cancellation_slot(stop.slot(), [](auto&&...) {}));
  w.until([&] { return w.heard->count(event_kind::perhaps_waiting_for_ourselves) == 1; });
  CHECK(w.heard->count(event_kind::waiting_for_ourselves) == 0);
  stop.emit(asio::cancellation_type::terminal);
  w.pass(10ms);
}

TEST_CASE("a hung worker frees the lock after max_hold and a fed one keeps it") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 1500ms; });
  auto slow = w.run(redis.mutex("slow").lock({.max_hold = 1s}));
  auto hung = w.run(redis.mutex("hung").lock({.max_hold = 1s}));
  w.until([&] {
    slow.feed();
    return !hung.held();
  });
  CHECK(slow.held());
  w.run(slow.unlock());
}
