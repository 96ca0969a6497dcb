// SPDX-License-Identifier: BSL-1.0
// Any one of several locks, of every kind.
#include <set>

#include "integration/cancel_everywhere.hpp"
#include "integration/every_kind.hpp"
#include "support/proxy.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

const std::vector<std::string> mno{"m", "n", "o"};

any_of any(const lock_kind& k, const client& c, const std::vector<std::string>& names = mno,
           std::optional<owner> who = {}) {
  std::vector<mutex> all;
  for (const auto& n : names) all.push_back(k(c, n, who));
  return any_of(all);
}

std::set<std::string> keys_of(world& w) {
  const auto all = w.locks();
  return {all.begin(), all.end()};
}

std::size_t subscriptions(world& w) { return w.eye("PUBSUB", "CHANNELS", of_locks).array().size(); }

asio::awaitable<std::string> name_of(lease& l) { co_return l.name(); }

}  // namespace

TEST_CASE("any_of of every kind: each call gets another lock until all are taken") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto a = w.make(), b = w.make();
    const auto mine = any(k, a), theirs = any(k, b);
    auto one = w.run(mine.lock()), two = w.run(theirs.try_lock()).value(), three = w.run(mine.try_lock_for(1s)).value();
    CHECK(std::set{one.name(), two.name(), three.name()} == std::set<std::string>{"m", "n", "o"});
    CHECK(keys_of(w) == std::set<std::string>{"m", "n", "o"});
    CHECK_FALSE(w.run(mine.try_lock()));
    CHECK_FALSE(w.run(theirs.try_lock()));
    CHECK_FALSE(w.run(theirs.try_lock_for(20ms)));
    CHECK(one.token().has_value() == std::string_view(k.name).starts_with("fenced_lock"));
    const std::string freed = two.name();
    w.run(two.unlock());
    CHECK(w.run(mine.lock()).name() == freed);
  });
}

TEST_CASE("any_of of every kind: the lock that is released first is had, by a message, and no other") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto a = w.make(), b = w.make();
    std::vector<lease> held;
    for (const auto& n : mno) held.push_back(w.run(k(a, n).lock()));
    started<lease> waiting(w, any(k, b).lock());
    w.until([&] { return subscriptions(w) == 3; });
    CHECK_FALSE(waiting.answer);
    w.run(held[1].unlock());
    w.until([&] { return waiting.succeeded(); }, 4s);  // the poll cap is 5 s
    CHECK(waiting.answer->value().name() == "n");
    w.until([&] { return subscriptions(w) == 0; });
    CHECK(keys_of(w).size() == 3);
    CHECK(held[0].held());
    CHECK(held[2].held());
  });
}

TEST_CASE("any_of of every kind: a stranger's lock is had when its TTL is over") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    k.taken_by_stranger(w.eye, 300ms);
    auto got = w.run(any(k, redis, {"m"}).lock());
    CHECK(got.name() == "m");
    CHECK(k.owner_of(w.eye) == got.id());
  });
}

TEST_CASE("any_of of every kind: an owner never re-enters by it, and re-enters what it has got") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    const owner me;
    const auto choice = any(k, redis, mno, me);
    std::vector<lease> held;
    for (std::size_t i = 0; i < mno.size(); ++i) held.push_back(w.run(choice.lock()));
    CHECK(keys_of(w).size() == 3);
    CHECK_FALSE(w.run(choice.try_lock()));
    const auto nested = w.run(as_result(k(redis, held[0].name(), me).try_lock()));
    if (k.reentrant())
      CHECK(nested.value());
    else
      CHECK(nested.error() == errc::already_held);
  });
}

TEST_CASE("any_of of every kind: many workers drain twenty buckets, none twice at once, and none is forgotten") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto a = w.make(), b = w.make();
    std::map<std::string, int> jobs, inside;
    std::size_t done = 0, worst = 0, ended = 0;
    std::vector<std::string> names;
    for (int i = 0; i < 20; ++i) jobs[names.emplace_back("bucket:" + std::to_string(i))] = 3;
    auto worker = [&](client& redis) -> asio::awaitable<void> {
      for (;;) {
        std::vector<std::string> full;
        for (const auto& [name, left] : jobs)
          if (left > 0) full.push_back(name);
        if (full.empty()) break;
        auto mine = co_await any(k, redis, full).lock();
        const std::string name = mine.name();
        worst = std::max<std::size_t>(worst, ++inside[name]);
        if (jobs[name] > 0) {
          co_await asio::post(asio::use_awaitable);
          --jobs[name];
          ++done;
        }
        --inside[name];
        co_await mine.unlock();
      }
      ++ended;
    };
    for (int i = 0; i < 15; ++i) {
      asio::co_spawn(w.io, worker(a), asio::detached);
      asio::co_spawn(w.io, worker(b), asio::detached);
    }
    w.until([&] { return ended == 30; }, 60s);
    CHECK(done == 60);
    CHECK(worst == 1);
    CHECK(w.locks().empty());
    CHECK(w.heard->count(kind::lost) == 0);
  });
}

TEST_CASE("any_of of every kind: with_lock runs its body under the one that was free") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    auto held = w.run(k(redis, "m").lock());
    auto choice = any(k, redis, {"m", "n"});
    CHECK(w.run(with_lock(choice, name_of)) == "n");
    CHECK(w.run(try_with_lock_for(choice, 1s, name_of)) == "n");
    auto other = w.run(k(redis, "n").lock());
    CHECK_FALSE(w.run(try_with_lock_for(choice, 0s, name_of)));
    CHECK(keys_of(w).size() == 2);
  });
}

TEST_CASE("any_of of every kind: a lock that cannot be had does not hinder the others") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    k.taken_by_stranger(w.eye, 0ms);  // it would never end
    auto held = w.run(k(redis, "n").lock());
    started<lease> waiting(w, any(k, redis, {"m", "n"}).lock());
    w.until([&] { return subscriptions(w) > 0; });
    w.run(held.unlock());
    w.until([&] { return waiting.answer.has_value(); });
    CHECK(waiting.answer->value().name() == "n");
    CHECK(w.code_of(any(k, redis, {"m"}).lock()) == errc::corrupt_lock);
    CHECK_THAT(text_of_failure([&] { (void)w.run(any(k, redis, {"m"}).lock()); }), contains_text("lock 'm'"));
  });
}

TEST_CASE("any_of of every kind: scripts that the server forgets are sent again") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    for (int i = 0; i < 3; ++i) {
      w.eye("SCRIPT", "FLUSH");
      auto held = w.run(any(k, redis).lock());
      CHECK(held.held());
    }
  });
}

TEST_CASE("any_of of every kind: cancelled anywhere it leaves nothing") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto make = [&](client& redis) -> step {
      return [&]() -> asio::awaitable<void> { auto held = co_await any(k, redis).lock(); };
    };
    cancel_everywhere(k.name, w, make, [](client&) {});
  });
}

TEST_CASE("any_of of every kind: cancelled anywhere while it waits it leaves nothing") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto make = [&](client& redis) -> step {
      k.taken_by_stranger(w.eye, 15ms);
      const auto choice = any(k, redis, {"m"});
      return [choice]() -> asio::awaitable<void> { auto held = co_await choice.lock(); };
    };
    cancel_everywhere(k.name, w, make, [&](client&) { k.freed_by_stranger(w.eye); });
  });
}

TEST_CASE("any_of of every kind: an answer or a command lost anywhere costs no lock and leaves no key") {
  using action = proxy::rule::action;
  struct fault {
    const char* name;
    action what;
    bool to_server;
  };
  for (const auto& f : {fault{"cut before a reply", action::cut_before, false},
                        fault{"cut before a command", action::cut_before, true}})
    of_every_kind_of_one_server([&](const lock_kind& k, lock_world& w) {
      proxy net(w.server);
      for (std::size_t n = 1;; ++n) {
        REQUIRE(n < 100);
        INFO(f.name << ", number " << n);
        w.eye("SCRIPT", "FLUSH");
        const auto fired_before = net.count().fired;
        {
          auto redis = w.make([&](config& c) {
            c.url = net.url();
            c.ttl = 10s;
            c.command_timeout = 2s;
          });
          f.to_server ? net.at_command({.what = f.what, .n = n}) : net.at_reply({.what = f.what, .n = n});
          auto held = w.run(any(k, redis).lock());
          w.until([&] { return keys_of(w) == std::set{held.name()}; }, 3s);
          CHECK(held.held());
          w.run(held.unlock());
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

TEST_CASE("any_of waits through an outage, and a bounded wait says that it was one") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(); });
  const auto& k = every_kind().front();
  auto held = w.run(k(redis, "m").lock());
  started<lease> waiting(w, any(k, redis).lock());
  w.until([&] { return waiting.answer.has_value(); });
  net.refuse();
  net.cut();
  CHECK(w.code_of(any(k, redis, {"p", "q"}).try_lock()) == errc::unreachable);
  CHECK(w.code_of(any(k, redis, {"p", "q"}).try_lock_for(100ms)) == errc::unreachable);
  started<lease> patient(w, any(k, redis, {"p", "q"}).lock());
  w.pass(50ms);
  CHECK_FALSE(patient.answer);
  net.heal();
  w.until([&] { return patient.succeeded(); });
}

TEST_CASE("any_of refuses what it cannot be") {
  world w;
  auto redis = w.make(), other = w.make();
  const auto refused = [](const std::vector<mutex>& which) { return world::code_of_call([&] { any_of all(which); }); };
  CHECK(refused({}) == errc::invalid_name);
  CHECK(refused(std::vector<mutex>(1001, redis.mutex("m"))) == errc::invalid_name);
  CHECK(refused({redis.mutex("m"), other.mutex("n")}) == errc::invalid_config);
  CHECK(refused({redis.mutex("m"), redis.simple_mutex("n")}) == errc::invalid_config);
  CHECK(refused({redis.mutex("m"), redis.fenced_mutex("n")}) == errc::invalid_config);
  CHECK(refused({redis.mutex("m", owner()), redis.mutex("n", owner())}) == errc::invalid_config);
  CHECK(refused({redis.mutex("m"), redis.mutex("n", owner())}) == errc::invalid_config);
  CHECK(w.code_of(any_of({redis.mutex("m"), redis.mutex("")}).lock()) == errc::invalid_name);
  CHECK(w.code_of(any_of({redis.mutex("m")}).try_lock_for(-1ms)) == errc::invalid_wait);
  CHECK(w.code_of(any_of({redis.mutex("m")}).lock({.ttl = 1ms})) == errc::invalid_ttl);
  CHECK(w.locks().empty());
}

TEST_CASE("a lock that is named twice in any_of counts once, and a thousand are not too many") {
  world w;
  auto redis = w.make();
  auto held = w.run(any_of({redis.mutex("m"), redis.mutex("m")}).lock());
  CHECK_FALSE(w.run(any_of({redis.mutex("m"), redis.mutex("m")}).try_lock()));
  std::vector<mutex> thousand;
  for (std::size_t i = 0; i < any_of::most; ++i) thousand.push_back(redis.fenced_mutex("n" + std::to_string(i)));
  auto one = w.run(any_of(thousand).lock());
  CHECK(one.held());
  CHECK(w.locks().size() == 2);
}

TEST_CASE("any_of may outlive its client") {
  world w;
  std::optional<any_of> left;
  {
    auto redis = w.make();
    left.emplace(std::vector{redis.mutex("m"), redis.mutex("n")});
  }
  CHECK(w.code_of(left->lock()) == errc::shutting_down);
}
