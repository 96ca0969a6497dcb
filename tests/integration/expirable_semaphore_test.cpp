// SPDX-License-Identifier: BSL-1.0
// Permits: at most so many at once over all clients, and the number stays when counters and holders go.
#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using std::chrono::milliseconds;

namespace {

/// A semaphore of three permits, and three clients that want them.
struct semaphore_world : world {
  static constexpr unsigned total = 3;

  client first = make(), second = make(), third = make();

  static expirable_semaphore of(const client& by, unsigned permits = total) {
    return by.expirable_semaphore("s", permits);
  }
  long long out() { return eye("ZCARD", "{s}:timeout").integer(); }
  /// The permits that are left and those that are out.
  long long sum() { return eye("GET", "s").integer() + out(); }
  bool door_is_closed() { return eye("EXISTS", "holdfast_turn:{s}") == 1; }
};

}  // namespace

TEST_CASE_METHOD(semaphore_world, "so many are given as there are permits, over all clients, and no more") {
  auto a = run(of(first).acquire()), b = run(of(second).acquire()), c = run(of(first).acquire());
  CHECK(a.held());
  CHECK(b.held());
  CHECK(c.held());
  CHECK(a.id() != c.id());
  CHECK_FALSE(run(of(third).try_acquire()));
  CHECK(run(of(third).available()) == 0);
  started<lease> waiting(*this, of(third).acquire());
  until([&] { return eye("PUBSUB", "NUMSUB", "redisson_sc:{s}").array()[1] == 1; });
  CHECK_FALSE(waiting.answer);
  run(b.unlock());
  until([&] { return waiting.succeeded(); });
  CHECK(sum() == total);
  run(waiting.answer->value().unlock());
  run(a.unlock());
  run(c.unlock());
  CHECK(run(of(third).available()) == total);
  CHECK(out() == 0);
  CHECK(sum() == total);
}

TEST_CASE_METHOD(semaphore_world, "several come together or not at all, and go together") {
  auto one = run(of(first).acquire());
  CHECK_FALSE(run(of(second).try_acquire(3)));
  CHECK(out() == 1);
  auto two = run(of(second).acquire(2));
  CHECK(out() == 3);
  CHECK_FALSE(run(of(third).try_acquire()));
  run(two.unlock());
  CHECK(out() == 1);
  run(one.unlock());
  CHECK(sum() == total);
}

TEST_CASE_METHOD(semaphore_world, "a permit comes back with the TTL of a process that died") {
  // Nothing renews this lease, as after a kill.
  auto dead = run(of(first).acquire(3, {.ttl = 300ms}));
  CHECK_FALSE(run(of(second).try_acquire()));
  auto next = run(of(second).acquire());
  CHECK_FALSE(dead.held());
  CHECK(sum() == total);
  CHECK(out() == 1);
}

TEST_CASE_METHOD(semaphore_world, "a lease is renewed while it lives, and lost if Redis has lost one of its permits") {
  auto brief = make([](config& c) { c.ttl = 300ms; });
  auto kept = run(of(brief).acquire(2));
  pass(500ms);
  CHECK(kept.held());
  const auto ids = eye("ZRANGE", "{s}:timeout", 0, -1).strings();
  REQUIRE(ids.size() == 2);
  // As Redisson's release: the permit is removed, and counted as left.
  eye("ZREM", "{s}:timeout", ids[0]);
  eye("INCR", "s");
  CHECK(run(kept.lost()) == errc::lost);
  until([&] { return out() == 0; });
  CHECK(sum() == total);
}

TEST_CASE_METHOD(semaphore_world,
                 "an unlock that finds one of several permits gone gives back the others, and says so") {
  auto two = run(of(first).acquire(2));
  eye("ZREM", "{s}:timeout", eye("ZRANGE", "{s}:timeout", 0, 0).strings().at(0));
  eye("INCR", "s");
  CHECK(code_of(two.unlock()) == errc::lost);
  CHECK(out() == 0);
  CHECK(sum() == total);
}

TEST_CASE_METHOD(semaphore_world, "a waiter that wants several keeps newcomers of all clients out until it has them") {
  auto a = run(of(first).acquire()), b = run(of(first).acquire());
  started<lease> all(*this, of(second).acquire(3));
  until([&] { return door_is_closed(); });
  CHECK_FALSE(run(of(third).try_acquire()));
  CHECK(run(of(third).available()) == 1);
  started<lease> single(*this, of(third).acquire());
  run(a.unlock());
  pass(50ms);
  CHECK_FALSE(all.answer);
  CHECK_FALSE(single.answer);
  run(b.unlock());
  until([&] { return all.succeeded(); });
  CHECK_FALSE(door_is_closed());
  CHECK_FALSE(single.answer);
  run(all.answer->value().unlock());
  until([&] { return single.succeeded(); });
  CHECK(sum() == total);
}

TEST_CASE_METHOD(semaphore_world, "a waiter that wants several and leaves lets the others in") {
  auto a = run(of(first).acquire());
  SECTION("by its deadline") { CHECK_FALSE(run(of(second).try_acquire_for(100ms, 3))); }
  SECTION("by a cancellation") {
    asio::cancellation_signal signal;
    bool over = false;
    asio::co_spawn(
        io, of(second).acquire(3),
        asio::bind_cancellation_slot(signal.slot(), [&](const std::exception_ptr&, const lease&) { over = true; }));
    until([&] { return door_is_closed(); });
    signal.emit(asio::cancellation_type::terminal);
    until([&] { return over; });
  }
  auto b = run(of(third).acquire());
  CHECK(b.held());
  CHECK_FALSE(door_is_closed());
  CHECK(sum() == total);
}

TEST_CASE_METHOD(semaphore_world, "a holder that unlocks does not open the door of its own client's waiter") {
  auto a = run(of(first).acquire()), b = run(of(third).acquire());
  started<lease> all(*this, of(first).acquire(3));
  until([&] { return door_is_closed(); });
  run(a.unlock());
  CHECK(door_is_closed());
  CHECK_FALSE(run(of(second).try_acquire()));
  run(b.unlock());
  until([&] { return all.succeeded(); });
}

TEST_CASE_METHOD(semaphore_world, "a counter that was lost is made again of what is out") {
  auto a = run(of(first).acquire(2));
  eye("DEL", "s");
  CHECK(run(of(second).available()) == 1);
  auto b = run(of(second).acquire());
  CHECK_FALSE(run(of(third).try_acquire()));
  CHECK(sum() == total);
  SECTION("also if it is lost before a release") {
    eye("DEL", "s");
    run(a.unlock());
    auto c = run(of(third).acquire(2));
    CHECK(sum() == total);
  }
}

TEST_CASE_METHOD(semaphore_world, "the first number of permits stands until it is set") {
  auto a = run(of(first, 2).acquire());
  CHECK(run(of(second, 5).available()) == 1);
  run(of(second, 5).set_permits(5));
  CHECK(run(of(first, 2).available()) == 4);
  run(of(second, 5).set_permits(1));
  CHECK(run(of(first, 2).available()) == 0);
  CHECK(a.held());
  CHECK(sum() == 1);
  started<lease> waiting(*this, of(third, 1).acquire());
  until([&] { return eye("PUBSUB", "NUMSUB", "redisson_sc:{s}").array()[1] == 1; });
  run(of(second).set_permits(2));
  until([&] { return waiting.succeeded(); });
}

TEST_CASE_METHOD(semaphore_world, "a force_release takes all permits back, and their holders learn of it") {
  auto a = run(of(first).acquire(2)), b = run(of(second).acquire());
  started<lease> waiting(*this, of(third).acquire());
  CHECK(run(of(second).force_release()) == 3);
  until([&] { return waiting.succeeded(); });
  CHECK(run(b.lost()) == errc::lost);
  CHECK(sum() == total);
  CHECK(run(of(second).force_release()) == 1);
  CHECK(run(of(second).force_release()) == 0);
}

TEST_CASE_METHOD(semaphore_world, "numbers outside their range are refused before anything is sent") {
  const auto refused = [this](auto call) { return code_of(std::move(call)) == errc::invalid_argument; };
  CHECK(refused(of(first).acquire(0)));
  CHECK(refused(of(first).acquire(4)));
  CHECK(refused(of(first, 200).acquire(101)));
  CHECK(refused(of(first).try_acquire_for(1s, 357)));
  CHECK(refused(of(first, 0).acquire()));
  CHECK(refused(of(first, 0).available()));
  CHECK(refused(of(first, 2'147'483'648U).acquire()));
  CHECK(refused(of(first).set_permits(0)));
  CHECK(keys().empty());
  auto most = run(of(first, 200).acquire(100));
  CHECK(out() == 100);
}

TEST_CASE_METHOD(semaphore_world, "a name that another kind uses is refused or busy, and stays as it is") {
  const auto refused = [&](auto call) {
    CHECK(code_of(call()) == errc::corrupt_lock);
    const auto text = text_of_failure([&] { (void)run(call()); });
    CAPTURE(text);
    CHECK(text.find("lock 's'") != text.npos);
    CHECK(text.find("Give each kind its own names") != text.npos);
  };
  const auto refused_to_permits = [&](const mutex& lock) {
    auto theirs = run(lock.lock());
    const auto before = eye("DUMP", "s").to_string();
    const auto pool = of(second);
    refused([&] { return pool.acquire(2); });
    refused([&] { return pool.try_acquire(); });
    refused([&] { return pool.available(); });
    refused([&] { return pool.set_permits(2); });
    refused([&] { return pool.force_release(); });
    CHECK(eye("DUMP", "s").to_string() == before);
    CHECK(out() == 0);
    CHECK_FALSE(door_is_closed());
    run(theirs.renew());
    run(theirs.unlock());
  };
  SECTION("a mutex") { refused_to_permits(first.mutex("s")); }
  SECTION("a fenced_mutex") { refused_to_permits(first.fenced_mutex("s")); }
  SECTION("a simple_mutex") { refused_to_permits(first.simple_mutex("s")); }
  SECTION("a semaphore's counter is no lock") {
    auto ours = run(of(first).acquire());
    for (const mutex& lock : {second.mutex("s"), mutex(second.fenced_mutex("s")), mutex(second.simple_mutex("s"))})
      CHECK(code_of(lock.try_lock()) == errc::corrupt_lock);
    for (const mutex& lock : {second.mutex("s"), mutex(second.fenced_mutex("s"))})
      refused([&] { return lock.try_lock(); });
    for (const mutex& lock : {second.mutex("s"), mutex(second.simple_mutex("s"))})
      refused([&] { return lock.force_unlock(); });
    run(ours.renew());
    CHECK(ours.held());
    CHECK(sum() == total);
  }
}

TEST_CASE_METHOD(semaphore_world, "one permit is a lock for with_lock, and each task has its own") {
  int inside = 0, most = 0, done = 0;
  auto body = [&](lease&) -> asio::awaitable<void> {
    most = std::max(most, ++inside);
    co_await asio::steady_timer(io, 2ms).async_wait(asio::use_awaitable);
    --inside;
  };
  std::list<mutex> mutexes;
  for (int task = 0; task < 12; ++task) {
    const auto& by = task % 2 == 0 ? first : second;
    asio::co_spawn(io, with_lock(mutexes.emplace_back(of(by).as_mutex()), body), [&](const std::exception_ptr& failed) {
      CHECK_FALSE(failed);
      ++done;
    });
  }
  until([&] { return done == 12; });
  CHECK(most == 3);
  CHECK(sum() == total);
  CHECK_FALSE(run(of(third).as_mutex().is_locked()));
}

TEST_CASE_METHOD(semaphore_world, "who wants all permits beside tight tasks of two clients has them before long") {
  int inside = 0, all = 0;
  bool stop = false, violated = false;
  unsigned running = 0;
  const auto enter = [&](int n) {
    inside += n;
    violated |= inside > static_cast<int>(total);
  };
  auto single = [&](const client& by) -> asio::awaitable<void> {
    const auto semaphore = of(by);
    while (!stop) {
      auto held = co_await semaphore.acquire();
      enter(1);
      co_await asio::steady_timer(io, 1ms).async_wait(asio::use_awaitable);
      enter(-1);
      co_await held.unlock();
    }
  };
  auto ended = [&](const std::exception_ptr& failed) {
    CHECK_FALSE(failed);
    --running;
  };
  for (int task = 0; task < 8; ++task) {
    ++running;
    asio::co_spawn(io, single(task % 2 == 0 ? first : second), ended);
  }
  auto whole = [&]() -> asio::awaitable<void> {
    const auto semaphore = of(third);
    for (; all < 20; ++all) {
      auto held = co_await semaphore.acquire(total);
      enter(total);
      co_await asio::steady_timer(io, 1ms).async_wait(asio::use_awaitable);
      enter(-static_cast<int>(total));
      co_await held.unlock();
    }
    stop = true;
  };
  ++running;
  asio::co_spawn(io, whole(), ended);
  // Twenty times a hold, a stint and a hand-over would be half a second. Without the door it is never.
  until([&] { return running == 0; }, 20s);
  CHECK_FALSE(violated);
  CHECK(all == 20);
  CHECK(sum() == total);
}
