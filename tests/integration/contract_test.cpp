// SPDX-License-Identifier: BSL-1.0
// What every kind of lock promises, asked of each.
#include <algorithm>
#include <chrono>
#include <utility>

#include "integration/cancel_everywhere.hpp"
#include "integration/every_kind.hpp"
#include "support/proxy.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

config impatient(config c) {
  c.ttl = 400ms;
  return c;
}

/// Two callers of one client have two places.
bool waited_for(world& w, const lock_kind& k) {
  if (k.in_order) return w.eye("LLEN", "redisson_lock_queue:{m}").integer() >= 1;
  return w.eye("PUBSUB", "NUMSUB", k.channel).array()[1] == 1;
}

asio::awaitable<int> seven(lease&) { co_return 7; }

}  // namespace

TEST_CASE("every kind: one owner at a time, in a client and among clients") {
  of_all_that_exclude([](const lock_kind& k, lock_world& w) {
    auto a = w.make(), b = w.make();
    auto held = w.run(k(a).lock());
    CHECK(held.held());
    CHECK(k.owner_of(w.eye) == k.stored_owner(held.id()));
    CHECK_FALSE(w.run(k(a).try_lock()));
    CHECK_FALSE(w.run(k(b).try_lock()));
    CHECK_FALSE(w.run(k(b).try_lock_for(200ms)));  // on a busy machine five servers need some of it to answer
    w.run(held.unlock());
    CHECK(held.state() == lease_state::released);
    CHECK(w.locks().empty());
    CHECK(w.run(k(b).try_lock()));
  });
}

TEST_CASE("every kind: the questions are answered") {
  of_all([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    const owner me;
    const auto mutex = k(redis, "m", me);
    CHECK_FALSE(w.run(mutex.is_locked()));
    CHECK_FALSE(w.run(mutex.holder()));
    CHECK_FALSE(w.run(mutex.remaining_ttl()));
    CHECK(w.run(mutex.hold_count(me)) == 0);
    auto held = w.run(mutex.lock({.ttl = 20s}));
    CHECK(w.run(mutex.is_locked()));
    const auto holder = w.run(mutex.holder());
    REQUIRE(holder);
    CHECK(holder->id == k.stored_owner(held.id()));
    CHECK(holder->count == 1);
    CHECK(holder->ttl > 15s);
    CHECK(holder->ttl <= 20s);
    CHECK(w.run(mutex.remaining_ttl()).value() > 15s);
    if (!k.is_permit()) {  // it has no owner
      CHECK(w.run(mutex.hold_count(me)) == 1);
      CHECK(w.run(mutex.held_by(me)));
    }
    CHECK_FALSE(w.run(mutex.held_by(owner())));
    k.taken_by_stranger(w.eye, 20s);
    const auto other = w.run(mutex.holder());
    CHECK(other.has_value() == !k.shares);  // the stranger writes, and is no reader
    if (other) CHECK(other->id == k.stored_owner(by_hand::stranger));
    CHECK(w.run(mutex.hold_count(me)) == 0);
  });
}

TEST_CASE("every kind: a lease with a TTL of its own ends with it, and the next who waits has the lock") {
  of_all_that_exclude([](const lock_kind& k, lock_world& w) {
    auto a = w.make(), b = w.make();
    auto held = w.run(k(a).lock({.ttl = 150ms}));
    auto next = w.run(k(b).lock());
    CHECK_FALSE(held.held());
    CHECK(next.held());
    CHECK(w.code_of(held.unlock()) == errc::lost);
    CHECK(k.owner_of(w.eye) == k.stored_owner(next.id()));
  });
}

TEST_CASE("every kind: a lease is renewed while it lives") {
  of_all([](const lock_kind& k, lock_world& w) {
    auto redis = w.make([](config& c) { c.ttl = 1200ms; });
    auto held = w.run(k(redis).lock());
    const auto end = std::chrono::steady_clock::now() + 1200ms;
    auto left = held.valid_for();
    int renewals = 0;
    w.until([&] {
      const auto before = std::exchange(left, held.valid_for());
      if (left > before) ++renewals;
      return renewals >= 3 && std::chrono::steady_clock::now() >= end;
    });
    CHECK(held.held());
    CHECK(k.owner_of(w.eye) == k.stored_owner(held.id()));
    w.run(held.renew(60s));
    const auto longer = [&k](raw_client& one) { return k.ttl_in(one) > 50'000; };
    w.until([&] {  // at a majority: any of the others may have been too slow for its vote
      return static_cast<std::size_t>(std::count_if(w.eyes.begin(), w.eyes.end(), longer)) > w.eyes.size() / 2;
    });
    w.run(held.unlock());
    CHECK(w.locks().empty());
    CHECK(w.heard->count(kind::lost) == 0);
  });
}

TEST_CASE("every kind: a key that has lost its TTL gets it back by renewal") {
  of_all_with_an_owner([](const lock_kind& k, lock_world& w) {
    client redis(w.io.get_executor(), impatient(w.settings()));
    auto held = w.run(k(redis).lock());
    w.eye("PERSIST", "m");
    const auto without = [](raw_client& one) { return one("PTTL", "m") == -1; };
    w.until([&] { return std::none_of(w.eyes.begin(), w.eyes.end(), without); });
    CHECK(held.held());
  });
}

TEST_CASE("every kind: a hold whose key is gone or another's or spoilt is told, and nothing is made anew") {
  enum class fate { gone, taken, spoilt };
  for (const auto how : {fate::gone, fate::taken, fate::spoilt})
    of_all([how](const lock_kind& k, lock_world& w) {
      INFO("fate " << static_cast<int>(how));
      client redis(w.io.get_executor(), impatient(w.settings()));
      auto held = w.run(k(redis).lock());
      if (how == fate::gone) w.eye("DEL", k.key_of_hold);
      if (how == fate::taken) k.taken_by_stranger(w.eye, 60s);
      if (how == fate::spoilt) k.spoilt(w.eye);
      const auto before = w.eye("DUMP", "m").to_string();
      CHECK(w.run(held.lost()) == errc::lost);
      CHECK_FALSE(held.held());
      CHECK(w.heard->count(kind::lost) == 1);
      CHECK(w.code_of(held.unlock()) == errc::lost);
      // A minority may have heard of the lock since, and hears that it is over.
      if (k.servers > 1) w.until([&] { return w.eye("DUMP", "m").to_string() == before; });
      CHECK(w.eye("DUMP", "m").to_string() == before);
    });
}

TEST_CASE("every kind: an unlock frees nobody else's lock, and says that ours was lost") {
  of_all([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    auto held = w.run(k(redis).lock());
    k.taken_by_stranger(w.eye, 60s);
    CHECK(w.code_of(held.unlock()) == errc::lost);
    CHECK(k.owner_of(w.eye) == k.stored_owner(by_hand::stranger));
  });
}

TEST_CASE("every kind: a stranger's hold is waited for") {
  of_all([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    k.taken_by_stranger(w.eye, 60s);
    started<lease> waiting(w, k(redis).lock());
    w.until([&] { return waited_for(w, k); });
    CHECK_FALSE(w.run(k(redis).try_lock_for(20ms)));
    CHECK_FALSE(waiting.answer);
    k.freed_by_stranger(w.eye);
    w.until([&] { return waiting.succeeded(); }, 4s);  // the poll cap is 5 s
  });
}

TEST_CASE("every kind: a release is told to those who wait elsewhere") {
  of_all_with_one_channel([](const lock_kind& k, lock_world& w) {
    auto a = w.make(), b = w.make();
    raw_client listener(w.server);
    listener.subscribe(k.channel);
    auto held = w.run(k(a).lock());
    started<lease> waiting(w, k(b).lock());
    w.until([&] { return w.eye("PUBSUB", "NUMSUB", k.channel).array()[1] == 2; });
    w.run(held.unlock());
    std::optional<raw_client::message> message;
    w.until([&] { return (message = listener.next_message(1ms)).has_value(); });
    CHECK(message->payload.size() == 1);
    CHECK(k.messages_of_release.find(message->payload) != k.messages_of_release.npos);
    w.until([&] { return waiting.succeeded(); });
    w.run(waiting.answer->value().unlock());
    listener.unsubscribe(k.channel);
    w.until([&] { return w.eye("PUBSUB", "CHANNELS", of_locks).array().empty(); });
  });
}

TEST_CASE("every kind: force_unlock breaks the hold, wakes who waits, and tells the holder") {
  of_all_that_exclude([](const lock_kind& k, lock_world& w) {
    auto a = w.make(), b = w.make();
    CHECK_FALSE(w.run(k(a).force_unlock()));
    auto held = w.run(k(a).lock());
    started<lease> waiting(w, k(b).lock());
    w.until([&] { return waited_for(w, k); });
    CHECK(w.run(k(a).force_unlock()));
    w.until([&] { return waiting.succeeded() && !held.held(); });
    CHECK(k.owner_of(w.eye) == k.stored_owner(waiting.answer->value().id()));
    k.taken_by_stranger(w.eye, 60s);
    CHECK(w.run(k(a).force_unlock()));
    // Of several primaries a majority has answered; one that did not in its time keeps what the stranger took.
    const auto freed_everywhere = [&] {
      if (w.locks().empty()) return true;
      (void)w.code_of(k(a).force_unlock());
      return false;
    };
    w.until(freed_everywhere, 60s);
  });
}

TEST_CASE("every kind: an owner that holds re-enters, or is told that it holds") {
  of_all_with_an_owner([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    const owner me;
    const auto mutex = k(redis, "m", me);
    auto outer = w.run(mutex.lock());
    if (k.reentrant()) {
      auto inner = w.run(mutex.lock());
      CHECK(w.run(mutex.hold_count(me)) == 2);
      w.run(inner.unlock());
    } else {
      CHECK(w.code_of(mutex.lock()) == errc::already_held);
      CHECK(w.code_of(mutex.try_lock()) == errc::already_held);
      CHECK(w.code_of(mutex.try_lock_for(1s)) == errc::already_held);
    }
    CHECK(outer.held());
    CHECK(w.run(mutex.hold_count(me)) == 1);
    w.run(outer.unlock());
    CHECK(w.locks().empty());
    auto again = w.run(mutex.lock());
    CHECK(again.held());
  });
}

TEST_CASE("every kind: an owner that locks twice at once has it once, or re-enters") {
  of_all_with_an_owner([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    const auto mutex = k(redis, "m", owner());
    k.taken_by_stranger(w.eye, 60s);
    started<lease> first(w, mutex.lock()), second(w, mutex.lock());
    w.until([&] { return waited_for(w, k); });
    k.freed_by_stranger(w.eye);
    w.until([&] { return first.answer && second.answer; });
    CHECK(first.succeeded());
    CHECK(second.succeeded() == k.reentrant());
    if (!k.reentrant()) CHECK(second.answer->error() == errc::already_held);
  });
}

TEST_CASE("every kind: with_lock runs the body under the lock and is cancelled by its loss") {
  of_all([](const lock_kind& k, lock_world& w) {
    client redis(w.io.get_executor(), impatient(w.settings()));
    auto mutex = k(redis);
    CHECK(w.run(with_lock(mutex, seven)) == 7);
    CHECK(w.locks().empty());
    auto nested = [&](lease&) -> asio::awaitable<error_code> {
      co_return (co_await as_result(k(redis).try_lock())).error();
    };
    const bool refused = k.nested == lock_kind::nesting::refuses;
    CHECK(w.run(with_lock(mutex, nested)) == (refused ? make_error_code(errc::already_held) : error_code()));
    auto body = [&](lease&) -> asio::awaitable<void> {
      k.taken_by_stranger(w.eye, 60s);
      asio::steady_timer never(co_await asio::this_coro::executor, 60s);
      co_await never.async_wait(asio::use_awaitable);
    };
    CHECK(w.code_of(with_lock(mutex, body)) == errc::lost);
    CHECK(k.owner_of(w.eye) == k.stored_owner(by_hand::stranger));
  });
}

TEST_CASE("every kind: scripts that the server forgets between any two commands are sent again") {
  of_all([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    const auto mutex = k(redis, "m", owner());
    const auto forget = [&] { w.eye("SCRIPT", "FLUSH"); };
    forget();
    auto held = w.run(mutex.lock());
    forget();
    CHECK(w.run(k(redis).try_lock()).has_value() == k.shares);
    forget();
    CHECK(w.run(mutex.holder()));
    forget();
    w.run(held.renew());
    if (k.reentrant()) {
      forget();
      auto inner = w.run(mutex.lock());
      forget();
      w.run(inner.unlock());
    }
    forget();
    w.run(held.unlock());
    auto broken = w.run(mutex.lock());
    forget();
    CHECK(w.run(mutex.force_unlock()));
    auto left = w.locks();
    std::erase_if(left,
                  [](const std::string& key) { return key.ends_with(":rwlock_timeout:1"); });  // it ends by itself
    CHECK(left.empty());
  });
}

TEST_CASE("every kind: a lock cancelled anywhere leaves nothing") {
  of_all([](const lock_kind& k, lock_world& w) {
    auto make = [&](client& redis) -> step {
      return [&]() -> asio::awaitable<void> { auto held = co_await k(redis).lock(); };
    };
    cancel_everywhere(k.name, w, make, [](client&) {});
  });
}

TEST_CASE("every kind: a lock that waits for a stranger cancelled anywhere leaves nothing") {
  of_all([](const lock_kind& k, lock_world& w) {
    auto make = [&](client& redis) -> step {
      k.taken_by_stranger(w.eye, 15ms);
      return [&]() -> asio::awaitable<void> { auto held = co_await k(redis).lock(); };
    };
    cancel_everywhere(k.name, w, make, [&](client&) { k.freed_by_stranger(w.eye); });
  });
}

TEST_CASE("every kind: an unlock cancelled anywhere goes on in the background") {
  of_all([](const lock_kind& k, lock_world& w) {
    std::optional<lease> held;
    auto make = [&](client& redis) -> step {
      held.emplace(w.run(k(redis).lock()));
      return [&]() -> asio::awaitable<void> { co_await held->unlock(); };
    };
    cancel_everywhere(k.name, w, make, [&](client&) { w.until([&] { return w.locks().empty(); }); });
  });
}

TEST_CASE("every kind: an answer or a command lost anywhere costs no lock and leaves no key") {
  using action = proxy::rule::action;
  struct fault {
    const char* name;
    action what;
    bool to_server;
    bool silent;  // nothing tells the client: its timeout finds out
  };
  for (const auto& f : {fault{"cut before a reply", action::cut_before, false, false},
                        fault{"cut before a command", action::cut_before, true, false},
                        fault{"replies swallowed", action::drop_rest, false, true}})
    of_all([&](const lock_kind& k, lock_world& w) {
      proxy net(w.server);
      for (std::size_t n = 1;; ++n) {
        REQUIRE(n < 100);
        INFO(f.name << ", number " << n);
        w.eye("SCRIPT", "FLUSH");
        const auto fired_before = net.count().fired;
        {
          auto redis = w.make([&](config& c) {
            (k.servers == 1 ? c.url : c.red_lock.primaries.front()) = net.url();
            c.ttl = f.silent ? 3s : 10s;
            c.command_timeout = f.silent ? 60ms : 2s;
            c.connect_timeout = f.silent ? 100ms : 2s;
          });
          f.to_server ? net.at_command({.what = f.what, .n = n}) : net.at_reply({.what = f.what, .n = n});
          auto held = w.run(k(redis).lock());
          CHECK(k.owner_of(w.eye) == k.stored_owner(held.id()));
          const auto renewed = w.code_of(held.renew());
          CHECK((!renewed || (f.silent && renewed == errc::unreachable)));
          CHECK(held.held());
          const auto freed = w.code_of(held.unlock());
          CHECK((!freed || (f.silent && freed == errc::unconfirmed)));
          w.until([&] { return w.locks().empty(); }, 3s);
          net.release();
          drain(w.io, 5s);
        }
        const bool done = net.count().fired == fired_before;
        net.heal();
        CHECK(w.locks().empty());
        if (done) break;
      }
      CHECK(w.heard->count(kind::lost) == 0);
    });
}

TEST_CASE("every kind: a replica grants nothing") {
  redis_options with_port;
  with_port.tcp = true;
  const real_redis primary(with_port);
  redis_options copy;
  copy.arguments = {"--replicaof", "127.0.0.1", std::to_string(primary.port())};
  world replica(copy);
  auto redis = replica.make();
  for (const auto& k : every_kind()) {
    if (k.servers > 1) continue;  // a server that has become a replica: below
    INFO(k.name);
    CHECK(replica.code_of(k(redis).lock()) == errc::not_primary);
    CHECK(replica.code_of(k(redis).try_lock()) == errc::not_primary);
  }
}

TEST_CASE("every kind: a server that has become a replica neither confirms a hold nor denies it") {
  of_all([](const lock_kind& k, lock_world& w) {
    client redis(w.io.get_executor(), impatient(w.settings()));
    auto held = w.run(k(redis).lock());
    w.eye("REPLICAOF", "127.0.0.1", "1");
    CHECK(w.run(held.lost()) == errc::lost);
    CHECK(w.heard->count(kind::suspended) > 0);  // lost by the clock alone
  });
}

TEST_CASE("every kind: a server that is a replica for a while is an outage that ends") {
  of_all_that_exclude([](const lock_kind& k, lock_world& w) {
    auto a = w.make(), b = w.make();
    auto held = w.run(k(a).lock()), kept = w.run(k(a, "kept").lock());
    started<lease> waits(w, k(b).lock());
    w.until([&] { return waited_for(w, k); });
    w.eye("REPLICAOF", "127.0.0.1", "1");
    const auto elsewhere = [](error_code e) { return e == condition::retry_later; };
    CHECK(w.code_of(held.unlock()) == errc::unconfirmed);  // and goes on
    CHECK(elsewhere(w.code_of(k(a, "new").try_lock())));
    CHECK(elsewhere(w.code_of(k(a, "new").try_lock_for(300ms))));
    CHECK(elsewhere(w.code_of(kept.renew())));
    CHECK(elsewhere(w.code_of(k(a, "new").force_unlock())));
    CHECK(elsewhere(w.code_of(a.connect())));
    CHECK_FALSE(waits.answer);
    started<lease> later(w, k(a, "new").lock());
    w.pass(100ms);
    CHECK_FALSE(later.answer);
    w.eye("REPLICAOF", "NO", "ONE");
    w.until([&] { return waits.succeeded() && later.succeeded(); }, 20s);
    w.until([&] { return !w.code_of(kept.renew()); });  // each of several servers is connected again
    for (auto* lease : {&kept, &waits.answer->value(), &later.answer->value()}) w.run(lease->unlock());
    CHECK(w.locks().empty());
    CHECK(w.heard->count(kind::lost) == 0);
    const auto events = w.heard->all();
    const auto demotions = std::count_if(events.begin(), events.end(), [](const auto& e) {
      return e.what == kind::outage && e.reason == errc::not_primary;
    });
    CHECK(demotions <= static_cast<std::ptrdiff_t>(2 * k.servers));  // once for each client
  });
}

TEST_CASE("every kind: several locks, and a section, wait for the end of such an outage") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    w.run(redis.connect());
    w.eye("REPLICAOF", "127.0.0.1", "1");
    const std::vector<mutex> two{k(redis, "m"), k(redis, "n")};
    CHECK(w.code_of(multi_lock(two).try_lock()) == errc::unreachable);
    CHECK(w.code_of(any_of(two).try_lock()) == errc::unreachable);
    CHECK(w.code_of(multi_lock(two).try_lock_for(100ms)) == errc::unreachable);
    CHECK(w.code_of(any_of(two).try_lock_for(100ms)) == errc::unreachable);
    started<multi_lease> all(w, multi_lock(two).lock());
    started<lease> one(w, any_of({k(redis, "x"), k(redis, "y")}).lock());
    started<int> section(w, with_lock(k(redis, "section"), seven));
    w.pass(100ms);
    CHECK_FALSE((all.answer || one.answer || section.answer));
    w.eye("REPLICAOF", "NO", "ONE");
    w.until([&] { return all.succeeded() && one.succeeded() && section.succeeded(); });
    w.run(all.answer->value().unlock());
    w.run(one.answer->value().unlock());
    CHECK(w.locks().empty());
  });
}

TEST_CASE("every kind: a key of another type is a corrupt lock and is left alone") {
  of_all([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    using words = std::vector<std::string>;
    for (const auto& made : {words{"RPUSH", "m", "1"}, words{"ZADD", "m", "1", "1"}, words{}}) {
      w.eye("DEL", "m");
      if (made.empty())
        k.spoilt(w.eye);
      else
        REQUIRE_FALSE(w.eye.call(made).is_error());
      const auto before = w.eye("DUMP", "m").to_string();
      auto mutex = k(redis);
      if (!made.empty() || std::string_view(k.stored_as) == "string")
        for (const auto code :
             {w.code_of(mutex.lock()), w.code_of(mutex.try_lock()), w.code_of(mutex.try_lock_for(5s))})
          CHECK(code == errc::corrupt_lock);
      CHECK(w.code_of(mutex.force_unlock()) == errc::corrupt_lock);
      CHECK(w.eye("DUMP", "m").to_string() == before);
    }
  });
}

TEST_CASE("every kind: a lock without a TTL is corrupt until it is broken") {
  of_all_with_an_owner([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    auto mutex = k(redis);
    k.taken_by_stranger(w.eye, 0ms);
    CHECK(w.code_of(mutex.lock()) == errc::corrupt_lock);
    w.until([&] { return w.code_of(mutex.try_lock()) == errc::corrupt_lock; });  // slow primaries are no quorum
    CHECK(w.code_of(mutex.try_lock_for(5s)) == errc::corrupt_lock);
    CHECK(w.eye("PTTL", "m") == -1);
    if (k.is_hash()) {
      CHECK(w.run(mutex.force_unlock()));
    } else {  // nothing tells it from data
      CHECK(w.code_of(mutex.force_unlock()) == errc::corrupt_lock);
      w.eye("DEL", "m");
    }
    CHECK(w.run(mutex.try_lock()));
  });
}

TEST_CASE("every kind: a lock that another one joins in its key is lost at the next renewal, and leaves the key") {
  of_every_kind([](const lock_kind& k, lock_world& w) {
    if (std::string_view(k.stored_as) != "hash") return;
    auto redis = w.make([](config& c) { c.ttl = 1s; });
    auto held = w.run(k(redis).lock()), renewed = w.run(k(redis, "other").lock());
    const auto join = [&](const char* name) {  // as Redisson's RReadWriteLock does, which looks for `mode` alone
      w.eye("HSET", name, "mode", "read", by_hand::stranger, 1);
      w.eye("PEXPIRE", name, 60'000);
    };
    join("m");
    CHECK(w.run(held.lost()) == errc::lost);
    join("other");
    CHECK(w.code_of(renewed.renew()) == errc::lost);
    const auto events = w.heard->all();
    CHECK(std::count_if(events.begin(), events.end(), [](const auto& e) {
            return e.what == kind::lost && e.detail.find("other fields") != e.detail.npos;
          }) == 2);
    CHECK(w.code_of(held.unlock()) == errc::lost);
    for (const auto* name : {"m", "other"})  // a majority was asked at least
      w.until(
          [&] { return std::all_of(w.eyes.begin(), w.eyes.end(), [&](auto& one) { return one("HLEN", name) == 2; }); });
    CHECK(w.eye("HGET", "m", "mode") == "read");
    CHECK_FALSE(w.run(k(redis).try_lock()));  // it is the other's
  });
}

TEST_CASE("kinds that do not store the same do each other no harm on one name") {
  for (const auto& one : every_kind())
    for (const auto& other : every_kind()) {
      if (one.servers != other.servers || !one.turns || !other.turns) continue;
      INFO(one.name << " and " << other.name);
      lock_world w(one.servers, one.turns);
      auto redis = w.make();
      auto held = w.run(one(redis).lock());
      for (auto& server : w.eyes)
        w.until([&] { return one.owner_in(server) == one.stored_owner(held.id()); });  // also the slow ones
      const auto before = w.eye("DUMP", "m").to_string();
      const bool same = std::string_view(one.stored_as) == other.stored_as;
      if (same) {
        CHECK(w.run(other(redis).try_lock()).has_value() == (one.shares && other.shares));
      } else if (one.is_hash() && other.is_hash()) {
        CHECK_FALSE(w.run(other(redis).try_lock()));  // a mutex and a shared mutex find each other busy
        CHECK(w.code_of(other(redis).force_unlock()) == errc::corrupt_lock);
      } else {
        CHECK(w.code_of(other(redis).try_lock()) == errc::corrupt_lock);
        CHECK(w.code_of(other(redis).lock()) == errc::corrupt_lock);
        CHECK(w.code_of(other(redis).force_unlock()) == errc::corrupt_lock);
      }
      if (same && one.shares)  // the grant to the other is released in the background
        w.until([&] { return w.eye("DUMP", "m").to_string() == before; });
      else
        CHECK(w.eye("DUMP", "m").to_string() == before);
      CHECK(held.held());
      w.run(held.renew());
      w.run(held.unlock());
      CHECK(w.locks().empty());
    }
}
