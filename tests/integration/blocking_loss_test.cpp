// SPDX-License-Identifier: BSL-1.0
// A blocking lock that is lost, or used as it must not be: what is told, how, and what is left.
#include <future>
#include <string_view>

#include "integration/blocking_world.hpp"
#include "support/no_memory.hpp"
#include "support/proxy.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

using boost::system::errc::resource_deadlock_would_occur;
using texts = std::vector<std::string>;

void take_by_hand(raw_client& eye, const std::string& name) {
  eye("DEL", name);
  eye("HSET", name, "stranger:1", 1);
  eye("PEXPIRE", name, 60'000);
}

/// The code of what f throws, and of what is nested in it.
template <class F>
std::vector<std::string> nested_failures(F f) {
  std::vector<std::string> all;
  try {
    f();
  } catch (const error& e) {
    all.push_back(e.code() == errc::lost ? "lost" : e.code() == errc::closed ? "closed" : e.code().message());
    try {
      std::rethrow_if_nested(e);
    } catch (const std::exception& inner) {
      all.emplace_back(inner.what());
    }
  } catch (const std::exception& e) {
    all.emplace_back(e.what());
  }
  return all;
}

/// Waits for a request. Not on the io thread, nor in a callback of another stop of its client.
void wait_for(const std::stop_token& token) {
  std::binary_semaphore requested(0);
  const std::stop_callback tell(token, [&] { requested.release(); });
  if (!requested.try_acquire_for(20s)) throw std::runtime_error("the stop was not requested in time");
}

}  // namespace

TEST_CASE("unlock of a blocking lock that was lost throws nothing and leaves the next holder alone") {
  blocking_world w;
  blocking::client redis(w.settings_with([](config& c) { c.ttl = 300ms; }));
  auto m = redis.mutex("m");
  {
    const std::lock_guard lock(m);
    take_by_hand(w.eye, "m");
    wait_for(m.get_stop_token());
    CHECK_FALSE(m.held());
    CHECK(m.valid_for() == 0ms);
    CHECK(w.code_of_call([&] { m.check(); }) == errc::lost);
    CHECK(w.code_of_call([&] { m.renew(); }) == errc::lost);
    CHECK_THAT(text_of_failure([&] { m.check(); }), contains_text("lock 'm'"));
    CHECK_THAT(text_of_failure([&] { m.check(); }), contains_text("its key is gone or another's"));
  }
  CHECK(w.eye("HGETALL", "m").strings() == texts{"stranger:1", "1"});
  CHECK(w.heard->count(kind::foreign_unlock) == 0);
  CHECK(w.code_of_call([&] { m.check(); }) == errc::not_held);
}

TEST_CASE("check() of several locks of which one is lost asks redis about none") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto a = redis.mutex("a"), b = redis.mutex("b");
  blocking::multi_lock both({a, b});
  const std::lock_guard lock(both);
  take_by_hand(w.eye, "b");
  REQUIRE(w.code_of_call([&] { both.renew(); }) == errc::lost);
  const auto scripts = [&] {
    const auto stats = w.eye("INFO", "commandstats").to_string();
    const auto line = stats.find("cmdstat_evalsha:");
    return stats.substr(line, stats.find(',', line) - line);
  };
  const auto before = scripts();
  CHECK_THAT(text_of_failure([&] { both.check(); }), contains_text("lock 'b'"));
  CHECK(w.code_of_call([&] { both.check(); }) == errc::lost);
  CHECK(scripts() == before);
}

TEST_CASE("a loss that the unlock finds out is told by the token, and counted as one") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  m.lock();
  const auto lost = m.get_stop_token();
  SECTION("of a key that is gone") { w.eye("DEL", "m"); }
  SECTION("of a key that is another's") { take_by_hand(w.eye, "m"); }
  SECTION("of a key that is no lock any more") { w.eye("SET", "m", "hello"); }
  CHECK_FALSE(lost.stop_requested());
  m.unlock();
  wait_for(lost);
  CHECK(w.heard->count(kind::lost) == 1);
  CHECK(w.heard->count(kind::release_failed) == 0);
}

TEST_CASE("a hold that is lost is not given back in place of another thread's") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  m.lock();
  const auto lost = m.get_stop_token();
  CHECK(redis.mutex("m").force_unlock());
  wait_for(lost);
  std::promise<void> locked, unlock;
  crew other;
  other.start([&] {
    const std::lock_guard lock(m);
    locked.set_value();
    unlock.get_future().wait();
    m.check();
  });
  locked.get_future().wait();
  m.unlock();  // of ours, which is lost: the other holds on, by the same object
  CHECK(w.eye("EXISTS", "m") == 1);
  CHECK_FALSE(m.held());
  unlock.set_value();
  other.join();
  CHECK(w.locks().empty());
  CHECK(w.heard->count(kind::foreign_unlock) == 0);
}

TEST_CASE("a stop token is requested by a loss and not by an unlock") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  m.lock();
  const auto first = m.get_stop_token();
  CHECK(first == m.get_stop_token());
  CHECK(first.stop_possible());
  m.unlock();
  m.lock();
  const auto second = m.get_stop_token();
  CHECK_FALSE(second == first);
  m.lock();
  CHECK_FALSE(m.get_stop_token() == second);  // each hold has its own
  const auto third = m.get_stop_token();
  CHECK(m.force_unlock());
  wait_for(second);
  wait_for(third);
  CHECK_FALSE(first.stop_requested());
  CHECK(m.get_stop_token().stop_requested());
  m.unlock();
  m.unlock();
  CHECK(second.stop_requested());  // it may be kept
  CHECK(w.code_of_call([&] { (void)m.get_stop_token(); }) == errc::not_held);
}

TEST_CASE("the end of the client requests the stop of every hold") {
  blocking_world w;
  std::optional<blocking::client> redis(w.settings());
  auto m = redis->mutex("m");
  auto kept = redis->mutex("kept");
  m.lock();
  kept.lock();
  const auto lost = m.get_stop_token();
  SECTION("by its destructor") { redis.reset(); }
  SECTION("by shutdown") { redis->shutdown(1s); }
  wait_for(lost);
  CHECK_FALSE(m.held());
  CHECK(w.code_of_call([&] { m.check(); }) == errc::closed);
  CHECK(w.code_of_call([&] { m.lock(); }) == errc::shutting_down);
  CHECK(kept.get_stop_token().stop_requested() == true);
  m.unlock();
  CHECK(w.locks().empty());
}

TEST_CASE("blocking with_lock gives the value back or throws what its function throws") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  CHECK(blocking::with_lock(m, [&](std::stop_token lost) {
          CHECK_FALSE(lost.stop_requested());
          CHECK(m.held());
          return std::make_unique<int>(7);
        }) != nullptr);
  CHECK_FALSE(m.held());
  int runs = 0;
  blocking::with_lock(m, [&](auto) { blocking::with_lock(m, [&](auto) { ++runs; }); });
  CHECK(runs == 1);
  CHECK(nested_failures([&] { blocking::with_lock(m, [](auto) -> int { throw std::runtime_error("mine"); }); }) ==
        texts{"mine"});
  CHECK(w.locks().empty());

  // The function gives the lock back itself: no other hold is touched.
  const std::lock_guard outer(m);
  blocking::with_lock(m, [&](auto) { m.unlock(); });
  CHECK(m.held());
  CHECK(w.heard->count(kind::foreign_unlock) == 0);
}

TEST_CASE("blocking with_lock takes a lock that is made in the call") {
  blocking_world w;
  blocking::client redis(w.settings());
  const auto holds = [&](const std::stop_token&) { return redis.mutex("m").hold_count(); };
  CHECK(blocking::with_lock(redis.mutex("m"), holds) == 1);
  CHECK(blocking::try_with_lock_for(redis.fenced_mutex("m"), 1s, holds) == 1u);
  static_assert(!blocking::lockable_object<const blocking::mutex> && !blocking::lockable_object<std::mutex>);
  CHECK(w.locks().empty());
}

TEST_CASE("blocking try_with_lock_for calls its function only with the lock, had in time") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  int runs = 0;
  const auto run = [&](std::stop_token lost) {
    CHECK_FALSE(lost.stop_requested());
    CHECK(m.held());
    ++runs;
  };
  const auto seven = [](auto) { return std::make_unique<int>(7); };
  CHECK(blocking::try_with_lock_for(m, 1s, run));
  CHECK(blocking::try_with_lock_for(m, 0s, run));
  CHECK(blocking::try_with_lock_for(m, -1h, run));
  CHECK(**blocking::try_with_lock_for(m, std::chrono::duration<double>(0.5), seven) == 7);
  CHECK(runs == 3);
  CHECK_FALSE(m.held());
  CHECK(w.locks().empty());

  // Another thread has it, or waits for it in vain.
  std::unique_lock held(m);
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(in_thread([&] { return blocking::try_with_lock_for(m, 30ms, run); }));
  CHECK(std::chrono::steady_clock::now() - begin >= 30ms);
  CHECK_FALSE(in_thread([&] { return blocking::try_with_lock_for(m, 0ms, seven).has_value(); }));
  CHECK(runs == 3);
  CHECK(blocking::try_with_lock_for(m, 0ms, run));  // re-entry
  crew waiter;
  waiter.start([&] {
    if (!blocking::try_with_lock_for(m, 20s, run)) throw std::runtime_error("not had");
  });
  w.see_waiters("m");
  held.unlock();
  waiter.join();
  CHECK(runs == 5);
  CHECK(w.heard->count(kind::foreign_unlock) == 0);
}

TEST_CASE("blocking try_with_lock_for throws as with_lock does, and what prevents the lock") {
  blocking_world w;
  proxy between(w.server);
  blocking::client redis(w.settings_with([&](config& c) {
    c.url = between.url();
    c.command_timeout = 50ms;
  }));
  auto m = redis.mutex("m");
  CHECK(nested_failures([&] {
          blocking::try_with_lock_for(m, 1s, [&](std::stop_token lost) {
            m.force_unlock();
            wait_for(lost);
            throw std::runtime_error("stopped");
          });
        }) == texts{"lost", "stopped"});
  CHECK(nested_failures([&] {
          blocking::try_with_lock_for(m, 1s, [](auto) -> int { throw std::runtime_error("mine"); });
        }) == texts{"mine"});
  CHECK(w.locks().empty());
  between.hold(proxy::direction::to_client);
  int runs = 0;
  CHECK(w.code_of_call([&] { (void)blocking::try_with_lock_for(m, 0ms, [&](auto) { ++runs; }); }) == errc::unreachable);
  redis.shutdown(0ms);
  const auto later = w.code_of_call([&] { (void)blocking::try_with_lock_for(m, 1s, [&](auto) { ++runs; }); });
  CHECK(later == errc::shutting_down);
  CHECK(runs == 0);
}

TEST_CASE("blocking with_lock throws lost when the lock is lost and nests what its function throws") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  const auto lose = [&](const std::stop_token& lost) {
    m.force_unlock();
    wait_for(lost);
  };
  CHECK(nested_failures([&] {
          blocking::with_lock(m, [&](std::stop_token lost) {
            lose(lost);
            return 1;
          });
        }) == texts{"lost"});
  CHECK(nested_failures([&] {
          blocking::with_lock(m, [&](std::stop_token lost) {
            lose(lost);
            throw std::runtime_error("stopped");
          });
        }) == texts{"lost", "stopped"});
  CHECK_THAT(text_of_failure([&] { blocking::with_lock(m, lose); }), contains_text("lock 'm'"));
  CHECK(w.locks().empty());

  // The function gives back what it has lost.
  CHECK(nested_failures([&] {
          blocking::with_lock(m, [&](std::stop_token lost) {
            lose(lost);
            m.unlock();
            return 1;
          });
        }) == texts{"lost"});
  CHECK(nested_failures([&] {
          blocking::with_lock(m, [&](std::stop_token lost) {
            lose(lost);
            m.unlock();
            throw std::runtime_error("stopped");
          });
        }) == texts{"lost", "stopped"});
  CHECK(w.locks().empty());

  // Lost without anybody's knowledge: the unlock finds it out, whoever makes it.
  CHECK(nested_failures([&] {
          blocking::with_lock(m, [&](auto) {
            take_by_hand(w.eye, "m");
            m.unlock();
          });
        }) == texts{"lost"});
  CHECK(w.eye("DEL", "m") == 1);
  CHECK(nested_failures([&] { blocking::with_lock(m, [&](auto) { take_by_hand(w.eye, "m"); }); }) == texts{"lost"});
  CHECK(w.eye("HGETALL", "m").strings() == texts{"stranger:1", "1"});
}

TEST_CASE("blocking with_lock throws closed when the client ends and the value where unlock is unconfirmed") {
  blocking_world w;
  proxy between(w.server);
  std::optional<blocking::client> redis(w.settings_with([&](config& c) {
    c.url = between.url();
    c.command_timeout = 50ms;
  }));
  auto m = redis->mutex("m");
  CHECK(blocking::with_lock(m, [&](auto) {
          between.hold(proxy::direction::to_client);
          return 5;
        }) == 5);
  between.heal();
  CHECK(nested_failures([&] {
          blocking::with_lock(m, [&](auto) {
            redis.reset();
            throw std::runtime_error("stopped");
          });
        }) == texts{"closed", "stopped"});
}

TEST_CASE("blocking with_lock throws closed when its lock object ends and requests the stop") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto same = redis.mutex("m");
  std::optional<blocking::mutex> m(redis.mutex("m"));
  std::function<void()> end;
  SECTION("destroyed") {
    end = [&] { m.reset(); };
  }
  SECTION("assigned to") {
    end = [&] { *m = redis.mutex("other"); };
  }
  const auto section = [&](std::stop_token stop) {
    CHECK_FALSE(stop.stop_requested());
    std::thread(end).join();
    wait_for(stop);
    CHECK(in_thread([&] { return same.try_lock_for(20s); }));  // what the section had is another's
  };
  SECTION("and the value is dropped") {
    end = [&] { m.reset(); };
    CHECK(nested_failures([&] {
            blocking::with_lock(*m, [&](std::stop_token stop) {
              section(stop);
              return 1;
            });
          }) == texts{"closed"});
    return;
  }
  CHECK(nested_failures([&] {
          blocking::with_lock(*m, [&](std::stop_token stop) {
            section(stop);
            throw std::runtime_error("stopped");
          });
        }) == texts{"closed", "stopped"});
}

TEST_CASE("unlock by a thread that does not hold does nothing and is told") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m"), same = redis.mutex("m");
  m.unlock();
  see([&] { return w.heard->count(kind::foreign_unlock) == 1; });
  m.lock();
  std::thread([&] { m.unlock(); }).join();
  see([&] { return w.heard->count(kind::foreign_unlock) == 2; });
  same.unlock();  // the same thread and name, but taken through the other object
  see([&] { return w.heard->count(kind::foreign_unlock) == 3; });
  CHECK(m.held());
  CHECK(w.eye("EXISTS", "m") == 1);
  m.unlock();
  m.unlock();
  see([&] { return w.heard->count(kind::foreign_unlock) == 4; });
  CHECK(w.heard->all().back().name == "m");
  CHECK(w.heard->all().back().reason == errc::not_held);
  CHECK(w.locks().empty());
}

TEST_CASE("a lock that was moved goes along and what is left of it is closed") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  m.lock();
  auto there = std::move(m);
  CHECK(there.held());
  CHECK_FALSE(m.held());
  CHECK(m.name().empty());
  CHECK(w.code_of_call([&] { m.lock(); }) == errc::closed);
  CHECK(w.code_of_call([&] { (void)m.is_locked(); }) == errc::closed);
  m.unlock();
  there.unlock();
  auto client = std::move(redis);
  CHECK(w.code_of_call([&] { redis.connect(); }) == errc::closed);
  CHECK(w.code_of_call([&] { (void)redis.mutex("m"); }) == errc::closed);
  const std::lock_guard lock(there);
  CHECK(there.held());
}

TEST_CASE("bad names and terms are refused and nothing is held") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto none = redis.mutex("");
  CHECK(w.code_of_call([&] { none.lock(); }) == errc::invalid_name);
  auto brief = redis.mutex("m", {.ttl = 1ms});
  CHECK(w.code_of_call([&] { (void)brief.try_lock(); }) == errc::invalid_ttl);
  auto lone = redis.red_lock("m");
  CHECK(w.code_of_call([&] { lone.lock(); }) == errc::invalid_config);
  CHECK(w.code_of_call([&] { redis.shutdown(-1ms); }) == errc::invalid_wait);
  CHECK(w.code_of_call([&] { blocking::client bad({.url = "http://localhost"}); }) == errc::invalid_config);
  auto text = redis.mutex("text");
  w.eye("SET", "text", "data");
  CHECK(w.code_of_call([&] { text.lock(); }) == errc::corrupt_lock);
  auto terms = redis.mutex("terms", {.ttl = 20s});
  terms.lock();
  CHECK(terms.valid_for() < 20s);
  CHECK(redis.mutex("terms").remaining_ttl() <= 20s);
  terms.renew(40s);
  CHECK(terms.valid_for() > 30s);
  CHECK(redis.mutex("terms").holder()->count == 1);
  terms.unlock();
}

TEST_CASE("a blocking call on the thread that has to work for it is refused at once") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m"), other = redis.mutex("other");
  const auto refused = [&](auto f) { return world::code_of_call(f) == make_error_code(resource_deadlock_would_occur); };
  const auto all_refused = [&] {
    blocking::multi_lock both({m, other});
    return refused([&] { m.lock(); }) && refused([&] { (void)m.try_lock(); }) &&
           refused([&] { (void)m.try_lock_for(1s); }) && refused([&] { (void)m.is_locked(); }) &&
           refused([&] { m.force_unlock(); }) && refused([&] { redis.connect(); }) &&
           refused([&] { redis.shutdown(1s); }) && refused([&] { redis.drain(1s); }) && refused([&] { both.lock(); }) &&
           refused([&] { blocking::with_lock(m, [](auto) {}); });
  };

  SECTION("in a coroutine on its executor") {
    const auto inside = [&]() -> asio::awaitable<bool> {
      auto lease = co_await redis.async().mutex("there").lock();  // resumed by an answer of the server
      co_return all_refused();
    };
    CHECK(redis.wait(inside()));
  }
  SECTION("in an observer") {
    struct locking final : observer {
      void on(const event& e) noexcept override {
        if (e.kind == kind::connected && ask) said.set_value(ask());
      }
      std::function<bool()> ask;
      std::promise<bool> said;
    };
    const auto watching = std::make_shared<locking>();
    blocking::client watched(w.settings_with([&](config& c) { c.observer = watching; }));
    auto its = watched.mutex("m");
    watching->ask = [&] { return refused([&] { its.lock(); }); };
    const std::lock_guard lock(its);
    CHECK(watching->said.get_future().get());
  }
  SECTION("of another client that shares a multi_lock") {
    blocking::client second(w.settings());
    auto theirs = second.mutex("theirs");
    blocking::multi_lock both({m, theirs});
    const auto inside = [&]() -> asio::awaitable<bool> { co_return refused([&] { both.lock(); }); };
    CHECK(second.wait(inside()));
    both.lock();
    both.unlock();
  }
  const std::lock_guard lock(m);
  CHECK(m.held());
}

TEST_CASE("a blocking call in a coroutine of another context is answered while that context waits") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  const auto coroutine = [&]() -> asio::awaitable<bool> {
    const std::lock_guard lock(m);
    co_return m.held() && redis.mutex("m").is_locked();
  };
  CHECK(w.run(coroutine()));
  CHECK(w.locks().empty());
}

TEST_CASE("a callback of a stop may make blocking calls and sees a hold that is over") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m"), other = redis.mutex("other");
  other.lock();
  m.lock();
  std::promise<void> begun;
  std::promise<bool> said;
  const std::stop_callback lost(m.get_stop_token(), [&] {
    begun.set_value();
    const auto code = world::code_of_call([&] {
      const std::lock_guard lock(other);  // held by the thread that waits for us
      blocking::with_lock(m, [&](auto) { other.check(); });
    });
    said.set_value(!code && !redis.mutex("other").is_locked());
  });
  redis.mutex("m").force_unlock();
  begun.get_future().wait();
  CHECK_FALSE(m.held());
  {  // while the callback waits its turn, the locks go on
    auto third = redis.mutex("third");
    const std::lock_guard lock(third);
    CHECK(third.is_locked());
  }
  other.unlock();
  CHECK(said.get_future().get());
  m.unlock();
  CHECK(w.locks().empty());
}

TEST_CASE("a lock that is lost stops a wait that is about to begin with another lock of the client") {
  blocking_world w;
  proxy between(w.server);
  blocking::client redis(w.settings_with([&](config& c) {
    c.url = between.url();
    c.command_timeout = 20s;
  }));
  auto leader = redis.simple_mutex("leader", {.ttl = 1s, .renew = false}), queue = redis.simple_mutex("queue");
  std::condition_variable_any filled;
  std::unique_lock lock(queue);
  leader.lock();
  const auto lost = leader.get_stop_token();
  std::atomic<bool> stopped{false};
  std::optional<std::stop_callback<std::function<void()>>> notifying;
  std::function<void()> wait;
  SECTION("by a callback that notifies") {
    notifying.emplace(lost, [&] {
      stopped = true;
      filled.notify_all();
    });
    wait = [&] { filled.wait(lock, [&] { return stopped.load(); }); };
  }
  SECTION("by its token, which notifies as well") {
    wait = [&] { filled.wait(lock, lost, [] { return false; }); };
  }
  // The wait unlocks, with its mutex locked, and is not answered. The callback wants that mutex meanwhile.
  crew healer;
  between.hold(proxy::direction::to_client);
  healer.start([&] {
    see([&] { return lost.stop_requested(); });
    between.heal();
  });
  wait();
  healer.join();
  CHECK(queue.held());
  CHECK(lost.stop_requested());
  leader.unlock();
}

TEST_CASE("a coroutine acts for a thread by its owner") {
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  const std::lock_guard lock(m);
  CHECK(redis.wait(redis.async().mutex("m").try_lock()).has_value());  // wait() binds the thread's owner
  CHECK(in_thread([&, me = blocking::client::this_thread()] {
    return !redis.wait(redis.async().mutex("m").try_lock()) && redis.wait(redis.async().mutex("m", me).try_lock());
  }));
  CHECK(in_thread([] { return blocking::client::this_thread(); }) != blocking::client::this_thread());
}

TEST_CASE("an exception out of a coroutine on the executor does not end the locks") {
  blocking_world w;
  blocking::client redis(w.settings());
  for (int i = 0; i < 3; ++i) asio::post(redis.async().get_executor(), [] { throw std::runtime_error("a user's"); });
  asio::post(redis.async().get_executor(), [&] {
    auto& context = asio::query(redis.async().get_executor(), asio::execution::context);
    static_cast<asio::io_context&>(context).stop();  // nor does who stops the context
  });
  auto m = redis.mutex("m");
  const std::lock_guard lock(m);
  CHECK(m.held());
}

TEST_CASE("a client ends in order also when coroutines on its executor throw meanwhile") {
  blocking_world w;
  for (int i = 0; i < 20; ++i) {
    blocking::client redis(w.settings());
    auto m = redis.mutex("m");
    m.lock();
    for (int n = 0; n < 50; ++n) asio::post(redis.async().get_executor(), [] { throw std::runtime_error("a user's"); });
  }
  CHECK(w.locks().empty());
}

TEST_CASE("a blocking client follows a server that is away") {
  blocking_world w;
  proxy between(w.server);
  blocking::client redis(w.settings_with([&](config& c) {
    c.url = between.url();
    c.command_timeout = 50ms;
    c.reconnect_cap = 50ms;
  }));
  redis.connect();
  auto m = redis.mutex("m"), n = redis.mutex("n");
  m.lock();
  between.hold(proxy::direction::to_client);
  CHECK(w.code_of_call([&] { (void)n.try_lock(); }) == errc::unreachable);
  CHECK(w.code_of_call([&] { m.renew(); }) == errc::unreachable);
  CHECK(m.held());
  m.unlock();  // not confirmed: the observer is told
  CHECK(w.heard->count(kind::release_failed) == 1);
  crew waiter;
  waiter.start([&] {
    const std::lock_guard lock(n);
    n.check();
  });
  see([&] { return w.heard->count(kind::outage) > 0; });
  between.heal();
  waiter.join();
  see([&] { return w.locks().empty(); });
}

TEST_CASE("lock and unlock without memory hold nothing and forget nothing") {
  if (!failing_allocations::available()) skip("this build has another allocator");
  blocking_world w;
  blocking::client redis(w.settings());
  auto m = redis.mutex("m");
  m.lock();
  m.unlock();
  // What found no memory for its release is released with the next thing that the client does.
  const auto released = [&] { return !m.is_locked() && w.locks().empty(); };
  bool failed = true;
  for (std::size_t n = 0; failed; ++n) {
    INFO(n);
    REQUIRE(n < 1000);
    bool locked = false;
    {
      failing_allocations none(n, 1);
      try {
        m.lock();
        locked = true;
      } catch (const std::bad_alloc&) {
      }
      failed = none.happened();
    }
    CHECK(m.held() == locked);
    if (locked) m.unlock();
    see(released);
  }
  failed = true;
  for (std::size_t n = 0; failed; ++n) {
    INFO(n);
    REQUIRE(n < 1000);
    m.lock();
    {
      failing_allocations none(n, 1000);
      m.unlock();
      failed = none.happened();
    }
    CHECK_FALSE(m.held());
    see(released);
  }
}
