// SPDX-License-Identifier: BSL-1.0
// Clients that take turns with one name, and die, stop, lose connections and give up while they do.
#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "integration/world.hpp"
#include "support/fork.hpp"
#include "support/redisson_peer.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr auto ttl = 600ms;
constexpr auto channel = "redisson_lock__channel:{m}";

/// Wants "m", with so many tasks, which hold it for a moment and want it again, in a process of its own.
class contender {
 public:
  explicit contender(config settings, int tasks = 2)
      : child_([&] {
          settings.observer = nullptr;
          asio::io_context io;
          client redis(io.get_executor(), settings);
          for (int n = 0; n < tasks; ++n) asio::co_spawn(io, contend(redis.mutex("m")), asio::detached);
          io.run();
          return false;
        }) {}

  void stop() { child_.stop(); }
  void go_on() { child_.cont(); }
  void kill() { child_.kill(); }

 private:
  static asio::awaitable<void> contend(mutex m) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (;;) {
      auto held = co_await m.lock();
      timer.expires_after(1ms);
      co_await timer.async_wait(asio::use_awaitable);
      co_await held.unlock();
    }
  }

  forked child_;
};

/// Counts who is in a section, and who leaves it by an exception too.
struct in_it {
  explicit in_it(int& count) : inside(count) { ++inside; }
  in_it(const in_it&) = delete;
  in_it& operator=(const in_it&) = delete;
  ~in_it() { --inside; }
  int& inside;
};

struct contended_world : world {
  config of_others() const {
    auto c = settings();
    c.ttl = ttl;
    c.poll_cap = 200ms;
    return c;
  }
  client make_one() {
    return make([](config& c) {
      c.ttl = ttl;
      c.poll_cap = 200ms;
    });
  }
  long long listeners() { return eye("PUBSUB", "NUMSUB", channel).array().at(1).integer(); }
  /// Two tasks want the lock until their client was granted it so often.
  void everybody_gets_on(client& redis, int grants = 10) {
    int granted = 0, left = 2;
    const auto task = [&, grants](mutex m) -> asio::awaitable<void> {
      while (granted < grants) {
        auto held = co_await m.lock();
        CHECK(held.held());
        if (held.id().find('/') == std::string::npos) ++granted;  // else it was passed on
        co_await held.unlock();
      }
      --left;
    };
    for (int n = 0; n < 2; ++n) asio::co_spawn(io, task(redis.mutex("m")), asio::detached);
    until([&] { return left == 0; }, 60s);
  }
};

}  // namespace

TEST_CASE("clients in several processes take turns, and a process that is killed costs one TTL at most") {
  contended_world w;
  auto redis = w.make_one();
  contender one(w.of_others()), other(w.of_others());
  w.until([&] { return w.listeners() >= 1; });
  w.everybody_gets_on(redis);
  one.kill();
  w.everybody_gets_on(redis);
  other.kill();
  w.everybody_gets_on(redis);
  w.run(redis.shutdown(1s));
  CHECK(w.keys().empty());
}

TEST_CASE("a process that is stopped is left its turn in vain, and the others go on") {
  contended_world w;
  auto redis = w.make_one();
  contender one(w.of_others());
  w.until([&] { return w.listeners() == 1; });
  w.everybody_gets_on(redis);
  one.stop();
  w.everybody_gets_on(redis);  // it is told of each release, and takes none
  one.go_on();
  w.everybody_gets_on(redis);
}

TEST_CASE(
    "a waiter that was stopped as the lock was released to it costs the others a rest, and is served when it goes on") {
  contended_world w;
  auto redis = w.make_one();
  auto held = w.run(redis.mutex("m").lock());
  contender waiting(w.of_others(), 1);
  w.until([&] { return w.listeners() == 1; });
  waiting.stop();
  w.run(held.unlock());
  held = w.run(redis.mutex("m").lock());
  CHECK(held.held());
  waiting.go_on();
  w.run(held.unlock());
  w.until(
      [&] { return w.eye("HKEYS", "m").strings() != std::vector{held.id()} && w.eye("EXISTS", "m").integer() == 1; });
}

TEST_CASE("who loses its messages while it rests asks all the same when the rest is over") {
  contended_world w;
  auto redis = w.make_one();
  contender one(w.of_others());
  w.until([&] { return w.listeners() == 1; });
  for (int n = 0; n < 20; ++n) {
    w.eye("CLIENT", "KILL", "TYPE", "pubsub");
    w.everybody_gets_on(redis, 2);
  }
}

TEST_CASE("clients of Redisson, which do not rest, and ours get on beside each other") {
  contended_world w;
  auto redis = w.make_one();
  const forked rival([&w] {
    redisson_peer peer(w.server);
    raw_client counter(w.server);
    while (peer.lock("m", 30s, 60s)) {
      peer.unlock("m");
      counter("INCR", "had");
    }
    return false;
  });
  const auto had = [&w] {
    const auto count = w.eye("GET", "had");
    return count.is_nil() ? 0 : std::stoll(count.to_string());
  };
  w.until([&] { return had() > 0; });
  for (int n = 0; n < 5; ++n) {
    const auto before = had();
    w.everybody_gets_on(redis);
    w.until([&] { return had() > before; });
  }
}

TEST_CASE("a turn whose key is lost ends, is told, and the waiters of all clients go on") {
  contended_world w;
  auto redis = w.make_one();
  contender one(w.of_others());
  w.until([&] { return w.listeners() == 1; });
  for (int n = 0; n < 10; ++n) {
    auto held = w.run(redis.mutex("m").lock());
    started<lease> next(w, redis.mutex("m").lock());
    w.eye("FLUSHALL");
    CHECK(w.code_of(held.renew()) == errc::lost);
    w.until([&] { return next.succeeded(); });
    CHECK(next.answer->value().id() != held.id() + "/1");
    w.run(next.answer->value().unlock());
  }
}

TEST_CASE("waiters that give up at any moment keep the lock from nobody, and leave nothing") {
  contended_world w;
  std::vector<client> clients;
  for (int n = 0; n < 3; ++n) clients.push_back(w.make_one());
  struct call {
    asio::cancellation_signal give_up;
    bool begun = false, ended = false;
    // Boost 1.83 throws out of poll_one() where co_spawn is cancelled before it has begun.
    bool may_give_up() const { return begun && !ended; }
  };
  std::deque<call> calls;
  std::mt19937 random(7);
  int had = 0, inside = 0;
  const auto hold = [&](mutex m, call& c) -> asio::awaitable<void> {
    c.begun = true;
    auto held = co_await m.lock();
    {
      const in_it here(inside);
      CHECK(inside == 1);
      co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
      ++had;
    }
    co_await held.unlock();
  };
  for (int n = 0; n < 600; ++n) {
    auto& c = calls.emplace_back();
    asio::co_spawn(w.io, hold(clients[random() % clients.size()].mutex("m"), c),
                   asio::bind_cancellation_slot(c.give_up.slot(), [&c](std::exception_ptr) { c.ended = true; }));
    auto& leaves = calls[random() % calls.size()];
    if (random() % 2 == 0 && leaves.may_give_up()) leaves.give_up.emit(asio::cancellation_type::terminal);
    if (w.io.stopped()) w.io.restart();
    for (auto steps = random() % 20; steps > 0; --steps) w.io.poll_one();
  }
  w.until([&] { return std::all_of(calls.begin(), calls.end(), [](const call& c) { return c.ended; }); }, 60s);
  CHECK(had > 0);
  for (auto& c : clients) w.run(c.shutdown(1s));
  CHECK(w.keys().empty());
  w.until([&] { return w.listeners() == 0; });
}
