// SPDX-License-Identifier: BSL-1.0
// Several locks as one, of every kind, of one client and of several.
#include <set>

#include "integration/cancel_everywhere.hpp"
#include "integration/every_kind.hpp"
#include "support/proxy.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

const std::vector<std::string> mno{"m", "n", "o"};

std::vector<mutex> locks_of(const lock_kind& k, const client& c, const std::vector<std::string>& names = mno,
                            std::optional<owner> who = {}) {
  std::vector<mutex> all;
  for (const auto& n : names) all.push_back(k(c, n, who));
  return all;
}
multi_lock all_of(const lock_kind& k, const client& c, const std::vector<std::string>& names = mno,
                  std::optional<owner> who = {}) {
  return multi_lock(locks_of(k, c, names, who));
}

std::set<std::string> keys_of(world& w) {
  const auto all = w.locks();
  return {all.begin(), all.end()};
}
const std::set<std::string> all_three{"m", "n", "o"};

std::size_t subscriptions(world& w) { return w.eye("PUBSUB", "CHANNELS", of_locks).array().size(); }

asio::awaitable<std::size_t> size_of(multi_lease& l) { co_return l.size(); }

std::string run_of(raw_client& redis) {
  const auto info = redis("INFO", "server").to_string();
  const auto at = info.find("run_id:") + 7;
  return info.substr(at, info.find('\r', at) - at);
}

}  // namespace

TEST_CASE("multi_lock of every kind: it has all or none, and gives all back") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto a = w.make(), b = w.make();
    auto held = w.run(all_of(k, a).lock());
    CHECK(keys_of(w) == all_three);
    CHECK(held.held());
    CHECK(held.state() == lease_state::held);
    CHECK(held.valid_for() > 20s);
    REQUIRE(held.size() == 3);
    std::set<std::string> ids;
    for (std::size_t n = 0; n < 3; ++n) {
      CHECK(held[n].name() == mno[n]);
      CHECK(held[n].token().has_value() == std::string_view(k.name).starts_with("fenced_lock"));
      ids.insert(held[n].id());
    }
    CHECK(ids.size() == 3);
    CHECK_FALSE(w.run(all_of(k, b, {"o", "p"}).try_lock()));
    CHECK_FALSE(w.run(all_of(k, b, {"p", "m"}).try_lock_for(20ms)));
    CHECK(keys_of(w) == all_three);
    w.run(held.unlock());
    CHECK(held.state() == lease_state::released);
    CHECK(w.locks().empty());
    CHECK(w.code_of(held.unlock()) == errc::not_held);
    auto again = w.run(all_of(k, b).try_lock());
    CHECK(again.value().held());
  });
}

TEST_CASE("multi_lock of every kind: it waits for each that is held, and has all when the last is released") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto a = w.make(), b = w.make();
    auto m = w.run(k(a, "m").lock()), o = w.run(k(a, "o").lock());
    started<multi_lease> waiting(w, all_of(k, b).lock());
    w.until([&] { return subscriptions(w) == 1; });
    w.run(m.unlock());
    w.pass(30ms);
    CHECK_FALSE(waiting.answer);
    CHECK(keys_of(w) == std::set<std::string>{"o"});
    w.run(o.unlock());
    w.until([&] { return waiting.succeeded(); }, 4s);
    CHECK(keys_of(w) == all_three);
    w.until([&] { return subscriptions(w) == 0; });
  });
}

TEST_CASE("multi_lock of every kind: a stranger's lock is waited for until its TTL is over") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    k.taken_by_stranger(w.eye, 300ms);
    auto got = w.run(all_of(k, redis).lock());
    CHECK(got.held());
    CHECK(k.owner_of(w.eye) == got[0].id());
  });
}

TEST_CASE("multi_lock of every kind: a key that is no lock fails it, and says which; nothing is taken") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    k.spoilt(w.eye);
    CHECK(w.code_of(all_of(k, redis, {"l", "m"}).lock()) == errc::corrupt_lock);
    CHECK_THAT(text_of_failure([&] { (void)w.run(all_of(k, redis, {"l", "m"}).lock()); }), contains_text("lock 'm'"));
    CHECK(w.eye("EXISTS", "l").integer() == 0);
    k.taken_by_stranger(w.eye, 0ms);
    CHECK(w.code_of(all_of(k, redis, {"l", "m"}).lock()) == errc::corrupt_lock);
  });
}

TEST_CASE("multi_lock of every kind: in whatever order they are named, calls of two clients exclude and end") {
  of_all_of_one_server([](const lock_kind& k, lock_world& w) {
    auto a = w.make(), b = w.make();
    int inside = 0, worst = 0, ended = 0;
    const std::vector<std::vector<std::string>> sets{{"m", "n"}, {"n", "m"}, {"m", "n", "o"}, {"o", "m"}};
    auto worker = [&](client& redis, std::vector<std::string> names) -> asio::awaitable<void> {
      for (int i = 0; i < 10; ++i) {
        auto held = co_await all_of(k, redis, names).lock();
        worst = std::max(worst, ++inside);  // each has m
        co_await asio::post(asio::use_awaitable);
        --inside;
        co_await held.unlock();
      }
      ++ended;
    };
    for (const auto& names : sets)
      for (auto* redis : {&a, &b}) asio::co_spawn(w.io, worker(*redis, names), asio::detached);
    w.until([&] { return ended == 8; }, 60s);
    CHECK((k.shares || worst == 1));
    CHECK(w.locks().empty());
    CHECK(w.heard->count(kind::lost) == 0);
  });
}

TEST_CASE("multi_lock of every kind: it is not starved by callers for each of its locks") {
  of_all_of_one_server([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    bool had = false;
    int ended = 0;
    auto single = [&](std::string name) -> asio::awaitable<void> {
      while (!had) {
        auto held = co_await k(redis, name).lock();
        co_await asio::post(asio::use_awaitable);
        co_await held.unlock();
      }
      ++ended;
    };
    const auto m_and_n = all_of(k, redis, {"m", "n"});
    auto both = [&]() -> asio::awaitable<void> {
      auto held = co_await m_and_n.lock();
      had = true;
    };
    for (int i = 0; i < 3; ++i)
      for (const auto* name : {"m", "n"}) asio::co_spawn(w.io, single(name), asio::detached);
    w.pass(20ms);
    asio::co_spawn(w.io, both(), asio::detached);
    w.until([&] { return ended == 6; }, 30s);
  });
}

TEST_CASE("multi_lock of every kind: with_lock gives its body all of them, and gives all back") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto redis = w.make();
    auto choice = all_of(k, redis);
    CHECK(w.run(with_lock(choice, size_of)) == 3);
    CHECK(w.run(try_with_lock_for(choice, 1s, size_of)) == 3);
    CHECK(w.locks().empty());
    auto other = w.run(k(redis, "n").lock());
    CHECK_FALSE(w.run(try_with_lock_for(choice, 0s, size_of)));
    CHECK(keys_of(w) == std::set<std::string>{"n"});
  });
}

TEST_CASE("multi_lock of every kind: the loss of one cancels the body, and the others are given back") {
  of_every_kind_of_one_server([](const lock_kind& k, lock_world& w) {
    auto redis = w.make([](config& c) { c.ttl = 300ms; });
    bool cancelled = false, held_at_the_end = true;
    auto body = [&](multi_lease& l) -> asio::awaitable<void> {
      w.eye("DEL", "n");
      try {
        for (;;) {
          asio::steady_timer pause(co_await asio::this_coro::executor, 1h);
          co_await pause.async_wait(asio::use_awaitable);
        }
      } catch (const boost::system::system_error&) {
        cancelled = true;
        held_at_the_end = l.held();
        throw;
      }
    };
    CHECK(w.code_of(with_lock(all_of(k, redis), body)) == errc::lost);
    CHECK(cancelled);
    CHECK_FALSE(held_at_the_end);
    w.until([&] { return w.locks().empty(); });
  });
}

TEST_CASE("multi_lock of every kind: cancelled anywhere it leaves nothing") {
  of_all_of_one_server([](const lock_kind& k, lock_world& w) {
    auto make = [&](client& redis) -> step {
      return [&]() -> asio::awaitable<void> { auto held = co_await all_of(k, redis).lock(); };
    };
    cancel_everywhere(k.name, w, make, [](client&) {});
  });
}

TEST_CASE("multi_lock of every kind: cancelled anywhere while it waits it leaves nothing") {
  of_all_of_one_server([](const lock_kind& k, lock_world& w) {
    auto make = [&](client& redis) -> step {
      k.taken_by_stranger(w.eye, 15ms);
      const auto choice = all_of(k, redis, {"l", "m", "n"});
      return [choice]() -> asio::awaitable<void> { auto held = co_await choice.lock(); };
    };
    cancel_everywhere(k.name, w, make, [&](client&) { k.freed_by_stranger(w.eye); });
  });
}

TEST_CASE("multi_lock of every kind: an answer or a command lost anywhere costs no lock and leaves no key") {
  using action = proxy::rule::action;
  for (const bool to_server : {false, true})
    of_every_kind_of_one_server([&](const lock_kind& k, lock_world& w) {
      proxy net(w.server);
      for (std::size_t n = 1;; ++n) {
        REQUIRE(n < 100);
        INFO((to_server ? "command" : "reply") << " number " << n);
        w.eye("SCRIPT", "FLUSH");
        const auto fired_before = net.count().fired;
        {
          auto redis = w.make([&](config& c) {
            c.url = net.url();
            c.ttl = 10s;
            c.command_timeout = 2s;
          });
          const proxy::rule cut{.what = action::cut_before, .n = n};
          to_server ? net.at_command(cut) : net.at_reply(cut);
          auto held = w.run(all_of(k, redis).lock());
          w.until([&] { return keys_of(w) == all_three; }, 3s);
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

TEST_CASE("multi_lock takes locks of several kinds, a script for each") {
  world w;
  auto redis = w.make();
  const std::vector<mutex> mixed{redis.mutex("m"), redis.simple_mutex("s"), redis.fenced_mutex("f")};
  auto held = w.run(multi_lock(mixed).lock());
  CHECK(keys_of(w) == std::set<std::string>{"f", "m", "s"});
  CHECK(held[0].name() == "m");
  CHECK(held[2].token().has_value());
  w.run(held.unlock());
  CHECK(w.locks().empty());
  auto m = w.run(redis.mutex("m").lock());
  CHECK_FALSE(w.run(multi_lock(mixed).try_lock()));
  w.until([&] { return keys_of(w) == std::set<std::string>{"m"}; });
  CHECK_FALSE(w.run(multi_lock(mixed).try_lock_for(20ms)));
  w.until([&] { return keys_of(w) == std::set<std::string>{"m"}; });
}

TEST_CASE("multi_lock takes permits beside other locks, and keeps these while it waits for one") {
  world w;
  auto a = w.make(), b = w.make();
  const auto permits_out = [&] { return w.eye("ZCARD", "{s}:timeout").integer(); };
  const auto mixed = [](const client& c) {
    return multi_lock({c.expirable_semaphore("s", 2).as_mutex(), c.mutex("m"), c.expirable_semaphore("t", 1).as_mutex(),
                       c.simple_mutex("n")});
  };
  auto held = w.run(mixed(a).lock({.ttl = 10s}));
  REQUIRE(held.size() == 4);
  CHECK(held[0].name() == "s");
  CHECK(held[3].name() == "n");
  CHECK(held.valid_for() > 5s);
  CHECK(permits_out() == 1);
  auto only_permit = w.run(b.expirable_semaphore("t", 1).as_mutex().try_lock());
  CHECK_FALSE(only_permit);
  CHECK_FALSE(w.run(multi_lock({b.mutex("o"), b.expirable_semaphore("t", 1).as_mutex()}).try_lock()));
  w.until([&] { return w.eye("EXISTS", "o") == 0; });
  started<multi_lease> waiting(w, multi_lock({b.expirable_semaphore("t", 1).as_mutex(), b.mutex("o")}).lock());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_sc:{t}").array().at(1) == 1; });
  CHECK(w.eye("EXISTS", "o") == 1);
  w.run(held.unlock());
  w.until([&] { return waiting.succeeded(); });
  CHECK(permits_out() == 0);
  w.run(waiting.answer->value().unlock());
  CHECK(w.eye("EXISTS", "m", "n", "o", "{s}:timeout", "{t}:timeout") == 0);
}

TEST_CASE("a semaphore that is named twice in multi_lock gives one permit") {
  world w;
  auto redis = w.make();
  const auto permit = redis.expirable_semaphore("s", 2).as_mutex();
  auto held = w.run(multi_lock({permit, permit}).lock());
  CHECK(held.size() == 1);
  CHECK(w.run(redis.expirable_semaphore("s", 2).available()) == 1);
}

TEST_CASE("multi_lock takes sides of shared mutexes beside other locks, and each excludes the other side") {
  world w;
  auto a = w.make(), b = w.make();
  const auto all = [](const client& by) {
    return multi_lock({by.shared_mutex("r").reader(), by.mutex("m"), by.shared_mutex("w").writer(),
                       by.expirable_semaphore("p", 2).as_mutex()});
  };
  auto held = w.run(all(a).lock());
  REQUIRE(held.size() == 4);
  CHECK(held.held());
  CHECK_FALSE(w.run(b.shared_mutex("r").try_lock()));
  CHECK_FALSE(w.run(b.shared_mutex("w").try_lock_shared()));
  w.run(w.run(b.shared_mutex("r").lock_shared()).unlock());
  CHECK_FALSE(w.run(all(b).try_lock()));
  started<multi_lease> waits(w, all(b).lock());
  w.until([&] { return subscriptions(w) > 0; });
  CHECK_FALSE(waits.answer);
  w.run(held.unlock());
  w.until([&] { return waits.succeeded(); });
  w.run(waits.answer->value().unlock());
  w.until([&] { return w.eye("EXISTS", "r", "w", "m", "holdfast_queue:{w}", "holdfast_turn:{r}") == 0; });
}

TEST_CASE("multi_lock of crossed sides of two shared mutexes ends, and excludes") {
  world w;
  auto a = w.make(), b = w.make();
  int inside = 0, left = 2;
  bool broken = false;
  const auto task = [&](const client& by, bool first) -> asio::awaitable<void> {
    const auto one = by.shared_mutex("1"), other = by.shared_mutex("2");
    for (int n = 0; n < 20; ++n) {
      std::vector<mutex> sides;
      sides.push_back(first ? one.reader() : other.reader());
      sides.push_back(first ? other.writer() : one.writer());
      auto both = co_await multi_lock(sides).lock();
      broken |= inside > 0;
      ++inside;
      co_await asio::post(asio::use_awaitable);
      --inside;
      co_await both.unlock();
    }
  };
  for (const auto* by : {&a, &b})
    asio::co_spawn(w.io, task(*by, by == &a), [&](const std::exception_ptr& failed) {
      broken |= failed != nullptr;
      --left;
    });
  w.until([&] { return left == 0; });
  CHECK_FALSE(broken);
}

TEST_CASE("multi_lock of several kinds: where Redis does not confirm at its end what it has, all is begun anew") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) {
    c.url = net.url();
    c.command_timeout = 100ms;
  });
  const multi_lock both({redis.mutex("m"), redis.simple_mutex("s")});
  const lock_options not_renewed{.ttl = 5s};
  w.run(w.run(both.lock(not_renewed)).unlock());
  const auto silent_after_two_scripts = [&] {
    net.heal();
    net.at_command({.what = proxy::rule::action::drop_rest, .n = 3, .command = "EVALSHA"});
  };
  std::size_t fired = 0;
  silent_after_two_scripts();
  auto held = w.run(both.lock(not_renewed));
  CHECK(net.count().fired == ++fired);
  CHECK(held.held());
  w.run(held.unlock());
  silent_after_two_scripts();
  auto in_time = w.run(both.try_lock_for(3s, not_renewed));
  CHECK(net.count().fired == ++fired);
  REQUIRE(in_time);
  CHECK(in_time->held());
  w.run(in_time->unlock());
  silent_after_two_scripts();
  CHECK(w.code_of(both.try_lock(not_renewed)) == errc::unreachable);
  CHECK(net.count().fired == ++fired);
  w.until([&] { return w.locks().empty(); });
}

TEST_CASE("multi_lock re-enters what its owner holds, and nested locks of each of its names re-enter") {
  world w;
  auto redis = w.make();
  const owner me;
  auto outer = w.run(redis.mutex("n", me).lock());
  auto held = w.run(all_of(every_kind().front(), redis, mno, me).lock());
  CHECK(held[1].id() == outer.id());
  auto nested = w.run(redis.mutex("o", me).try_lock());
  CHECK(nested.value().id() == held[2].id());
  w.run(held.unlock());
  CHECK(outer.held());
  auto body = [&](multi_lease&) -> asio::awaitable<bool> {
    auto again = co_await redis.mutex("p").try_lock();
    co_return again.has_value();
  };
  CHECK(w.run(with_lock(all_of(every_kind().front(), redis, {"p", "q"}), body)));
}

TEST_CASE("multi_lock tells the observer when an owner breaks the order") {
  world w;
  auto redis = w.make(), other = w.make();
  const owner me;
  auto n = w.run(redis.mutex("n", me).lock());
  auto m = w.run(other.mutex("m").lock());
  CHECK_FALSE(w.run(all_of(every_kind().front(), redis, {"m", "n"}, me).try_lock_for(50ms)));
  CHECK(w.heard->count(kind::lock_order_broken) == 1);
  CHECK(n.held());
}

TEST_CASE("multi_lock: lost() says it as soon as one is lost, and not_held when they are given back") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 300ms; });
  auto held = w.run(all_of(every_kind().front(), redis).lock());
  started<error_code> watch(w, held.lost());
  w.pass(10ms);
  CHECK_FALSE(watch.answer);
  w.eye("DEL", "o");
  w.until([&] { return watch.answer.has_value(); });
  CHECK(watch.answer->value() == errc::lost);
  CHECK(held.state() == lease_state::lost);
  CHECK(w.code_of(held.unlock()) == errc::lost);
  CHECK(w.locks().empty());
  auto again = w.run(all_of(every_kind().front(), redis).lock());
  started<error_code> quiet(w, again.lost());
  w.run(again.renew(5s));
  w.run(again.unlock());
  w.until([&] { return quiet.answer.has_value(); });
  CHECK(quiet.answer->error() == errc::not_held);
}

TEST_CASE("multi_lock of two clients of one server has one order, and a lock that both name once") {
  world w;
  auto a = w.make(), b = w.make();
  int inside = 0, worst = 0, ended = 0;
  auto worker = [&](std::vector<mutex> which) -> asio::awaitable<void> {
    for (int i = 0; i < 10; ++i) {
      auto held = co_await multi_lock(which).lock();
      worst = std::max(worst, ++inside);
      co_await asio::post(asio::use_awaitable);
      --inside;
      co_await held.unlock();
    }
    ++ended;
  };
  const std::vector<std::vector<mutex>> sets{{a.mutex("m"), b.mutex("n")},
                                             {a.mutex("n"), b.mutex("m")},
                                             {b.mutex("n"), a.mutex("m")},
                                             {a.mutex("m"), a.mutex("n"), b.mutex("o")}};
  for (const auto& which : sets) asio::co_spawn(w.io, worker(which), asio::detached);
  w.until([&] { return ended == 4; }, 60s);
  CHECK(worst == 1);
  auto once = w.run(multi_lock({a.mutex("m"), b.mutex("m"), b.mutex("n")}).lock());
  CHECK(once.size() == 2);
  CHECK(once.held());
  CHECK(w.code_of(multi_lock({a.mutex("x"), b.fenced_mutex("x")}).lock()) == errc::invalid_config);
}

TEST_CASE("multi_lock of two servers takes them in the order of their runs, and gives all back when one is held") {
  world w;
  const real_redis second;
  raw_client eye(second);
  auto a = w.make(), b = w.make([&](config& c) { c.url = second.url(); });
  const std::vector<mutex> both{a.mutex("m"), b.mutex("m")}, turned{b.mutex("m"), a.mutex("m")};
  auto held = w.run(multi_lock(both).lock());
  REQUIRE(held.size() == 2);
  CHECK(w.eye("EXISTS", "m").integer() == 1);
  CHECK(eye("EXISTS", "m").integer() == 1);
  CHECK_FALSE(w.run(multi_lock(turned).try_lock()));
  w.run(held.unlock());
  CHECK(w.eye("EXISTS", "m").integer() == 0);
  CHECK(eye("EXISTS", "m").integer() == 0);

  const bool a_first = run_of(w.eye) < run_of(eye);
  auto later = w.run((a_first ? b : a).mutex("m").lock());
  auto& eye_of_first = a_first ? w.eye : eye;
  started<multi_lease> waiting(w, multi_lock(turned).lock());
  w.until([&] { return eye_of_first("EXISTS", "m").integer() == 1; });
  CHECK_FALSE(w.run(multi_lock(both).try_lock_for(20ms)));
  w.run(later.unlock());
  w.until([&] { return waiting.succeeded(); }, 4s);
  CHECK(waiting.answer->value().held());
}

TEST_CASE("multi_lock of two servers under load from two pairs of clients ends, and excludes") {
  world w;
  const real_redis second;
  std::vector<client> ones, others;
  for (int i = 0; i < 2; ++i) {
    ones.push_back(w.make());
    others.push_back(w.make([&](config& c) { c.url = second.url(); }));
  }
  int inside = 0, worst = 0, ended = 0;
  auto worker = [&](std::vector<mutex> which) -> asio::awaitable<void> {
    for (int i = 0; i < 10; ++i) {
      auto held = co_await multi_lock(which).lock();
      worst = std::max(worst, ++inside);
      co_await asio::post(asio::use_awaitable);
      --inside;
      co_await held.unlock();
    }
    ++ended;
  };
  for (std::size_t i = 0; i < 2; ++i) {
    const std::vector<mutex> which{ones[i].mutex("m"), others[i].mutex("m"), ones[i].simple_mutex("n")};
    const std::vector<mutex> turned(which.rbegin(), which.rend());
    for (const auto& order : {which, turned}) asio::co_spawn(w.io, worker(order), asio::detached);
  }
  w.until([&] { return ended == 4; }, 60s);
  CHECK(worst == 1);
}

TEST_CASE("multi_lock of two servers: the loss at one cancels the body, and a lost client is told as closed") {
  world w;
  const real_redis second;
  raw_client eye(second);
  auto a = w.make([](config& c) { c.ttl = 300ms; });
  auto b = w.make([&](config& c) {
    c.url = second.url();
    c.ttl = 300ms;
  });
  auto body = [&](multi_lease& l) -> asio::awaitable<void> {
    eye("DEL", "m");
    const auto why = co_await l.lost();
    CHECK(why == errc::lost);
  };
  CHECK(w.code_of(with_lock(multi_lock({a.mutex("m"), b.mutex("m")}), body)) == errc::lost);
  w.until([&] { return w.locks().empty(); });

  std::optional<client> ends(std::move(b));
  auto held = w.run(multi_lock({a.mutex("x"), ends->mutex("x")}).lock());
  started<error_code> watch(w, held.lost());
  w.pass(10ms);
  ends.reset();
  w.until([&] { return watch.answer.has_value(); });
  CHECK(watch.answer->value() == errc::closed);
  CHECK(w.code_of(held.unlock()) == errc::closed);
  CHECK(w.locks().empty());
}

TEST_CASE("multi_lock of two servers: where one restarts while the other is waited for, all is begun anew") {
  world w;
  real_redis second;
  raw_client eye(second);
  auto a = w.make(), b = w.make([&](config& c) { c.url = second.url(); });
  const bool a_first = run_of(w.eye) < run_of(eye);
  auto& first = a_first ? a : b;
  auto& later = a_first ? b : a;
  auto busy = w.run(first.mutex("m").lock());
  w.run(w.run(later.mutex("m").lock()).unlock());
  started<multi_lease> waiting(w, multi_lock({a.mutex("m"), b.mutex("m")}).lock());
  auto& eye_of_first = a_first ? w.eye : eye;
  w.until([&] { return eye_of_first("PUBSUB", "CHANNELS", of_locks).array().size() == 1; });
  (a_first ? second : w.server).restart();
  w.run(w.run(later.mutex("other").lock()).unlock());  // it has connected again
  const auto before = w.heard->count(kind::acquired);
  w.run(busy.unlock());
  w.until([&] { return waiting.succeeded(); }, 10s);
  CHECK(waiting.answer->value().held());
  CHECK(w.heard->count(kind::acquired) == before + 3);  // the first was given back in between
}

TEST_CASE("multi_lock of two servers: where one restarts that is held already, another one is waited for anew") {
  const auto lock_of = GENERATE(
      +[](const client& c) { return c.mutex("m"); },
      +[](const client& c) { return c.expirable_semaphore("m", 1).as_mutex(); });
  redis_options keeps_its_data;
  keeps_its_data.arguments = {"--appendonly", "yes"};
  world w(keeps_its_data);
  real_redis second(keeps_its_data);
  raw_client eye(second);
  const auto own = [&](const real_redis& server) { return w.make([&](config& c) { c.url = server.url(); }); };
  auto a = own(w.server), b = own(second), other_a = own(w.server), other_b = own(second);
  const bool a_first = run_of(w.eye) < run_of(eye);
  auto& first = a_first ? w.server : second;
  auto busy = w.run(lock_of(a_first ? other_b : other_a).lock());
  started<multi_lease> waiting(w, multi_lock({lock_of(a), lock_of(b)}).lock());
  auto& eye_of_later = a_first ? eye : w.eye;
  w.until([&] { return eye_of_later("PUBSUB", "CHANNELS", of_locks).array().size() == 1; });
  const auto before = w.heard->count(kind::released);
  first.restart();
  w.until([&] { return w.heard->count(kind::released) > before; });  // what it had is given back
  CHECK_FALSE(waiting.answer);
  // By the order of now nobody waits in a circle.
  started<multi_lease> another(w, multi_lock({lock_of(other_a), lock_of(other_b)}).lock());
  w.run(busy.unlock());
  w.until([&] { return waiting.succeeded() || another.succeeded(); });
  w.run((waiting.succeeded() ? waiting : another).answer->value().unlock());
  w.until([&] { return waiting.succeeded() && another.succeeded(); });
}

TEST_CASE("multi_lock waits through an outage, and a bounded wait says that it was one") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(); });
  const auto& k = every_kind().front();
  w.run(w.run(all_of(k, redis).lock()).unlock());
  net.refuse();
  net.cut();
  CHECK(w.code_of(all_of(k, redis).try_lock()) == errc::unreachable);
  CHECK(w.code_of(all_of(k, redis).try_lock_for(100ms)) == errc::unreachable);
  started<multi_lease> patient(w, all_of(k, redis).lock());
  w.pass(50ms);
  CHECK_FALSE(patient.answer);
  net.heal();
  w.until([&] { return patient.succeeded(); });
}

TEST_CASE("multi_lock refuses what it cannot be") {
  world w;
  auto redis = w.make();
  const auto refused = [](const std::vector<mutex>& which) {
    return world::code_of_call([&] { multi_lock all(which); });
  };
  CHECK(refused({}) == errc::invalid_name);
  CHECK(refused(std::vector<mutex>(1001, redis.mutex("m"))) == errc::invalid_name);
  CHECK(refused({redis.mutex("m"), redis.fenced_mutex("m")}) == errc::invalid_config);
  const auto rw = redis.shared_mutex("m");
  CHECK(refused({rw.reader(), redis.mutex("n"), rw.writer()}) == errc::invalid_config);
  CHECK_FALSE(refused({rw.reader(), rw.reader(), redis.mutex("m")}));
  CHECK(refused({redis.mutex("m", owner()), redis.mutex("n", owner())}) == errc::invalid_config);
  CHECK(refused({redis.mutex("m"), redis.mutex("n", owner())}) == errc::invalid_config);
  CHECK(w.code_of(multi_lock({redis.mutex("m"), redis.mutex("")}).lock()) == errc::invalid_name);
  CHECK(w.code_of(multi_lock({redis.mutex("m")}).try_lock_for(-1ms)) == errc::invalid_wait);
  CHECK(w.code_of(multi_lock({redis.mutex("m")}).lock({.ttl = 1ms})) == errc::invalid_ttl);
  CHECK(w.locks().empty());
  multi_lease none;
  CHECK(none.state() == lease_state::empty);
  CHECK_FALSE(none.held());
  CHECK(none.valid_for() == 0ms);
  CHECK(w.code_of(none.unlock()) == errc::not_held);
  CHECK(w.code_of(none.lost()) == errc::not_held);
}

TEST_CASE("a lock that is named twice in multi_lock counts once, and a thousand are not too many") {
  world w;
  auto redis = w.make();
  auto held = w.run(multi_lock({redis.mutex("m"), redis.mutex("a"), redis.mutex("m")}).lock());
  REQUIRE(held.size() == 2);
  CHECK(held[0].name() == "m");
  CHECK(held[1].name() == "a");
  std::vector<mutex> thousand;
  for (std::size_t i = 0; i < multi_lock::most; ++i) thousand.push_back(redis.fenced_mutex("n" + std::to_string(i)));
  auto all = w.run(multi_lock(thousand).lock());
  CHECK(all.held());
  CHECK(w.locks().size() == 1002);
  w.run(all.unlock());
  CHECK(w.locks().size() == 2);
}

TEST_CASE("multi_lock may outlive its client") {
  world w;
  std::optional<multi_lock> left;
  {
    auto redis = w.make();
    left.emplace(std::vector{redis.mutex("m"), redis.mutex("n")});
  }
  CHECK(w.code_of(left->lock()) == errc::shutting_down);
}
