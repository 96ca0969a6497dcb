// SPDX-License-Identifier: BSL-1.0
// A lock of a majority of independent servers, on real ones.
#include <holdfast/red_lock.hpp>

#include <set>

#include "integration/red_world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

TEST_CASE("a red_lock is on every primary while it is held, and on none afterwards") {
  for (const auto nested : both) {
    red_world w;
    auto redis = w.founded();
    auto lock = redis.red_lock("m", nested);
    auto lease = w.run(lock.lock());
    CHECK(lease.held());
    w.until([&] { return w.where("m") == "ABCDE"; });
    CHECK(w.run(lock.is_locked()));
    CHECK(w.run(lock.holder())->id == lease.id());
    CHECK(w.run(lock.remaining_ttl()).value() > 25s);
    CHECK_FALSE(w.run(w.make().red_lock("m", nested).try_lock()));
    w.run(lease.unlock());
    w.until([&] { return w.where("m").empty(); });
    CHECK_FALSE(w.run(lock.is_locked()));
  }
}

TEST_CASE("a red_lock is had while a minority of its primaries is dead or hangs") {
  for (const auto nested : both) {
    red_world w;
    auto redis = w.founded();
    w.node(3).kill();
    w.node(4).stop();
    auto lease = w.run(redis.red_lock("m", nested).lock());
    CHECK(w.eyes[0]("EXISTS", "m") == 1);
    w.run(lease.renew());
    w.run(lease.unlock());
    CHECK(w.eyes[0]("EXISTS", "m") == 0);
    w.node(4).cont();
  }
}

TEST_CASE("without a majority of its primaries nobody has a red_lock, and each of them is named") {
  red_world w;
  auto redis = w.founded();
  for (const std::size_t n : {2, 3, 4}) w.node(n).kill();
  const auto failed = text_of_failure([&] { (void)w.run(redis.red_lock("m").try_lock()); });
  INFO(failed);
  CHECK(failed.find(" of 5 primaries, and 3 are needed") != failed.npos);
  for (const std::size_t n : {2, 3, 4}) CHECK(failed.find(w.node(n).url()) != failed.npos);
  CHECK(w.code_of(redis.red_lock("m").try_lock()) == errc::quorum_failed);
  CHECK(w.code_of(redis.red_lock("m").try_lock_for(50ms)) == errc::quorum_failed);
  w.until([&] { return w.eyes[0]("EXISTS", "m") == 0 && w.eyes[1]("EXISTS", "m") == 0; });
}

TEST_CASE("of two clients that see three of five primaries each, one of them in common, one has the lock") {
  red_world w;
  w.founded();
  auto x = w.that_sees({0, 1, 2}), y = w.that_sees({2, 3, 4}), z = w.that_sees({0, 1});
  auto held = w.run(x.red_lock("m").lock());
  CHECK_FALSE(w.run(y.red_lock("m").try_lock()));
  CHECK(held.held());
  CHECK(w.code_of(z.red_lock("m").try_lock()) == errc::quorum_failed);
  w.run(held.unlock());
  CHECK(w.run(y.red_lock("m").try_lock()));
}

TEST_CASE("a waiter for a red_lock has it as soon as it is released") {
  red_world w;
  auto redis = w.founded(), other = w.make();
  auto held = w.run(redis.red_lock("m").lock());
  started waits(w, other.red_lock("m").lock());
  w.until([&] { return w.eyes[0]("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").strings().at(1) == "1"; });
  CHECK_FALSE(waits.answer);
  w.run(held.unlock());
  w.until([&] { return waits.succeeded(); }, 1s);
}

TEST_CASE("nested calls of one task re-enter a red_lock, unless it is taken as not reentrant") {
  red_world w;
  auto redis = w.founded();
  const owner task;
  auto outer = w.run_as(task, redis.red_lock("m").lock());
  auto inner = w.run_as(task, redis.red_lock("m").lock());
  w.until([&] { return w.run(redis.red_lock("m").hold_count(task)) == 2; });
  w.run(inner.unlock());
  CHECK(outer.held());
  w.until([&] { return w.run(redis.red_lock("m").hold_count(task)) == 1; });
  w.run(outer.unlock());
  auto once = w.run_as(task, redis.red_lock("s", reentrancy::not_reentrant).lock());
  CHECK(w.code_of_as(task, redis.red_lock("s", reentrancy::not_reentrant).lock()) == errc::already_held);
}

namespace {

/// X holds on A, B and C, and C restarts without what it knew: whether Y gets C, D and E.
bool second_holder_after(red_world& w, const std::function<void(real_redis&)>& restart, bool delayed) {
  const auto with = [delayed](config& c) { c.red_lock.delayed_restart = delayed; };
  auto x = w.that_sees({0, 1, 2}, with), y = w.that_sees({2, 3, 4}, with);
  auto held = w.run(x.red_lock("m").lock({.ttl = 20s}));
  restart(w.node(2));
  auto second = w.run(as_result(y.red_lock("m").try_lock({.ttl = 1s})));
  // The connection that was cut is made again.
  for (int i = 0; i < 20 && !second && second.error() == errc::quorum_failed; ++i) {
    w.pass(20ms);
    second = w.run(as_result(y.red_lock("m").try_lock({.ttl = 1s})));
  }
  if (!second) CHECK(second.error() == errc::quorum_failed);
  return second && second->has_value();
}

/// The first attempt of a client may be over before its connections are made.
void try_until_a_vote_is_withheld(red_world& w, client& redis) {
  for (int i = 0; i < 100 && w.heard->count(kind::vote_withheld) == 0; ++i)
    CHECK(w.code_of(redis.red_lock("m").try_lock()) == errc::quorum_failed);
}

struct restart_way {
  const char* name;
  redis_options options;
  std::function<void(red_world&, real_redis&)> prepare, restart;
};

// Each of them forgets the locks that were granted last.
std::vector<restart_way> ways_to_forget() {
  const auto nothing = [](red_world&, real_redis&) {};
  const auto empty = [](red_world&, real_redis& node) { node.restart_empty(); };
  // Saved when it voted already, and before the lock.
  const auto save = [](red_world&, real_redis& node) { raw_client{node}("SAVE"); };
  const auto killed = [](red_world&, real_redis& node) { node.restart(); };
  const auto flushed = [](red_world&, real_redis& node) { raw_client{node}("FLUSHALL"); };
  return {{"restarted empty", {}, nothing, empty},
          {"restarted from an old snapshot, which has the marker", {}, save, killed},
          {"flushed", {}, nothing, flushed}};
}

}  // namespace

TEST_CASE("a primary that has forgotten its locks has no vote for the longest TTL, or there are two holders") {
  for (const auto& way : ways_to_forget())
    for (const bool delayed : {true, false}) {
      INFO(way.name << ", delayed: " << delayed);
      red_world w(5, way.options);
      w.founded();
      way.prepare(w, w.node(2));
      CHECK(second_holder_after(
                w, [&](real_redis& node) { way.restart(w, node); }, delayed) != delayed);
    }
}

TEST_CASE("another server behind the address of a primary has no vote, or there are two holders") {
  for (const bool delayed : {true, false}) {
    INFO("delayed: " << delayed);
    red_world w;
    real_redis other;
    w.founded();
    auto x = w.that_sees({0, 1, 2});
    auto held = w.run(x.red_lock("m").lock());
    raw_client{other}("SET", "holdfast:redlock", w.eyes[2]("GET", "holdfast:redlock").to_string());
    auto y = w.make([&](config& c) {
      c.red_lock.primaries[0] += "-nobody";
      c.red_lock.primaries[1] += "-nobody";
      c.red_lock.primaries[2] = other.url();
      c.red_lock.delayed_restart = delayed;
    });
    if (delayed) try_until_a_vote_is_withheld(w, y);
    const auto second = w.run(as_result(y.red_lock("m").try_lock()));
    if (delayed) {
      CHECK(second.error() == errc::quorum_failed);
    } else {
      REQUIRE(second.has_value());
      CHECK(second->has_value());
      CHECK(held.held());
    }
    CHECK(w.heard->count(kind::vote_withheld) == (delayed ? 1 : 0));
  }
}

TEST_CASE("a primary without a vote gets it when the longest TTL is over, from whoever waited for it") {
  red_world w;
  const auto short_lived = [](config& c) {
    c.ttl = 100ms;
    c.red_lock.longest_ttl = 400ms;
  };
  auto redis = w.founded(short_lived);
  for (const std::size_t n : {0, 1, 2}) w.node(n).restart_empty();
  auto other = w.make(short_lived);
  const auto began = std::chrono::steady_clock::now();
  auto held = w.run(redis.red_lock("m").lock());
  CHECK(std::chrono::steady_clock::now() - began >= 400ms);
  int votes = 0;
  for (std::size_t n = 0; n < 3; ++n) {
    raw_client eye(w.node(n));
    const auto marker = eye("GET", "holdfast:redlock").to_string();
    CHECK(eye("INFO", "server").to_string().find("run_id:" + marker.substr(0, 40)) != marker.npos);
    votes += marker.substr(40) == " 400";
  }
  CHECK(votes >= 1);
  CHECK(w.heard->count(kind::vote_withheld) >= 3);
  w.run(held.unlock());
  CHECK(w.run(other.red_lock("m").lock()).held());
}

TEST_CASE("a new installation is made once, by an operator who reaches every primary") {
  red_world w;
  auto redis = w.make();
  try_until_a_vote_is_withheld(w, redis);
  CHECK(w.code_of(redis.red_lock("m").try_lock()) == errc::quorum_failed);
  CHECK(w.code_of(red_lock::initialise(redis)) == errc::invalid_config);
  for (auto& eye : w.eyes) eye("FLUSHALL");
  w.node(4).kill();
  CHECK(w.code_of(red_lock::initialise(redis)) == errc::quorum_failed);
  CHECK(w.eyes[0]("EXISTS", "holdfast:redlock") == 0);
  w.node(4).restart();
  auto fresh = w.make();
  w.run(red_lock::initialise(fresh));
  CHECK(w.run(fresh.red_lock("m").try_lock()));
  CHECK(w.code_of(red_lock::initialise(fresh)) == errc::invalid_config);
}

TEST_CASE("one server at two addresses is found, whether it says which it is or not") {
  for (const bool says : {true, false}) {
    red_world w(3, {.tcp = true});
    if (!says)
      for (auto& eye : w.eyes) eye("ACL", "SETUSER", "default", "-info");
    auto twice = w.make([&](config& c) {
      c.red_lock.primaries = {w.node(0).unix_url(), w.node(0).tcp_url(), w.node(1).url()};
    });
    INFO(says);
    w.eyes[0]("SET", "holdfast:redlock", "- 60000");
    w.until([&] { return w.code_of(twice.red_lock("m").try_lock()) == errc::invalid_config; });
    w.until([&] { return w.eyes[0]("EXISTS", "m") == 0; });
    for (auto& eye : w.eyes) eye("ACL", "LOG", "RESET");  // see least_rights.hpp: these refusals are meant
  }
}

TEST_CASE("localhost and 127.0.0.1 are one server") {
  red_world w(3, {.tcp = true});
  const auto port = std::to_string(w.node(0).port());
  auto twice = w.make([&](config& c) {
    c.red_lock.primaries = {"redis://localhost:" + port, "redis://127.0.0.1:" + port, w.node(1).url()};
  });
  // Until both addresses have answered: one of them and the third server suffice to say no.
  w.until([&] { return w.code_of(twice.red_lock("m").try_lock()) == errc::invalid_config; });
}

TEST_CASE("clients that disagree about the longest TTL are told so, with both values") {
  red_world w;
  w.founded([](config& c) { c.red_lock.longest_ttl = 90s; });
  auto other = w.make([](config& c) { c.red_lock.longest_ttl = 120s; });
  std::string text;
  w.until([&] {
    text = text_of_failure([&] { (void)w.run(other.red_lock("m").try_lock()); });
    return text.find("120000") != text.npos;
  });
  CHECK(text.find(" 90000'") != text.npos);
  CHECK(w.code_of(other.red_lock("m").try_lock()) == errc::invalid_config);
}

TEST_CASE("where INFO is refused red_lock works, and the observer hears once what it cannot see") {
  red_world w;
  for (auto& eye : w.eyes) eye("ACL", "SETUSER", "default", "-info", "-role");
  auto redis = w.founded();
  auto held = w.run(redis.red_lock("m").lock());
  CHECK(w.where("m").size() >= 3);
  w.run(held.unlock());
  CHECK(w.heard->count(kind::delayed_restart_degraded) == 1);
  for (auto& eye : w.eyes) eye("ACL", "LOG", "RESET");  // see least_rights.hpp: these refusals are meant
}

TEST_CASE("bad settings of a red_lock are refused with the reason") {
  red_world w(3);
  const auto code_of = [](auto make) { return world::code_of_call([&] { make(); }); };
  for (const std::size_t n : {1, 2, 4, 6, 8, 10, 11})
    CHECK(code_of([&] {
            return w.make([n](config& c) {
              c.red_lock.primaries.clear();
              for (std::size_t i = 0; i < n; ++i)
                c.red_lock.primaries.push_back("redis://host:" + std::to_string(7000 + i));
            });
          }) == errc::invalid_config);
  auto redis = w.founded();
  CHECK(w.code_of(redis.red_lock("m").lock({.ttl = 61s})) == errc::invalid_ttl);
  CHECK(w.code_of(redis.red_lock("").lock()) == errc::invalid_name);
  CHECK(w.code_of(redis.mutex("m").lock()) == errc::invalid_config);
  CHECK(w.code_of(redis.simple_mutex("m").is_locked()) == errc::invalid_config);
  CHECK(w.code_of(redis.fair_mutex("m").waiters()) == errc::invalid_config);
  auto single = static_cast<world&>(w).make();
  CHECK(w.code_of(single.red_lock("m").lock()) == errc::invalid_config);
  CHECK(w.code_of(red_lock::initialise(single)) == errc::invalid_config);
  CHECK(code_of([&] { return any_of({redis.red_lock("m")}); }) == errc::invalid_config);
}

TEST_CASE("a red_lock is lost when a majority of its primaries has forgotten it") {
  red_world w;
  auto redis = w.founded([](config& c) { c.ttl = 600ms; });
  auto held = w.run(redis.red_lock("m").lock());
  started lost(w, held.lost());
  for (const std::size_t n : {0, 1}) w.eyes[n]("DEL", "m");
  w.pass(300ms);
  CHECK(held.held());
  CHECK_FALSE(lost.answer);
  w.eyes[2]("DEL", "m");
  w.until([&] { return lost.succeeded(); }, 2s);
  CHECK_FALSE(held.held());
  w.until([&] { return w.where("m").empty(); });
}

TEST_CASE("a red_lock is renewed while a minority is gone, and lost at its validity's end without a majority") {
  red_world w;
  auto redis = w.founded([](config& c) { c.ttl = 600ms; });
  auto held = w.run(redis.red_lock("m").lock());
  for (const std::size_t n : {0, 1}) w.node(n).stop();
  w.pass(1500ms);
  CHECK(held.held());
  w.node(2).stop();
  const auto began = std::chrono::steady_clock::now();
  w.until([&] { return !held.held(); }, 2s);
  CHECK(std::chrono::steady_clock::now() - began <= 700ms);
  CHECK(w.code_of(held.unlock()) == errc::lost);
  for (const std::size_t n : {0, 1, 2}) w.node(n).cont();
}

TEST_CASE("what was granted to a failed attempt is given back everywhere, also later where nobody answered") {
  red_world w;
  auto redis = w.founded();
  for (const std::size_t n : {2, 3, 4}) w.node(n).stop();
  CHECK(w.code_of(redis.red_lock("m").try_lock({.ttl = 5s})) == errc::quorum_failed);
  for (const std::size_t n : {2, 3, 4}) w.node(n).cont();
  w.until([&] { return w.where("m").empty(); });
  CHECK(w.run(w.make().red_lock("m").lock()).held());
}
