// SPDX-License-Identifier: BSL-1.0
// No server, a server that does not answer, and a link that comes and goes: who waits, who is told what, and what
// happens afterwards.
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "integration/world.hpp"
#include "support/net.hpp"
#include "support/proxy.hpp"
#include "support/server_version.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace asio::experimental::awaitable_operators;
using action = proxy::rule::action;
using direction = proxy::direction;
using kind = event_kind;
using std::chrono::steady_clock;

namespace {

constexpr auto load = 10s;  // what a busy machine may add to an upper bound

/// A server behind a proxy.
struct far_world : world {
  template <class Change>
  client make_far(Change change) {
    return make([&](config& c) {
      c.url = net.url();
      change(c);
    });
  }
  client make_far() {
    return make_far([](config&) {});
  }
  void cut_off() {
    net.refuse();
    net.cut();
  }

  proxy net{server};
};

template <class F>
std::chrono::nanoseconds time_of(F f) {
  const auto begun = steady_clock::now();
  f();
  return steady_clock::now() - begun;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }
bool happened(const world& w, kind what, std::size_t times = 1) { return w.heard->count(what) >= times; }

}  // namespace

TEST_CASE("lock waits through an outage and gets the lock after it") {
  far_world w;
  auto redis = w.make_far();
  w.run(redis.mutex("m").is_locked());  // a connection that was up, and then
  w.cut_off();
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return happened(w, kind::outage); });
  w.pass(300ms);
  CHECK_FALSE(got.answer);
  w.net.heal();
  w.until([&] { return got.succeeded(); }, 1s + load);
  CHECK(got.answer->value().held());
  CHECK(w.eye("HVALS", "m").strings() == std::vector<std::string>{"1"});
  for (const auto& e : w.heard->all())
    if (e.what == kind::outage) CHECK(e.reason == errc::unreachable);
}

TEST_CASE("lock waits for a server that starts later") {
  world w;
  auto redis = w.make();
  w.server.kill();
  started<lease> got(w, redis.mutex("m").lock());
  w.until([&] { return happened(w, kind::outage); });
  CHECK_FALSE(got.answer);
  w.server.restart();
  w.until([&] { return got.succeeded(); }, 5s + load);  // as long as the pause between attempts may have become
}

TEST_CASE("without a server bounded calls are unreachable at their deadline and say why") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 1s, c.command_timeout = 80ms, c.connect_timeout = 200ms; });
  auto mutex = redis.mutex("m");
  w.server.kill();
  error_code code;
  const auto check = [&](auto op, std::chrono::milliseconds least, std::chrono::milliseconds most) {
    const auto took = time_of([&] { code = w.code_of(op()); });
    CHECK(code == errc::unreachable);
    CHECK(took >= least);
    CHECK(took < most + load);
  };
  check([&] { return mutex.try_lock(); }, 80ms, 80ms);
  check([&] { return mutex.try_lock_for(0ms); }, 80ms, 80ms);
  check([&] { return mutex.try_lock_for(250ms); }, 250ms, 250ms);
  check([&] { return mutex.is_locked(); }, 80ms, 80ms);
  check([&] { return mutex.holder(); }, 80ms, 80ms);
  check([&] { return mutex.remaining_ttl(); }, 80ms, 80ms);
  check([&] { return mutex.force_unlock(); }, 80ms, 80ms);
  check([&] { return redis.connect(); }, 0ms, 280ms);
  const auto text = text_of_failure([&] { w.run(mutex.try_lock()); });
  CAPTURE(text);
  CHECK(contains(text, "lock 'm'"));
  CHECK(contains(text, w.server.socket_path()));
  CHECK((contains(text, "No such file") || contains(text, "Connection refused")));
  drain(
      w.io,
      1s + load);  // what may have been asked for is given back until its TTL is over, and then nobody needs the server
}

TEST_CASE("a wait that is shorter than the time of a command says why there is no server") {
  world w;
  const auto check = [&](const std::string& url, const std::string& cause, const std::string& on_its_way) {
    auto redis = w.make([&](config& c) { c.url = url; });
    std::string text;
    w.until([&] {
      text = text_of_failure([&] { w.run(redis.mutex("m").try_lock_for(50ms)); });
      return contains(text, cause) || contains(text, on_its_way);
    });
    INFO(text);
    CHECK(contains(text, "no answer from Redis: lock 'm': " + url));
  };
  const auto nobody = "redis://127.0.0.1:" + std::to_string(free_loopback_port());
  check(nobody, "Connection refused", "Connection refused");
  check("redis://no-such-host.invalid:6379", "the name does not resolve", "resolving the name");
}

TEST_CASE("a server that accepts and never answers costs the deadline and no lock") {
  world w;
  auto redis = w.make([](config& c) { c.command_timeout = 80ms, c.connect_timeout = 200ms; });
  auto mutex = redis.mutex("m");
  w.server.stop();
  CHECK(w.code_of(mutex.try_lock()) == errc::unreachable);
  const auto took = time_of([&] { CHECK(w.code_of(mutex.try_lock_for(150ms)) == errc::unreachable); });
  CHECK(took >= 150ms);
  CHECK(took < 150ms + load);
  const auto connecting = time_of([&] { CHECK(w.code_of(redis.connect()) == errc::unreachable); });
  CHECK(connecting < 280ms + load);
  started<lease> got(w, mutex.lock());
  w.pass(100ms);
  CHECK_FALSE(got.answer);
  w.server.cont();
  w.until([&] { return got.succeeded(); }, 5s + load);
  got.answer.reset();
  drain(w.io);
  CHECK(w.keys().empty());
}

TEST_CASE("a renewal in an outage is unreachable and the lease is still held") {
  far_world w;
  auto redis = w.make_far([](config& c) { c.ttl = 10s, c.command_timeout = 60ms; });
  auto held = w.run(redis.mutex("m").lock());
  SECTION("cut off") { w.cut_off(); }
  SECTION("no answers") { w.net.hold(direction::to_client); }
  const auto took = time_of([&] { CHECK(w.code_of(held.renew()) == errc::unreachable); });
  CHECK(took >= 60ms);
  CHECK(took < 120ms + load);
  CHECK(held.held());
  w.until([&] { return held.state() == lease_state::suspended; });
  w.net.heal();
  w.until([&] { return held.state() == lease_state::held; }, 5s + load);
  w.run(held.renew());
  CHECK(w.heard->count(kind::lost) == 0);
}

TEST_CASE("an unlock in an outage is unconfirmed and is done in the background after it") {
  far_world w;
  auto redis = w.make_far([](config& c) { c.command_timeout = 60ms; });  // and a ttl of 30 s
  auto held = w.run(redis.mutex("m").lock());
  SECTION("cut off") { w.cut_off(); }
  SECTION("no answers") { w.net.hold(direction::to_client); }
  SECTION("nothing arrives") { w.net.hold(direction::to_server); }
  SECTION("all swallowed") {
    w.net.swallow(direction::to_server);
    w.net.swallow(direction::to_client);
  }
  const auto took = time_of([&] { CHECK(w.code_of(held.unlock()) == errc::unconfirmed); });
  CHECK(took >= 60ms);
  CHECK(took < 60ms + load);
  CHECK_FALSE(held.held());
  CHECK(held.state() == lease_state::released);
  CHECK(w.code_of(held.unlock()) == errc::not_held);
  w.net.heal();
  w.until([&] { return happened(w, kind::released_late); }, 5s + load);
  CHECK(w.keys().empty());
  drain(w.io);
  CHECK(w.heard->count(kind::lost) == 0);
}

TEST_CASE("in an outage the unlocks of a request with nested locks take one command timeout together") {
  far_world w;
  auto redis = w.make_far([](config& c) { c.command_timeout = 1s; });
  const bool one_name = GENERATE(true, false);
  CAPTURE(one_name);
  const owner request;
  std::vector<lease> nested;
  const std::size_t depth = 20;
  for (std::size_t i = 0; i < depth; ++i)
    nested.push_back(w.run(redis.mutex(one_name ? "m" : "m" + std::to_string(i), request).lock()));
  SECTION("cut off") { w.cut_off(); }
  SECTION("no answers") { w.net.hold(direction::to_client); }
  std::vector<error_code> codes;
  const auto took = time_of([&] {
    for (auto l = nested.rbegin(); l != nested.rend(); ++l) codes.push_back(w.code_of(l->unlock()));
  });
  CHECK(took >= 1s);
  CHECK(took < 1s + load);
  for (std::size_t i = 0; i < depth; ++i)
    CHECK((one_name && i + 1 < depth ? !codes[i] : codes[i] == errc::unconfirmed));
  w.net.heal();
  w.until([&] { return w.keys().empty(); }, 10s + load);
  CHECK(w.heard->count(kind::lost) == 0);
  auto later = w.run(redis.mutex("m").lock());
  w.run(later.unlock());
  drain(w.io, 5s);
}

TEST_CASE("a re-entry in an outage ends with its hold, and the deadline of its request ends it before") {
  far_world w;
  auto redis = w.make_far([](config& c) { c.ttl = 1s; });
  const owner request;
  const auto m = redis.mutex("m", request);
  auto held = w.run(m.lock());
  w.cut_off();
  w.until([&] { return held.state() == lease_state::suspended; });
  auto with_deadline = [](holdfast::mutex of) -> asio::awaitable<bool> {
    asio::steady_timer deadline(co_await asio::this_coro::executor, 50ms);
    co_return (co_await (of.lock() || deadline.async_wait(asio::use_awaitable))).index() == 1;
  };
  CHECK(w.run(with_deadline(m)));
  CHECK(w.code_of(m.try_lock_for(50ms)) == errc::unreachable);
  CHECK(held.held());
  CHECK(w.code_of(m.lock()) == errc::lost);
  CHECK_FALSE(held.held());
  w.net.heal();
  drain(w.io, 5s);
}

TEST_CASE("a lease that is dropped in an outage is released after it") {
  far_world w;
  auto redis = w.make_far([](config& c) { c.command_timeout = 60ms; });
  auto held = w.run(redis.mutex("m").lock());
  w.cut_off();
  held = lease();
  w.pass(150ms);
  CHECK(w.keys().size() == 1);
  w.net.heal();
  w.until([&] { return w.keys().empty(); }, 5s + load);
  drain(w.io);
  CHECK(happened(w, kind::released_late));
}

TEST_CASE("a flapping link is not hammered and costs no lock") {
  far_world w;
  auto a = w.make_far([](config& c) { c.ttl = 6s; }), b = w.make_far([](config& c) { c.ttl = 6s; });
  auto held = w.run(a.mutex("m").lock());
  started<lease> got(w, b.mutex("m").lock());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").array()[1] == 1; });
  const auto before = w.net.count().connections;
  const auto begun = steady_clock::now();
  do {
    w.net.at_reply({.what = action::cut_before, .times = proxy::always});  // accepted, and lost at the first answer
    w.net.cut();
    w.pass(100ms);
    w.net.heal();
    w.pass(100ms);
  } while (steady_clock::now() - begun < 3s);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(steady_clock::now() - begun).count();
  const auto attempts = w.net.count().connections - before;
  CHECK(attempts >= 10);
  CHECK(attempts <=
        static_cast<std::size_t>(seconds) * 10 * 3);  // three connections: one of the holder, two of the waiter
  CHECK(held.held());
  CHECK(w.heard->count(kind::lost) == 0);
  w.until([&] { return held.state() == lease_state::held; }, 2s + load);
  CHECK_FALSE(got.answer);
  w.run(held.unlock());
  w.until([&] { return got.succeeded(); }, 2s + load);
}

TEST_CASE("renewals go on while the server refuses new locks") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 600ms; });
  auto held = w.run(redis.mutex("m").lock());
  const auto full = std::string("1");
  w.eye("CONFIG", "SET", "maxmemory", full);
  CHECK(w.code_of(redis.mutex("n").try_lock()) == errc::server_refused);
  started<lease> got(w, redis.mutex("n").lock());
  started<std::optional<lease>> bounded(w, redis.mutex("o").try_lock_for(150ms));
  w.until([&] { return bounded.answer.has_value(); });
  CHECK(bounded.answer->error() == errc::server_refused);
  w.pass(800ms);
  CHECK(held.held());
  CHECK_FALSE(got.answer);
  w.run(held.unlock());
  CHECK(w.keys().empty());
  w.eye("CONFIG", "SET", "maxmemory", "0");
  w.until([&] { return got.succeeded(); }, 1s + load);
}

TEST_CASE("a server that may not write without replicas is an outage for holders as well") {
  need_redis_7("min-replicas-to-write refuses scripts");
  world w;
  auto redis = w.make([](config& c) { c.ttl = 900ms; });
  auto held = w.run(redis.mutex("m").lock());
  w.eye("CONFIG", "SET", "min-replicas-to-write", "1");
  CHECK(w.code_of(redis.mutex("n").try_lock()) == errc::server_refused);
  CHECK(w.code_of(held.renew(5s)) == errc::server_refused);  // more than it has: needs a write
  CHECK(held.held());
  w.until([&] { return held.state() == lease_state::suspended; });
  w.eye("CONFIG", "SET", "min-replicas-to-write", "0");
  w.until([&] { return held.state() == lease_state::held; }, load);
  CHECK(w.heard->count(kind::lost) == 0);
  w.eye("CONFIG", "SET", "min-replicas-to-write", "1");
  w.until([&] { return w.heard->count(kind::lost) == 1; });
  CHECK_FALSE(held.held());
}

TEST_CASE("a server that is busy with a script refuses and lock waits for its end") {
  need_redis_7("busy-reply-threshold");
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock());
  w.eye("CONFIG", "SET", "busy-reply-threshold", "10");
  raw_client hog(w.server);
  hog.send({"EVAL", "while true do end", "0"});
  w.until([&] { return w.eye.call({"PING"}).to_string().starts_with("BUSY"); });
  CHECK(w.code_of(redis.mutex("n").try_lock()) == errc::server_refused);
  CHECK(w.code_of(held.renew()) == errc::server_refused);
  CHECK(held.held());
  started<lease> got(w, redis.mutex("n").lock());
  started<void> unlocking(w, held.unlock());
  w.pass(50ms);
  CHECK_FALSE(got.answer);
  w.eye("SCRIPT", "KILL");
  w.until([&] { return got.succeeded() && unlocking.answer; }, 1s + load);
  w.until([&] { return w.keys() == std::vector<std::string>{"n"}; }, 1s + load);
}

TEST_CASE("a waiter that hears every answer too late locks nobody out") {
  far_world w;
  auto far = w.make_far([](config& c) { c.connect_timeout = 10s; }), near = w.make();
  const auto m = far.mutex("m");
  bool hopeful = true;
  const auto again_and_again = [&](auto verb) -> asio::awaitable<void> {
    while (hopeful) {
      try {
        co_await verb();
      } catch (const holdfast::error&) {
      }
    }
  };
  w.run(far.connect());
  // The command timeout is 500 ms. An answer that is hardly late is in time where our process stood still meanwhile.
  w.net.delay(direction::to_client, 1500ms);
  std::optional<started<lease>> hopeless;
  std::optional<started<void>> insistent;
  SECTION("lock()") { hopeless.emplace(w, m.lock()); }
  SECTION("try_lock_for() in a loop") {
    insistent.emplace(w, again_and_again([&] { return m.try_lock_for(1s); }));
  }
  SECTION("try_lock() in a loop") {
    insistent.emplace(w, again_and_again([&] { return m.try_lock(); }));
  }
  w.until([&] { return w.keys().size() == 1; });
  started<std::optional<lease>> healthy(w, near.mutex("m").try_lock_for(20s));
  w.until([&] { return healthy.answer.has_value(); }, 20s + load);
  REQUIRE(healthy.succeeded());
  CHECK(healthy.answer->value().has_value());
  hopeful = false;
  w.net.heal();
  if (insistent) w.until([&] { return insistent->answer.has_value(); }, 5s + load);
}

TEST_CASE("a cut of the pub/sub link makes more waiters try at once than commands may wait, and none is refused") {
  world w;
  auto redis = w.make([](config& c) { c.pending_commands = 2; });
  std::vector<std::unique_ptr<started<lease>>> waiting;
  const std::size_t all = 20;
  for (std::size_t i = 0; i < all; ++i) {
    const auto name = "m" + std::to_string(i);
    w.eye("HSET", name, "stranger:1", 1);
    w.eye("PEXPIRE", name, 60'000);
    waiting.push_back(std::make_unique<started<lease>>(w, redis.mutex(name).lock()));
  }
  const auto subscribed = [&] { return w.eye("PUBSUB", "CHANNELS", of_locks).array().size() == all; };
  w.until(subscribed);
  for (int cuts = 0; cuts < 3; ++cuts) {
    w.eye("CLIENT", "KILL", "TYPE", "pubsub");
    w.until([&] { return !subscribed(); });
    w.until(subscribed);
  }
  for (const auto& one : waiting) CHECK_FALSE(one->answer);
  w.eye("FLUSHALL");
  w.eye("CLIENT", "KILL", "TYPE", "pubsub");  // and all of them may have it
  for (const auto& one : waiting) w.until([&] { return one->succeeded(); }, 5s + load);
}
