// SPDX-License-Identifier: BSL-1.0
// Readers and writers of several clients: who stands beside whom, whose turn is next, and what a client leaves behind.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using std::chrono::milliseconds;

namespace {

struct readers_world : world {
  client first = make(), second = make(), third = make();

  static holdfast::shared_mutex of(const client& by) { return by.shared_mutex("s"); }
  static holdfast::shared_mutex of(const client& by, owner task) { return by.shared_mutex("s", task); }
  long long fields() { return eye("HLEN", "s").integer(); }
  long long waiting_writers() { return eye("ZCARD", "holdfast_queue:{s}").integer(); }
  long long waiting_readers() { return eye("ZCARD", "holdfast_readers:{s}").integer(); }
  /// Nobody holds the lock, nobody waits, and no turn is left for longer than its reserve.
  void check_nothing_is_left() {
    until([&] { return eye("EXISTS", "s", "holdfast_queue:{s}", "holdfast_readers:{s}", "holdfast_turn:{s}") == 0; });
    CHECK(eye("DBSIZE") == 0);
  }
};

}  // namespace

TEST_CASE_METHOD(readers_world, "readers of all clients stand beside each other, and a writer stands alone") {
  auto a = run(of(first).lock_shared()), b = run(of(second).lock_shared());
  CHECK(a.held());
  CHECK(b.held());
  CHECK(run(of(third).read_holds()) == 2);
  CHECK_FALSE(run(of(third).try_lock()));
  CHECK_FALSE(run(of(third).holder()));
  run(a.unlock());
  run(b.unlock());
  auto w = run(of(third).lock());
  CHECK_FALSE(run(of(first).try_lock_shared()));
  CHECK_FALSE(run(of(first).try_lock()));
  CHECK(run(of(first).holder())->id == w.id());
  CHECK(run(of(first).read_holds()) == 0);
  run(w.unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world, "readers of one client share a hold for 5 ms, and its last unlock releases it") {
  auto a = run(of(first).lock_shared());
  // A slow machine may need longer than 5 ms from the grant to here: then the next one begins a hold of its own.
  auto b = run(of(first).lock_shared());
  const bool shared = a.id() == b.id();
  CHECK(run(of(second).read_holds()) == (shared ? 1 : 2));
  run(a.unlock());
  CHECK(b.held());
  CHECK(run(of(second).read_holds()) == 1);
  run(b.unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world, "a writer that waits keeps newcomers out, and comes after the last reader") {
  auto a = run(of(first).lock_shared());
  started<lease> write(*this, of(second).lock());
  until([&] { return waiting_writers() == 1; });
  CHECK_FALSE(run(of(third).try_lock_shared()));
  started<lease> late(*this, of(third).lock_shared());
  until([&] { return waiting_readers() == 1; });
  run(a.unlock());
  until([&] { return write.succeeded(); });
  CHECK_FALSE(late.answer);
  run(write.answer->value().unlock());
  until([&] { return late.succeeded(); });
  run(late.answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world, "writers of several clients come in the order of their calls, after the readers") {
  auto w = run(of(first).lock());
  started<lease> one(*this, of(second).lock());
  until([&] { return waiting_writers() == 1; });
  started<lease> two(*this, of(third).lock());
  until([&] { return waiting_writers() == 2; });
  run(w.unlock());
  until([&] { return one.succeeded(); });
  CHECK_FALSE(two.answer);
  started<lease> read(*this, of(first).lock_shared());
  until([&] { return waiting_readers() == 1; });
  run(one.answer->value().unlock());
  until([&] { return read.succeeded(); });
  CHECK_FALSE(two.answer);
  run(read.answer->value().unlock());
  until([&] { return two.succeeded(); });
  run(two.answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world,
                 "a client whose writer leaves gives its place up, and the readers that it kept out come") {
  auto a = run(of(first).lock_shared());
  std::optional<started<lease>> read;
  SECTION("by its deadline") {
    started<std::optional<lease>> write(*this, of(second).try_lock_for(300ms));
    until([&] { return waiting_writers() == 1; });
    read.emplace(*this, of(third).lock_shared());
    until([&] { return write.succeeded(); });
    CHECK_FALSE(write.answer->value());
  }
  SECTION("by a cancellation") {
    asio::cancellation_signal signal;
    bool over = false;
    asio::co_spawn(
        io, of(second).lock(),
        asio::bind_cancellation_slot(signal.slot(), [&](const std::exception_ptr&, const lease&) { over = true; }));
    until([&] { return waiting_writers() == 1; });
    read.emplace(*this, of(third).lock_shared());
    signal.emit(asio::cancellation_type::terminal);
    until([&] { return over; });
  }
  until([&] { return read->succeeded(); });
  run(read->answer->value().unlock());
  run(a.unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world, "a client that is gone while it waits keeps nobody out") {
  auto a = run(of(first).lock_shared());
  std::optional<client> dead = make();
  started<lease> write(*this, of(*dead).lock());
  until([&] { return waiting_writers() == 1; });
  // As after a kill: the place stays, and nobody listens.
  const auto place = eye("ZRANGE", "holdfast_queue:{s}", 0, 0).strings().at(0);
  run(dead->shutdown(1s));
  until([&] { return write.answer.has_value(); });
  eye("ZADD", "holdfast_queue:{s}", 1, place);
  auto b = run(of(second).lock_shared());
  CHECK(b.held());
  run(a.unlock());
  run(b.unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world, "a client that was killed while it waited keeps no try_lock() out") {
  for (const auto* set : {"holdfast_queue:{s}", "holdfast_readers:{s}"}) {
    eye("ZADD", set, 1, "00000000-0000-4000-8000-000000000000");
    auto held = run(of(first).try_lock());
    REQUIRE(held);
    run(held->unlock());
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world, "the loss of every key beside the lock costs order, and nobody waits for ever") {
  auto w = run(of(first).lock());
  started<lease> write(*this, of(second).lock());
  started<lease> read(*this, of(third).lock_shared());
  until([&] { return waiting_writers() == 1 && waiting_readers() == 1; });
  eye("DEL", "holdfast_queue:{s}", "holdfast_readers:{s}", "holdfast_turn:{s}");
  run(w.unlock());
  until([&] { return write.succeeded() || read.succeeded(); });
  auto& earlier = write.answer ? write : read;
  auto& later = write.answer ? read : write;
  run(earlier.answer->value().unlock());
  until([&] { return later.succeeded(); });
  run(later.answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world, "both sides are renewed, and a read hold's own key is made again") {
  auto brief = make([](config& c) { c.ttl = 300ms; });
  const bool writes = GENERATE(true, false);
  auto kept = run(writes ? of(brief).lock() : of(brief).lock_shared());
  if (!writes) eye("DEL", eye("KEYS", "{s}:*").strings().at(0));
  pass(500ms);
  CHECK(kept.held());
  CHECK(eye("DBSIZE") == (writes ? 1 : 2));
  run(kept.unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world, "a hold ends with the TTL of a process that died") {
  // Nothing renews this lease, as after a kill.
  const bool writes = GENERATE(true, false);
  auto dead = run(writes ? of(first).lock({.ttl = 300ms}) : of(first).lock_shared({.ttl = 300ms}));
  auto next = run(of(second).lock());
  CHECK_FALSE(dead.held());
  CHECK(next.held());
}

TEST_CASE_METHOD(readers_world, "a writer nests both sides, a reader nests its own, and gets already_held to write") {
  const owner task;
  const auto lock = of(first, task);
  {
    auto w = run(lock.lock()), again = run(lock.lock()), r = run(lock.lock_shared());
    CHECK(w.id() == r.id());
    until([&] { return eye("HGET", "s", w.id() + ":write") == "3"; });
    run(w.unlock());
    run(again.unlock());
    CHECK_FALSE(run(of(second).try_lock_shared()));
    run(r.unlock());
  }
  auto r = run(lock.lock_shared());
  started<lease> write(*this, of(second).lock());
  until([&] { return waiting_writers() == 1; });
  auto again = run(lock.lock_shared());
  CHECK(again.id() == r.id());
  CHECK(code_of(lock.lock()) == errc::already_held);
  run(r.unlock());
  run(again.unlock());
  until([&] { return write.succeeded(); });
  run(write.answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world, "a force-unlock breaks the writer or all readers, and wakes a waiter") {
  const bool writes = GENERATE(true, false);
  auto held = run(writes ? of(first).lock() : of(first).lock_shared());
  started<lease> write(*this, of(second).lock());
  until([&] { return waiting_writers() == 1; });
  CHECK(run(of(third).force_unlock()));
  until([&] { return write.succeeded(); });
  CHECK(code_of(held.unlock()) == errc::lost);
  CHECK(write.answer->value().held());
  run(write.answer->value().unlock());
  CHECK_FALSE(run(of(third).force_unlock()));
}

TEST_CASE_METHOD(readers_world, "the sides are mutexes of one lock") {
  const auto lock = of(first);
  auto r = run(lock.reader().lock());
  CHECK(run(of(second).reader().is_locked()));
  CHECK_FALSE(run(of(second).writer().try_lock()));
  const owner task;
  auto mine = run(of(first, task).lock_shared());
  CHECK(run(lock.reader().held_by(task)));
  CHECK_FALSE(run(lock.writer().held_by(task)));
  run(mine.unlock());
  run(r.unlock());
  auto w = run(lock.writer().lock());
  CHECK(run(of(second).writer().is_locked()));
  run(w.unlock());
  auto written = run(of(first, task).lock());
  CHECK(run(lock.writer().held_by(task)));
  CHECK_FALSE(run(lock.reader().held_by(task)));
  run(written.unlock());
  CHECK(lock.name() == "s");
}

TEST_CASE_METHOD(readers_world, "tasks of three clients that read and write never stand where another writes") {
  int writing = 0, reading = 0, writes = 0, reads = 0;
  bool broken = false;
  const auto task = [&](const client& by, int share_of_writes, int rounds) -> asio::awaitable<void> {
    const auto lock = of(by);
    for (int i = 0; i < rounds; ++i) {
      const bool to_write = i % share_of_writes == 0;
      lease held;
      if (to_write)
        held = co_await lock.lock();
      else
        held = co_await lock.lock_shared();
      broken |= writing > 0 || (to_write && reading > 0);
      ++(to_write ? writing : reading);
      asio::steady_timer work(co_await asio::this_coro::executor, 200us);
      co_await work.async_wait(asio::use_awaitable);
      --(to_write ? writing : reading);
      ++(to_write ? writes : reads);
      co_await held.unlock();
    }
  };
  int left = 0;
  for (const auto* by : {&first, &second, &third})
    for (int n = 0; n < 4; ++n) {
      ++left;
      asio::co_spawn(io, task(*by, n == 0 ? 2 : 5, 30), [&](const std::exception_ptr& failed) {
        broken |= failed != nullptr;
        --left;
      });
    }
  until([&] { return left == 0; });
  CHECK_FALSE(broken);
  CHECK(writes == 3 * (15 + 3 * 6));
  CHECK(reads == 12 * 30 - writes);
  check_nothing_is_left();
}

// ---- downgrade

TEST_CASE_METHOD(readers_world, "a downgrade lets readers in and keeps writers out, and nobody writes in between") {
  auto held = run(of(first).lock());
  started<lease> write(*this, of(second).lock());
  until([&] { return waiting_writers() == 1; });
  started<lease> read(*this, of(third).lock_shared());
  until([&] { return waiting_readers() == 1; });
  const auto id = held.id();
  run(of(first).downgrade(held));
  CHECK(held.held());
  CHECK(held.id() == id + "/1");
  until([&] { return read.succeeded(); });
  CHECK_FALSE(write.answer);
  CHECK(run(of(first).read_holds()) == 2);
  CHECK_FALSE(run(of(first).holder()));
  run(held.unlock());
  CHECK_FALSE(write.answer);
  run(read.answer->value().unlock());
  until([&] { return write.succeeded(); });
  run(write.answer->value().unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world, "a downgraded lease is renewed, and found by its owner") {
  auto brief = make([](config& c) { c.ttl = 300ms; });
  const owner task;
  const auto lock = of(brief, task);
  auto held = run(lock.lock());
  run(lock.downgrade(held));
  pass(500ms);
  CHECK(held.held());
  CHECK(run(lock.reader().held_by(task)));
  CHECK_FALSE(run(lock.writer().held_by(task)));
  CHECK(code_of(lock.lock()) == errc::already_held);
  auto again = run(lock.lock_shared());
  CHECK(again.id() == held.id());
  run(held.unlock());
  run(again.unlock());
  check_nothing_is_left();
}

TEST_CASE_METHOD(readers_world, "a lease that is no write lease of this lock and this client is not downgraded") {
  lease none;
  CHECK(code_of(of(first).downgrade(none)) == errc::not_held);
  auto held = run(of(first).lock());
  CHECK(code_of(of(second).downgrade(held)) == errc::not_held);
  CHECK(code_of(first.shared_mutex("t").downgrade(held)) == errc::not_held);
  CHECK(held.held());
  run(of(first).downgrade(held));
  CHECK(code_of(of(first).downgrade(held)) == errc::not_held);
  CHECK(held.held());
  run(held.unlock());
  CHECK(code_of(of(first).downgrade(held)) == errc::not_held);
  check_nothing_is_left();
}
