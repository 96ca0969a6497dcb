// SPDX-License-Identifier: BSL-1.0
// How a hold ends without its holder's wish: who is told, when, and what is left in Redis.
#include <thread>

#include "integration/world.hpp"
#include "support/proxy.hpp"
#include "support/server_version.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

using std::chrono::steady_clock;
using texts = std::vector<std::string>;

constexpr auto load = 10s;  // what a busy machine may add to an upper bound

/// Awaits lost(), and looks at the end of the validity meanwhile.
struct watched {
  watched(world& where, lease& held) : w(where), of(held) {
    auto heard = [this](std::exception_ptr failed, error_code why) {
      when = steady_clock::now();
      reason = failed ? make_error_code(errc::not_held) : why;
      ++times;
    };
    asio::co_spawn(w.io, held.lost(), heard);
  }
  void wait() {
    w.until([this] {
      const auto now = steady_clock::now();
      if (const auto left = of.valid_for(); left > 0ms) valid_until = std::max(valid_until, now + left);
      return times > 0;
    });
  }
  void check_told_when_the_validity_ended() const {
    CHECK(reason == errc::lost);
    CHECK(when >= valid_until);
    CHECK(when < valid_until + 50ms + load);
    CHECK_FALSE(of.held());
  }

  world& w;
  lease& of;
  error_code reason;
  int times = 0;
  steady_clock::time_point when{}, valid_until{};  // the latter rounded down
};

/// What the observer heard of holds, in order.
std::vector<kind> life_of_holds(const world& w) {
  std::vector<kind> life;
  for (const auto& e : w.heard->all())
    if (e.what == kind::suspended || e.what == kind::restored || e.what == kind::lost) life.push_back(e.what);
  return life;
}

/// By a clock that the server shares.
std::chrono::milliseconds wall_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
}

long long scripts_run(world& w) {
  const auto statistics = w.eye("INFO", "commandstats").to_string();
  const std::string entry = "cmdstat_evalsha:calls=";
  return std::stoll(statistics.substr(statistics.find(entry) + entry.size()));
}

}  // namespace

TEST_CASE("with_lock says how the loss is known") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 150ms; });
  auto body = [&](lease&) -> asio::awaitable<void> {
    w.eye("DEL", "m");
    asio::steady_timer never(w.io, 1h);
    co_await never.async_wait(asio::use_awaitable);
  };
  CHECK(text_of_failure([&] { w.run(with_lock(redis.mutex("m"), body)); }) ==
        "the lock was lost: lock 'm': lost while its section ran: Redis answered that its key is gone or another's");
}

TEST_CASE("a deleted key is told by the next renewal and not created again") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 1500ms; });
  auto held = w.run(redis.mutex("m").lock());
  auto other = w.run(redis.mutex("other").lock());
  watched end(w, held);
  w.eye("DEL", "m");
  end.wait();
  CHECK(end.reason == errc::lost);
  CHECK(end.when < end.valid_until);  // long before: a renewal found out, no clock
  CHECK_FALSE(held.held());
  CHECK(held.state() == lease_state::lost);
  CHECK(held.valid_for() == 0ms);
  CHECK(life_of_holds(w) == std::vector{kind::lost});
  CHECK(w.code_of(held.unlock()) == errc::lost);
  CHECK(w.code_of(held.unlock()) == errc::not_held);
  CHECK(w.keys() == texts{"other"});
  CHECK(other.held());
}

TEST_CASE("a key that a stranger has taken is lost and stays as the stranger left it") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 600ms; });
  auto held = w.run(redis.mutex("m").lock());
  watched end(w, held);
  w.eye("DEL", "m");
  w.eye("HSET", "m", "stranger:1", 3);
  w.eye("PEXPIRE", "m", 60'000);
  end.wait();
  CHECK(end.reason == errc::lost);
  CHECK(w.code_of(held.renew()) == errc::lost);
  CHECK(w.code_of(held.unlock()) == errc::lost);
  drain(w.io);
  CHECK(w.eye("HGETALL", "m").strings() == texts{"stranger:1", "3"});
  CHECK(w.eye("PTTL", "m").integer() > 40'000);
}

TEST_CASE("a key that has become something else is lost and stays as it is") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 600ms; });
  auto held = w.run(redis.mutex("m").lock());
  watched end(w, held);
  w.eye("SET", "m", "something else");
  end.wait();
  CHECK(end.reason == errc::lost);
  CHECK(w.code_of(held.unlock()) == errc::lost);
  drain(w.io);
  CHECK(w.eye("GET", "m") == "something else");
}

TEST_CASE("a key that has lost its ttl gets it back by the next renewal") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 900ms; });
  auto held = w.run(redis.mutex("m").lock());
  w.eye("PERSIST", "m");
  w.until([&] { return w.eye("PTTL", "m").integer() > 0; });
  CHECK(held.held());
  CHECK(life_of_holds(w).empty());
}

TEST_CASE("a server that stops answering ends the hold when its validity ends and before the key could end") {
  need_redis_7("PEXPIRETIME");
  world w;
  auto redis = w.make([](config& c) { c.ttl = 600ms; });
  auto held = w.run(redis.mutex("m").lock());
  watched end(w, held);
  const std::chrono::milliseconds key_ends(w.eye("PEXPIRETIME", "m").integer());
  w.server.stop();
  CHECK(wall_now() + held.valid_for() < key_ends);
  end.wait();
  end.check_told_when_the_validity_ended();
  CHECK(life_of_holds(w) == std::vector{kind::suspended, kind::lost});
  w.server.cont();
  drain(w.io);  // the renewals that it reads only now, and the release that follows them
  CHECK(w.keys().empty());
  CHECK(life_of_holds(w) == std::vector{kind::suspended, kind::lost});
  CHECK_FALSE(held.held());
}

TEST_CASE("a lost connection suspends the hold and the end of its validity ends it before the key could end") {
  need_redis_7("PEXPIRETIME");
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(), c.ttl = 600ms; });
  auto held = w.run(redis.mutex("m").lock());
  watched end(w, held);
  net.refuse();
  net.cut();
  const std::chrono::milliseconds key_ends(w.eye("PEXPIRETIME", "m").integer());
  CHECK(wall_now() + held.valid_for() < key_ends);
  w.until([&] { return held.state() == lease_state::suspended; });
  CHECK(held.held());
  end.wait();
  end.check_told_when_the_validity_ended();
  CHECK(life_of_holds(w) == std::vector{kind::suspended, kind::lost});
  net.heal();
  drain(w.io);
  CHECK(w.keys().empty());
}

TEST_CASE("a connection that is back before the validity ends restores the hold") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(), c.ttl = 5s; });
  auto held = w.run(redis.mutex("m").lock());
  watched end(w, held);
  const auto valid_until = steady_clock::now() + held.valid_for();
  net.refuse();
  net.cut();
  w.until([&] { return held.state() == lease_state::suspended; });
  net.heal();
  w.until([&] { return held.state() == lease_state::held; });
  CHECK(steady_clock::now() + held.valid_for() > valid_until);  // confirmed, and with it raised
  CHECK(life_of_holds(w) == std::vector{kind::suspended, kind::restored});
  CHECK(end.times == 0);
  w.run(held.unlock());
  w.until([&] { return end.times == 1; });
  CHECK(end.reason == errc::not_held);
  CHECK(w.keys().empty());
}

TEST_CASE("a lease with a ttl of its own is told when its validity ends") {
  need_redis_7("PEXPIRETIME");
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock({.ttl = 150ms}));
  const std::chrono::milliseconds key_ends(w.eye("PEXPIRETIME", "m").integer());
  CHECK(wall_now() + held.valid_for() < key_ends);
  watched end(w, held);
  end.wait();
  end.check_told_when_the_validity_ended();
  CHECK(life_of_holds(w) == std::vector{kind::lost});
  drain(w.io);
  CHECK(w.keys().empty());
}

TEST_CASE("everyone who waits for a loss is told once and late-comers at once") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock({.ttl = 60ms}));
  watched first(w, held), second(w, held);
  first.wait();
  second.wait();
  CHECK(w.run(held.lost()) == errc::lost);
  w.pass(30ms);
  CHECK(first.times == 1);
  CHECK(second.times == 1);
  CHECK(w.heard->count(kind::lost) == 1);
}

TEST_CASE("both leases of a hold are told of its loss") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 600ms; });
  const owner me;
  auto outer = w.run(redis.mutex("m", me).lock());
  auto inner = w.run(redis.mutex("m", me).lock());
  watched one(w, outer), two(w, inner);
  w.eye("DEL", "m");
  one.wait();
  two.wait();
  CHECK(one.reason == errc::lost);
  CHECK(two.reason == errc::lost);
  CHECK_FALSE(outer.held());
  CHECK_FALSE(inner.held());
  CHECK(w.heard->count(kind::lost) == 1);  // one hold
  CHECK(w.code_of(inner.unlock()) == errc::lost);
  CHECK(w.code_of(outer.unlock()) == errc::lost);
  CHECK(w.keys().empty());
}

TEST_CASE("held is false from the end of the validity on while the executor is blocked and for ever after") {
  const bool renewed = GENERATE(false, true);
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock({.ttl = 200ms, .renew = renewed}));
  steady_clock::time_point valid_until{}, ended{};
  std::size_t told = 0;
  auto watch = [&] {
    valid_until = steady_clock::now() + held.valid_for();
    while (held.held() && steady_clock::now() < valid_until + 10s) std::this_thread::sleep_for(1ms);
    ended = steady_clock::now();
  };
  auto block = [&] {
    std::thread(watch).join();
    told = w.heard->count(kind::lost);
  };
  asio::post(w.io, block);
  w.until([&] { return ended != steady_clock::time_point{}; });
  CHECK(told == 0);
  CHECK(ended >= valid_until);
  CHECK(ended < valid_until + load);
  CHECK(held.state() == lease_state::lost);
  w.until([&] { return w.heard->count(kind::lost) == 1; });
  drain(w.io);  // a renewal that was due meanwhile does not bring it back
  CHECK_FALSE(held.held());
  CHECK(w.heard->count(kind::restored) == 0);
  CHECK(w.keys().empty());
}

TEST_CASE("what a server reads after its sender gave up leaves no key behind") {
  const bool stopped = GENERATE(true, false);
  world w;
  auto redis = w.make([](config& c) { c.command_timeout = 60ms; });  // and a ttl of 30 s
  w.run(redis.mutex("m").is_locked());                               // the connection is up
  if (stopped)
    w.server.stop();
  else
    w.eye("CLIENT", "PAUSE", 60'000, "WRITE");
  CHECK(w.code_of(redis.mutex("m").try_lock()) == errc::unreachable);
  // A server that is paused takes a new connection; on a busy machine the write is less than a command timeout ago
  // then.
  const auto bounded = w.code_of(redis.mutex("n").try_lock_for(100ms));
  CHECK((bounded == errc::unreachable || (!stopped && !bounded)));
  if (stopped)
    w.server.cont();
  else
    w.eye("CLIENT", "UNPAUSE");
  // What waited for a connection was never written, and needs no release.
  w.until([&] { return w.heard->count(kind::released_late) >= 1; }, 60ms + 1s + load);
  CHECK(w.heard->count(kind::release_failed) == 0);
  CHECK(w.heard->count(kind::release_given_up) == 0);
  drain(w.io);
  CHECK(w.keys().empty());
}

TEST_CASE("what arrives after another has the lock leaves the other's hold as it is") {
  const bool acquire = GENERATE(true, false);
  world w;
  proxy net(w.server);
  auto late = w.make([&](config& c) { c.url = net.url(), c.command_timeout = 60ms; }), redis = w.make();
  const owner other;
  w.run(w.run(late.mutex("m").lock()).unlock());  // connected, scripts known
  auto before = acquire ? lease() : w.run(late.mutex("m").lock());
  net.hold(proxy::direction::to_server);
  if (acquire)
    CHECK(w.code_of(late.mutex("m").try_lock()) == errc::unreachable);
  else
    CHECK(w.code_of(before.unlock()) == errc::unconfirmed);
  w.eye("DEL", "m");  // what time would do
  auto outer = w.run(redis.mutex("m", other).lock()), inner = w.run(redis.mutex("m", other).lock());
  w.until([&] { return w.eye("HVALS", "m").strings() == texts{"2"}; });
  const auto others = w.eye("HGETALL", "m").strings();
  const auto ran = scripts_run(w);
  net.release();
  w.until([&] { return scripts_run(w) >= ran + 2 && w.heard->count(kind::released_late) == 1; }, 60ms + 1s + load);
  CHECK(w.eye("HGETALL", "m").strings() == others);
  CHECK(outer.held());
  CHECK(w.heard->count(kind::lost) == 0);
  w.run(inner.unlock());
  w.run(outer.unlock());
  CHECK(w.keys().empty());
}
