// SPDX-License-Identifier: BSL-1.0
// The test kit, as a user sees it.
#include <holdfast/testing/server.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/metrics.hpp>

#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::contains_text;

namespace {

template <class Call>
error_code code_of(Call call) {
  try {
    call();
  } catch (const boost::system::system_error& e) {
    return e.code();
  }
  return {};
}

/// All that an observer is told.
struct journal : observer {
  void on(const event& e) noexcept override {
    text << to_string(e.kind) << ' ' << e.name << ' ' << e.id << ' ' << e.reason.value() << ' ' << e.held.count()
         << '\n';
  }
  std::ostringstream text;
};

/// A service in trouble, from its first lock to its end.
std::string a_life() {
  asio::io_context io;
  testing::server server(io);
  const auto told = std::make_shared<journal>();
  auto one = server.make_client({.observer = told}), other = server.make_client({.observer = told});
  server.link_of(one).set_latency(3ms);
  const auto works = [&server](client& c) -> asio::awaitable<void> {
    for (int round = 0; round < 3; ++round) {
      auto lease = co_await c.mutex("N").lock();
      co_await server.sleep_for(7ms);
    }
  };
  for (int task = 0; task < 5; ++task)
    for (auto* redis : {&one, &other}) asio::co_spawn(io, works(*redis), asio::detached);
  auto held = server.run(one.mutex("M").lock());
  server.advance(50ms);
  server.link_of(one).cut();
  server.advance(15s);
  server.link_of(one).restore();
  server.advance(1min);
  server.run(held.unlock());
  server.check();
  return told->text.str();
}

}  // namespace

TEST_CASE("a client of the kit locks, is renewed and unlocks, and time goes on only by advance()") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  auto lease = server.run(redis.mutex("orders:42").lock());
  CHECK(lease.held());
  REQUIRE(server.holder("orders:42"));
  CHECK(server.holder("orders:42")->id == lease.id());
  CHECK(server.holder("orders:42")->ttl == 30s);
  CHECK(server.elapsed() == 0s);

  server.advance(1h);
  CHECK(lease.held());
  CHECK(server.elapsed() == 1h);
  CHECK(server.holder("orders:42")->ttl > 19s);

  server.run(lease.unlock());
  CHECK(server.locks().empty());
  server.check();
}

TEST_CASE("at one instant everything happens by io.poll() alone") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  std::optional<lease> got;
  asio::co_spawn(io, redis.mutex("N").lock(), [&](std::exception_ptr, lease l) { got = std::move(l); });
  CHECK_FALSE(got);
  io.poll();
  REQUIRE(got);
  got.reset();
  io.restart();
  io.poll();
  CHECK(server.locks().empty());
}

TEST_CASE("the same test does the same each time, to the ids of its leases") {
  const auto life = a_life();
  CHECK(life.find("suspended") != life.npos);
  CHECK(life == a_life());
}

TEST_CASE("several clients of one server exclude each other and hand over") {
  asio::io_context io;
  testing::server server(io);
  auto one = server.make_client(), other = server.make_client();
  CHECK(one.id() != other.id());
  auto first = server.run(one.mutex("N").lock());
  CHECK_FALSE(server.run(other.mutex("N").try_lock()));
  CHECK_FALSE(server.run(other.mutex("N").try_lock_for(2s)));
  CHECK(server.elapsed() == 2s);
  std::optional<lease> second;
  asio::co_spawn(io, other.mutex("N").lock(), [&](std::exception_ptr, lease l) { second = std::move(l); });
  server.run_until_idle();
  server.run(first.unlock());
  server.run_until_idle();
  REQUIRE(second);  // told by a message: no time has passed
  CHECK(server.elapsed() == 2s);
}

TEST_CASE("keys are as Redis has them, of every kind, with the prefix") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client({.key_prefix = "shop:"});
  owner task;
  auto plain = server.run(redis.mutex("a", task).lock());
  auto again = server.run(redis.mutex("a", task).lock());
  auto fenced = server.run(redis.fenced_mutex("b").lock());
  auto simple = server.run(redis.simple_mutex("c").lock());
  server.run_until_idle();
  const auto all = server.locks();
  REQUIRE(all.size() == 3);
  CHECK(all[0].name == "shop:a");
  CHECK(all[0].holder.count == 2);
  CHECK(all[1].name == "shop:b");
  CHECK(fenced.token());
  CHECK(all[2].name == "shop:c");
  CHECK(all[2].holder.id == simple.id());
  CHECK_FALSE(server.holder("a"));
}

TEST_CASE("permits are renewed in virtual time, and the counter of their semaphore is no lock") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client(), other = server.make_client();
  const auto pool = redis.expirable_semaphore("N", 3);
  auto two = server.run(pool.acquire(2)), one = server.run(other.expirable_semaphore("N", 3).acquire());
  CHECK_FALSE(server.run(pool.try_acquire()));
  server.advance(1h);
  CHECK(two.held());
  CHECK(one.held());
  CHECK(server.locks().empty());
  server.run(two.unlock());
  CHECK(server.run(pool.available()) == 2);
  server.run(one.unlock());
}

TEST_CASE("a semaphore is shown with the number of its permits, and with a holder for each that is out") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client({.key_prefix = "shop:"});
  CHECK(server.semaphores().empty());
  auto two = server.run(redis.expirable_semaphore("N", 3).acquire(2));
  const auto all = server.semaphores();
  REQUIRE(all.size() == 1);
  CHECK(all[0].name == "shop:N");
  CHECK(all[0].permits == 3);
  REQUIRE(all[0].out.size() == 2);
  auto client = redis.id();
  std::erase(client, '-');
  for (const auto& holder : all[0].out) {
    CHECK(holder.id.substr(0, 16) == client.substr(0, 16));
    CHECK(holder.ttl == 30s);
  }
  CHECK(all[0].out[0].id != all[0].out[1].id);
  CHECK_FALSE(server.semaphore("N"));

  server.run(two.unlock());
  CHECK(server.semaphore("shop:N")->out.empty());
  CHECK(server.semaphore("shop:N")->permits == 3);
}

TEST_CASE("a latch is counted down by a service and by another client, and its marks are no locks") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client({.key_prefix = "shop:"});
  const auto ready = redis.latch("ready");
  CHECK(server.run(ready.try_set(4)));
  CHECK(server.latch_count("shop:ready") == 4);
  bool open = false;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        co_await ready.wait();
        open = true;
      },
      asio::detached);
  server.run(ready.count_down());
  CHECK(server.locks().empty());
  server.count_down("shop:ready", 2);
  CHECK(server.latch_count("shop:ready") == 1);
  server.advance(1s);
  CHECK_FALSE(open);
  server.count_down("shop:ready");
  server.advance(10ms);  // by the message
  CHECK(open);
  CHECK(server.latch_count("shop:ready") == 0);
  CHECK_THROWS_AS(server.count_down("shop:ready"), std::logic_error);
  server.check();
}

TEST_CASE("a count-down in an outage of the kit goes on, and is counted once") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  const auto ready = redis.latch("ready");
  CHECK(server.run(ready.try_set(3)));
  server.stop_answering();
  CHECK(code_of([&] { server.run(ready.count_down()); }) == errc::unconfirmed);
  CHECK(server.latch_count("ready") == 3);
  server.answer_again();
  server.advance(2s);
  CHECK(server.latch_count("ready") == 2);
  CHECK_FALSE(server.run(ready.wait_for(100ms)));
  server.check();
}

TEST_CASE("a leader in the kit is a lock with its holder, and is observed until its TTL is over") {
  asio::io_context io;
  testing::server server(io);
  auto one = server.make_client({.ttl = 10s}), other = server.make_client();
  const auto chief = other.election("chief");
  auto lead = server.run(one.election("chief").campaign("10.0.0.1:80"));
  const auto known = server.run(chief.leader());
  REQUIRE(known);
  CHECK(known->value == "10.0.0.1:80");
  REQUIRE(server.locks().size() == 1);
  CHECK(server.locks().front().holder.id == lead.id());
  bool over = false;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        const auto now = co_await chief.next(known);
        over = !now;
      },
      asio::detached);
  server.link_of(one).cut();
  server.advance(9s);
  CHECK_FALSE(over);
  server.advance(2s);
  CHECK(over);
  CHECK_FALSE(lead.held());
  server.check();
}

TEST_CASE("a permit that has ended is not shown, although nobody has taken it back") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  auto one = server.run(redis.expirable_semaphore("N", 3).acquire());
  server.take_over("N", 1s);
  server.advance(999ms);
  CHECK(server.semaphore("N")->out.size() == 2);
  server.advance(1ms);
  CHECK(server.semaphore("N")->out.size() == 1);
  CHECK(server.semaphore("N")->permits == 3);
}

TEST_CASE("another client takes the free permits, then those that end next, and their holders find out") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  const auto pool = redis.expirable_semaphore("N", 2);
  auto held = server.run(pool.acquire());
  server.take_over("N", 1h);
  CHECK(server.semaphore("N")->out.size() == 2);
  CHECK_FALSE(server.run(pool.try_acquire()));
  server.advance(10s);
  CHECK(held.held());

  server.take_over("N", 1h);
  CHECK(server.semaphore("N")->permits == 2);
  server.advance(10s);
  CHECK_FALSE(held.held());
  CHECK(code_of([&] { server.run(held.unlock()); }) == errc::lost);

  std::optional<lease> got;
  asio::co_spawn(io, pool.acquire(2), [&](std::exception_ptr, lease l) { got = std::move(l); });
  server.advance(1min);
  server.give_back("N");
  server.run_until_idle();
  CHECK_FALSE(got);
  server.give_back("N");
  server.run_until_idle();
  CHECK(got);
  CHECK_THROWS_AS(server.give_back("N"), std::logic_error);
}

TEST_CASE("a permit of a semaphore that nobody has used yet is one permit less for the first who comes") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  server.take_over("N", 1s, testing::format::permits);
  CHECK_FALSE(server.semaphore("N")->permits);
  const auto pool = redis.expirable_semaphore("N", 2);
  CHECK_FALSE(server.run(pool.try_acquire(2)));
  CHECK(server.run(pool.try_acquire()));
  CHECK(server.semaphore("N")->permits == 2);
  server.advance(1s);
  CHECK(server.run(pool.try_acquire(2)));
}

TEST_CASE("a semaphore whose permits are all lost loses its leases, and begins anew") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  const auto pool = redis.expirable_semaphore("N", 2);
  CHECK_THROWS_AS(server.lose("N"), std::logic_error);
  auto held = server.run(pool.acquire(2));
  server.lose("N");
  CHECK_FALSE(server.semaphore("N"));
  server.advance(10s);
  CHECK_FALSE(held.held());
  auto both = server.run(pool.try_acquire(2));
  CHECK(both);
  server.run(both->unlock());
  CHECK_THROWS_AS(server.lose("N"), std::logic_error);
}

TEST_CASE(
    "a shared mutex is shown with its writer, or with each of its read holds, and the keys beside it are no locks") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client({.key_prefix = "shop:"}), other = server.make_client({.key_prefix = "shop:"});
  const auto of = [](const client& c) { return c.shared_mutex("N"); };
  {
    auto write = server.run(of(redis).lock());
    server.advance(1h);
    REQUIRE(server.locks().size() == 1);
    CHECK(server.locks()[0].name == "shop:N");
    CHECK(server.locks()[0].holder.id == write.id());
    CHECK_FALSE(server.locks()[0].reads);
    CHECK(server.holder("shop:N")->count == 1);
    std::optional<lease> waits;
    asio::co_spawn(io, of(other).lock(), [&](std::exception_ptr, lease l) { waits = std::move(l); });
    server.run_until_idle();
    CHECK(server.locks().size() == 1);  // the place in the queue is a key as well
    server.link_of(other).fall_silent();
    server.run(write.unlock());
    CHECK(server.locks().empty());  // the turn that the release gives is a key as well
    server.link_of(other).restore();
    server.advance(1min);
    CHECK(waits);
  }
  server.run_until_idle();
  auto read = server.run(of(redis).lock_shared()), beside = server.run(of(other).lock_shared());
  server.advance(1h);
  const auto all = server.locks();
  REQUIRE(all.size() == 2);
  CHECK(all[0].reads);
  CHECK(all[0].holder.id == read.id());
  CHECK(all[1].holder.id == beside.id());
  CHECK(all[1].holder.ttl > 19s);
  CHECK(server.holder("shop:N")->id == read.id());
  server.run(read.unlock());
  server.run(beside.unlock());
  CHECK(server.locks().empty());
  server.check();
}

TEST_CASE("a fair mutex is shown with its holder, and its waiters are served in their order after another client") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client(), other = server.make_client();
  server.take_over("N", 1h);
  std::optional<lease> first, second;
  asio::co_spawn(io, redis.fair_mutex("N").lock(), [&](std::exception_ptr, lease l) { first = std::move(l); });
  server.run_until_idle();
  asio::co_spawn(io, other.fair_mutex("N").lock(), [&](std::exception_ptr, lease l) { second = std::move(l); });
  server.run_until_idle();
  REQUIRE(server.locks().size() == 1);  // the queue and its deadlines are keys as well
  CHECK(server.run(other.fair_mutex("N").waiters()) == 2);
  server.give_back("N");
  server.run_until_idle();
  REQUIRE(first);
  CHECK_FALSE(second);
  CHECK(server.holder("N")->id == first->id());
  server.advance(1h);
  CHECK(first->held());
  server.run(first->unlock());
  server.run_until_idle();
  REQUIRE(second);
  server.run(second->unlock());
  CHECK(server.locks().empty());
  server.check();
}

TEST_CASE("another client writes a shared mutex: its holders find out, and who waits gets it back") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  const auto guard = redis.shared_mutex("N");
  server.take_over("N", 1h, testing::format::shared);
  CHECK_FALSE(server.run(guard.try_lock()));
  CHECK_FALSE(server.run(guard.try_lock_shared()));
  CHECK(server.run(guard.holder())->id == server.holder("N")->id);
  std::optional<lease> got;
  SECTION("a reader") {
    asio::co_spawn(io, guard.lock_shared(), [&](std::exception_ptr, lease l) { got = std::move(l); });
  }
  SECTION("a writer") {
    asio::co_spawn(io, guard.lock(), [&](std::exception_ptr, lease l) { got = std::move(l); });
  }
  server.run_until_idle();
  CHECK_FALSE(got);
  server.give_back("N");
  server.run_until_idle();
  REQUIRE(got);
  CHECK_THROWS_AS(server.give_back("N"), std::logic_error);
  server.take_over("N", 1h);
  server.advance(10s);
  CHECK_FALSE(got->held());
  CHECK(code_of([&] { server.run(got->unlock()); }) == errc::lost);
  CHECK_FALSE(server.locks()[0].reads);
}

TEST_CASE("another client reads a shared mutex beside our readers, and a writer waits for it or for its TTL") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  const auto guard = redis.shared_mutex("N");
  auto read = server.run(guard.lock_shared());
  server.take_over("N", 5s, testing::format::reader);
  CHECK(server.locks().size() == 2);
  CHECK(server.run(guard.read_holds()) == 2);
  server.run(read.unlock());
  CHECK(server.locks().size() == 1);
  std::optional<lease> got;
  asio::co_spawn(io, guard.lock(), [&](std::exception_ptr, lease l) { got = std::move(l); });
  server.run_until_idle();
  CHECK_FALSE(got);
  SECTION("it gives it back") { server.give_back("N"); }
  SECTION("its time is over") {
    server.advance(4900ms);
    CHECK_FALSE(got);
    server.advance(1s);
    CHECK(server.locks().size() == 1);
  }
  server.run_until_idle();
  REQUIRE(got);
  server.take_over("N", 1h, testing::format::reader);
  server.advance(10s);
  CHECK_FALSE(got->held());
  CHECK(server.run(guard.try_lock_shared()));
}

TEST_CASE("the readers of a shared mutex whose key is lost are told, and it begins anew") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  const auto guard = redis.shared_mutex("N");
  auto read = server.run(guard.lock_shared());
  server.lose("N");
  CHECK(server.locks().empty());
  CHECK_THROWS_AS(server.lose("N"), std::logic_error);
  auto write = server.run(guard.try_lock());
  CHECK(write);
  server.advance(10s);
  CHECK_FALSE(read.held());
  CHECK(write->held());
}

TEST_CASE("another client has a free lock, and gives it back to who waits") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  const auto as = GENERATE(testing::format::hash, testing::format::string);
  auto mutex = as == testing::format::hash ? redis.mutex("N") : holdfast::mutex(redis.simple_mutex("N"));
  server.take_over("N", 1h, as);
  CHECK_FALSE(server.run(mutex.try_lock()));
  std::optional<lease> got;
  asio::co_spawn(io, mutex.lock(), [&](std::exception_ptr, lease l) { got = std::move(l); });
  server.advance(1min);
  CHECK_FALSE(got);
  server.give_back("N");
  server.run_until_idle();
  CHECK(got);
  CHECK_THROWS_AS(server.give_back("N"), std::logic_error);
}

TEST_CASE("a lock that another client takes over is lost at the next renewal, and ends with that one's TTL") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  auto held = server.run(redis.simple_mutex("N").lock());
  server.take_over("N", 12s);
  CHECK(held.held());
  server.advance(10s);
  CHECK_FALSE(held.held());
  CHECK(code_of([&] { server.run(held.unlock()); }) == errc::lost);
  CHECK_FALSE(server.run(redis.simple_mutex("N").try_lock()));
  server.advance(2s + 1ms);
  CHECK(server.run(redis.simple_mutex("N").try_lock()));
}

TEST_CASE("a function that takes a lease gets a held one and a lost one") {
  asio::io_context io;
  testing::server server(io);
  auto held = server.held_lease("N");
  CHECK(held.held());
  CHECK(held.token());
  auto lost = server.lost_lease("M");
  CHECK(lost.state() == lease_state::lost);
  CHECK(lost.name() == "M");
  CHECK(code_of([&] { server.run(lost.unlock()); }) == errc::lost);
  CHECK_THROWS_WITH(server.held_lease("N"), contains_text("'N' is held by " + held.id()));
}

TEST_CASE("run() gives the value and throws the exception of its coroutine") {
  asio::io_context io;
  testing::server server(io);
  const auto sum = [](int a, int b) -> asio::awaitable<int> { co_return a + b; };
  CHECK(server.run(sum(2, 3)) == 5);
  const auto fails = []() -> asio::awaitable<void> {
    throw std::runtime_error("no");
    co_return;
  };
  CHECK_THROWS_WITH(server.run(fails()), "no");
  server.run(server.sleep_for(10s));
  CHECK(server.elapsed() == 10s);
}

TEST_CASE("run() of what never ends says so and cancels it") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  auto held = server.run(redis.mutex("N").lock());
  bool cancelled = false;
  const auto wait = [&]() -> asio::awaitable<void> {
    try {
      auto lease = co_await redis.mutex("N").lock();
    } catch (const boost::system::system_error& e) {
      cancelled = e.code() == asio::error::operation_aborted;
      throw;
    }
  };
  CHECK_THROWS_WITH(server.run(wait(), 20s), contains_text("at_most, 20 s of virtual time, is over"));
  CHECK(cancelled);
  CHECK(server.elapsed() == 20s);
  server.run(held.unlock());
  server.advance(1min);

  const auto real_time = [&]() -> asio::awaitable<void> {
    asio::steady_timer timer(io, 1h);
    co_await timer.async_wait(asio::use_awaitable);
  };
  CHECK_THROWS_WITH(server.run(real_time()), contains_text("does it wait for a timer or a socket of Asio?"));
}

TEST_CASE("a clock that is advanced backwards is refused, and stays as it was") {
  asio::io_context io;
  testing::server server(io);
  server.advance(5s);
  CHECK_THROWS_AS(server.advance(-1ms), std::invalid_argument);
  CHECK_THROWS_WITH(server.advance(-1ms), contains_text("never back"));
  CHECK_THROWS_AS(server.pause_process(-1ms), std::invalid_argument);
  CHECK_THROWS_AS(server.run(server.sleep_for(-1ms)), std::invalid_argument);
  CHECK(server.elapsed() == 5s);
  server.advance(0s);
}

TEST_CASE("a lease that a test forgets is named by check()") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  auto forgotten = std::make_unique<lease>(server.run(redis.mutex("orders:42").lock()));
  server.advance(1min);
  const auto id = forgotten->id();
  CHECK_THROWS_WITH(server.check(),
                    contains_text("1 lock is still held: 'orders:42' by lease " + id + " for 60000 ms"));
  forgotten.reset();
  server.check();
}

TEST_CASE("a server that is destroyed before its clients closes them") {
  asio::io_context io;
  auto server = std::make_unique<testing::server>(io);
  auto redis = server->make_client();
  auto held = server->run(redis.mutex("N").lock());
  error_code waiter;
  asio::co_spawn(io, redis.mutex("N").lock(),
                 [&](std::exception_ptr e, lease) { waiter = code_of([&] { std::rethrow_exception(e); }); });
  server->run_until_idle();
  auto way = server->link_of(redis);

  server.reset();
  CHECK_FALSE(held.held());
  way.cut();  // nothing
  io.restart();
  io.run();
  CHECK(waiter == errc::shutting_down);
  error_code later;
  asio::co_spawn(io, redis.mutex("M").lock(),
                 [&](std::exception_ptr e, lease) { later = code_of([&] { std::rethrow_exception(e); }); });
  bool shut = false;
  asio::co_spawn(io, redis.shutdown(10s), [&](std::exception_ptr) { shut = true; });
  io.restart();
  io.run();  // returns: nothing waits for a time that does not go on
  CHECK(later == errc::shutting_down);
  CHECK(shut);
  for (int again = 0; again < 2; ++again) {
    std::optional<std::exception_ptr> ended;
    asio::co_spawn(io, redis.shutdown(10s), [&](std::exception_ptr e) { ended = e; });
    io.restart();
    io.run();
    REQUIRE(ended);
    CHECK_FALSE(*ended);
  }
}

TEST_CASE("a client that has ended leaves no timer behind, and its lock is free") {
  asio::io_context io;
  testing::server server(io);
  auto other = server.make_client();
  std::optional<lease> held;
  {
    auto redis = server.make_client();
    held = server.run(redis.mutex("N").lock());
  }
  CHECK_FALSE(held->held());
  server.advance(1h);
  CHECK(server.run(other.mutex("N").try_lock()));
}

TEST_CASE("server, client, lease and io_context end in any order") {
  auto io = std::make_unique<asio::io_context>();
  auto server = std::make_unique<testing::server>(*io);
  auto redis = std::make_unique<client>(server->make_client());
  auto held = std::make_unique<lease>(server->run(redis->mutex("N").lock()));
  asio::co_spawn(*io, redis->mutex("N").lock(), asio::detached);
  asio::co_spawn(*io, server->sleep_for(1h), asio::detached);
  if (GENERATE(false, true)) server->run_until_idle();
  if (GENERATE(false, true)) server->link_of(*redis).cut();
  switch (GENERATE(range(0, 6))) {
    case 0: io.reset(), server.reset(), redis.reset(), held.reset(); break;
    case 1: server.reset(), io.reset(), held.reset(), redis.reset(); break;
    case 2: redis.reset(), io.reset(), held.reset(), server.reset(); break;
    case 3: held.reset(), server.reset(), redis.reset(), io.reset(); break;
    case 4: io.reset(), held.reset(), redis.reset(), server.reset(); break;
    case 5: redis.reset(), server.reset(), io.reset(), held.reset(); break;
  }
  if (held) CHECK_FALSE(held->held());
}

TEST_CASE("what runs the io_context is refused inside of its handlers, and the rest is not") {
  asio::io_context io;
  testing::server server(io);
  std::optional<client> made;
  const auto inside = [&]() -> asio::awaitable<void> {
    CHECK_THROWS_AS(server.advance(1s), std::logic_error);
    CHECK_THROWS_AS(server.run_until_idle(), std::logic_error);
    CHECK_THROWS_AS(server.check(), std::logic_error);
    CHECK_THROWS_AS(server.held_lease("N"), std::logic_error);
    CHECK_THROWS_WITH(server.run(server.sleep_for(1s)), contains_text("inside of a handler"));
    made.emplace(server.make_client());
    auto lease = co_await made->mutex("N").lock();
    co_await server.sleep_for(25s);
    CHECK(lease.held());
    server.lose("N");
    co_await server.sleep_for(10s);
    CHECK_FALSE(lease.held());
  };
  server.run(inside());
  CHECK(server.elapsed() == 35s);
}

TEST_CASE("a server that does not answer makes an operation unreachable, and does later what it was sent") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  server.run(redis.connect());
  server.stop_answering();
  CHECK(code_of([&] { server.run(redis.mutex("N").try_lock()); }) == errc::unreachable);
  CHECK(server.elapsed() >= 500ms);
  server.answer_again();
  server.advance(6s);
  CHECK(server.locks().empty());  // the late grant was undone
  CHECK(server.run(redis.mutex("N").try_lock()));
}

TEST_CASE("a latency is virtual time for each way") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  server.run(redis.connect());
  server.link_of(redis).set_latency(20ms);
  const auto before = server.elapsed();
  auto lease = server.run(redis.mutex("N").lock());
  CHECK(server.elapsed() - before == 40ms);
  CHECK_THROWS_AS(server.link_of(redis).set_latency(-1ms), std::invalid_argument);
}

TEST_CASE("what a paused process has sent is done by the server meanwhile, and heard of afterwards") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  server.run(redis.connect());
  server.link_of(redis).set_latency(20ms);
  std::optional<lease> got;
  asio::co_spawn(io, redis.mutex("N").lock(), [&](std::exception_ptr, lease l) { got = std::move(l); });
  bool slept = false;
  asio::co_spawn(io, server.sleep_for(5s), [&](std::exception_ptr failed) { slept = !failed; });
  server.run_until_idle();

  server.pause_process(10s);
  REQUIRE(server.holder("N"));
  CHECK(server.holder("N")->ttl == 30s - (10s - 20ms));
  server.pause_process(20s + 21ms);
  CHECK(server.locks().empty());  // the grant has ended
  CHECK_FALSE(got);
  CHECK_FALSE(slept);

  io.restart();
  io.poll();
  CHECK(slept);
  CHECK_FALSE(got);  // it was dead when it arrived
  server.advance(1s);
  REQUIRE(got);
  CHECK(got->held());
}

TEST_CASE("a timer that was due while the process was paused is late by the pause, without advance()") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  auto lease = server.run(redis.mutex("N").lock());
  server.pause_process(12s);
  CHECK(server.holder("N")->ttl == 18s);
  io.restart();
  io.poll();
  CHECK(server.holder("N")->ttl == 30s);  // renewed
  CHECK(server.elapsed() == 12s);
}

TEST_CASE("what was on its way when its link was cut does nothing") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  server.run(redis.connect());
  server.link_of(redis).set_latency(20ms);
  asio::co_spawn(io, redis.mutex("N").lock(), asio::detached);
  server.advance(10ms);
  server.link_of(redis).cut();
  server.advance(1s);
  CHECK(server.locks().empty());
}

TEST_CASE("a connection that is made while the server hangs ends with its restart") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  server.stop_answering();
  std::optional<lease> got;
  asio::co_spawn(io, redis.mutex("N").lock(), [&](std::exception_ptr, lease l) { got = std::move(l); });
  server.run_until_idle();
  server.restart();
  server.advance(200ms);  // not only when the command has timed out
  CHECK(got);
}

TEST_CASE("a server that is up is not started anew") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  auto lease = server.run(redis.mutex("N").lock());
  server.start();
  server.run(lease.unlock());
  CHECK(server.elapsed() == 0s);
}

TEST_CASE("a lock() in a link that fell silent is had when the link is restored") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client();
  server.run(redis.connect());
  server.link_of(redis).fall_silent();
  std::optional<lease> got;
  asio::co_spawn(io, redis.mutex("N").lock(), [&](std::exception_ptr, lease l) { got = std::move(l); });
  server.advance(1min);
  CHECK_FALSE(got);
  server.link_of(redis).restore();
  server.advance(8s);
  CHECK(got);
}

TEST_CASE("the test's own observer is told as ever") {
  asio::io_context io;
  testing::server server(io);
  const auto told = std::make_shared<journal>();
  auto redis = server.make_client({.observer = told});
  auto lease = server.run(redis.mutex("N").lock());
  CHECK(told->text.str().find("acquired N") != std::string::npos);
}

TEST_CASE("metrics count a holder and a waiter as in production") {
  asio::io_context io;
  testing::server server(io);
  const auto numbers = std::make_shared<metrics>();
  auto holder = server.make_client({.observer = numbers}), waiter = server.make_client({.observer = numbers});
  auto held = server.run(holder.mutex("N").lock());
  std::optional<lease> got;
  asio::co_spawn(io, waiter.mutex("N").lock(), [&](std::exception_ptr, lease l) { got = std::move(l); });
  server.run_until_idle();
  const auto shown = [&] {
    std::ostringstream text;
    numbers->write(text);
    return text.str();
  };
  CHECK_THAT(shown(), contains_text("holdfast_lock_waiters{kind=\"mutex\"} 1\n"));
  server.run(held.unlock());
  server.run_until_idle();
  REQUIRE(got);
  CHECK_THAT(shown(), contains_text("holdfast_lock_waiters{kind=\"mutex\"} 0\n"));
}

TEST_CASE("whoever calls while the server is known to be away stands in line") {
  asio::io_context io;
  testing::server server(io);
  const auto numbers = std::make_shared<metrics>();
  auto redis = server.make_client({.observer = numbers});
  const auto waiters = [&](int n) {
    std::ostringstream text;
    numbers->write(text);
    return text.str().find("holdfast_lock_waiters{kind=\"mutex\"} " + std::to_string(n) + "\n") != std::string::npos;
  };
  server.shut_down();
  CHECK_THROWS(server.run(redis.mutex("N").try_lock()));
  std::vector<lease> got;
  for (const auto* name : {"A", "B", "C"})
    asio::co_spawn(io, redis.mutex(name).lock(), [&](std::exception_ptr, lease l) { got.push_back(std::move(l)); });
  server.advance(1min);
  CHECK(waiters(3));
  server.start();
  server.advance(10s);
  CHECK(got.size() == 3);
  CHECK(waiters(0));
}

TEST_CASE("a config counts, except what it connects to, and what there is not is refused") {
  asio::io_context io;
  testing::server server(io);
  auto redis = server.make_client({.url = "rediss://user:secret@redis.example:6380/3?ttl=2000"});
  auto lease = server.run(redis.mutex("N").lock());
  CHECK(server.holder("N")->ttl == 2s);
  CHECK(code_of([&] { server.make_client({.url = "nonsense://"}); }) == errc::invalid_config);
  CHECK(code_of([&] { server.make_client({.ttl = 1ms}); }) == errc::invalid_ttl);
  CHECK(code_of([&] { server.make_client({.url = "redis+cluster://one,two"}); }) == errc::invalid_config);
  CHECK(code_of([&] { server.make_client({.min_replicas = 1}); }) == errc::invalid_config);
}

TEST_CASE("clients of others and executors of others are refused") {
  asio::io_context io, elsewhere;
  testing::server server(io), another(io);
  auto redis = another.make_client();
  CHECK_THROWS_AS(server.link_of(redis), std::invalid_argument);
  CHECK_THROWS_AS(server.make_client(elsewhere.get_executor(), {}), std::invalid_argument);
  auto own = server.make_client(asio::make_strand(io), {});
  CHECK(server.run(own.mutex("N").try_lock()));
}

TEST_CASE("what cannot be done to a lock is said") {
  asio::io_context io;
  testing::server server(io);
  CHECK_THROWS_WITH(server.lose("N"), contains_text("nobody holds 'N'"));
  CHECK_THROWS_WITH(server.give_back("N"), contains_text("has not got 'N'"));
  CHECK_THROWS_AS(server.take_over("N", 0ms), std::invalid_argument);
  CHECK_THROWS_AS(server.step_clock(std::chrono::hours(24 * 365 * 11)), std::invalid_argument);
}
