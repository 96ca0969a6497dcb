// SPDX-License-Identifier: BSL-1.0
// The end of a client, in good order and in the midst of everything: everyone is answered, what can be released is.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "integration/world.hpp"
#include "support/proxy.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;
using std::chrono::steady_clock;

namespace {

constexpr auto load = 10s;  // what a busy machine may add to an upper bound

/// An operation under way and the code of its answer.
class operation {
  using answer = std::optional<error_code>;

 public:
  template <class T>
  operation(asio::io_context& io, std::string what, asio::awaitable<T> op)
      : name(std::move(what)), code_(std::make_shared<answer>()) {
    auto ended = [to = code_](std::exception_ptr failed, auto&&...) { *to = code_of(failed); };
    asio::co_spawn(io, std::move(op), ended);
  }
  const answer& code() const { return *code_; }
  bool answered() const { return code_->has_value(); }
  const std::string name;

 private:
  static error_code code_of(const std::exception_ptr& failed) {
    try {
      if (failed) std::rethrow_exception(failed);
    } catch (const boost::system::system_error& e) {
      return e.code();
    }
    return {};
  }
  std::shared_ptr<answer> code_;
};

/// One operation of every kind on a server that has stopped, and what they are about.
struct everything {
  /// `io` runs the client, and is driven by the caller.
  everything(world& w, asio::io_context& io, client& redis) : on(io) {
    const owner me;
    renewed = run(io, redis.mutex("renewed", me).lock());
    unlocked = run(io, redis.mutex("unlocked").lock());
    dropped = run(io, redis.mutex("dropped").lock());
    w.eye("HSET", "busy", "stranger:1", 1);
    w.eye("PEXPIRE", "busy", 60'000);
    start("waiting lock", redis.mutex("busy").lock());
    start("second waiting lock", redis.mutex("busy").lock());
    start("waiting try_lock_for", redis.mutex("busy").try_lock_for(1h));
    w.until([&] {
      if (&io != &w.io) io.poll(), io.restart();
      return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{busy}").array()[1] == 1;
    });
    w.server.stop();
    start("lock", redis.mutex("free").lock());
    start("try_lock", redis.mutex("free2").try_lock());
    start("try_lock_for", redis.mutex("free3").try_lock_for(1h));
    start("re-entry", redis.mutex("renewed", me).lock({.ttl = 1h}));
    start("is_locked", redis.mutex("m").is_locked());
    start("hold_count", redis.mutex("renewed").hold_count(me));
    start("held_by", redis.mutex("renewed").held_by(me));
    start("remaining_ttl", redis.mutex("m").remaining_ttl());
    start("force_unlock", redis.mutex("m").force_unlock());
    start("renew", renewed.renew());
    start("unlock", unlocked.unlock());
    start("lost", renewed.lost());
    start("connect", redis.connect());
    auto body = [](lease&) -> asio::awaitable<void> { co_return; };
    start("with_lock", with_lock(redis.mutex("free4"), body));
    dropped = lease();
    io.restart();
    io.run_for(50ms);
  }
  template <class T>
  void start(const char* name, asio::awaitable<T> op) {
    all.emplace_back(on, name, std::move(op));
  }
  bool answered() const {
    return std::all_of(all.begin(), all.end(), [](const auto& o) { return o.answered(); });
  }

  asio::io_context& on;
  lease renewed, unlocked, dropped;
  std::vector<operation> all;
};

template <class F>
std::chrono::nanoseconds time_of(F f) {
  const auto begun = steady_clock::now();
  f();
  return steady_clock::now() - begun;
}

void check_everything_is_closed(world& w, client& redis, const holdfast::mutex& m, lease& held) {
  CHECK_FALSE(held.held());
  CHECK(held.valid_for() == 0ms);
  CHECK(held.state() == lease_state::lost);
  for (const auto code : {w.code_of(m.lock()), w.code_of(m.try_lock()), w.code_of(m.try_lock_for(1h)),
                          w.code_of(m.force_unlock()), w.code_of(m.is_locked()), w.code_of(m.hold_count(owner{})),
                          w.code_of(m.held_by(held.owner())), w.code_of(m.holder()), w.code_of(m.remaining_ttl())}) {
    CHECK(code == errc::shutting_down);
    CHECK(code == condition::retry_later);
    CHECK(code != condition::no_longer_held);
  }
  const bool moved_from = !redis.get_executor();
  CHECK(w.code_of(redis.connect()) == (moved_from ? errc::closed : errc::shutting_down));
  CHECK(w.code_of(held.renew()) == errc::closed);
  CHECK(w.run(held.lost()) == errc::closed);
  CHECK(w.code_of(held.unlock()) == errc::closed);
  held.feed();
}

}  // namespace

TEST_CASE("shutdown releases all leases in one go and waits for that") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(); });
  std::vector<lease> held;
  for (int i = 0; i < 50; ++i) held.push_back(w.run(redis.mutex("m" + std::to_string(i)).lock()));
  net.delay(proxy::direction::to_client, 50ms);
  const auto took = time_of([&] { w.run(redis.shutdown(10s)); });
  CHECK(took >= 50ms);
  CHECK(took < 50 * 50ms);
  CHECK(w.keys().empty());
  CHECK(w.heard->count(kind::closed) == 50);
  CHECK(w.heard->count(kind::lost) == 0);
  CHECK(w.heard->count(kind::released_late) == 50);
  check_everything_is_closed(w, redis, redis.mutex("m"), held[7]);
  drain(w.io, 5s);
  CHECK(net.wait_until([](const auto& n) { return n.open == 0; }));
}

TEST_CASE("shutdown fails waiters and may be called twice and at once") {
  world w;
  auto other = w.make(), redis = w.make();
  auto held = w.run(other.mutex("m").lock());
  std::vector<operation> waiting;
  for (int i = 0; i < 3; ++i) waiting.emplace_back(w.io, "lock", redis.mutex("m").lock());
  waiting.emplace_back(w.io, "try_lock_for", redis.mutex("m").try_lock_for(1h));
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{m}").array()[1] == 1; });
  const operation first(w.io, "shutdown", redis.shutdown(5s)), second(w.io, "shutdown", redis.shutdown(5s));
  w.until([&] { return first.answered() && second.answered(); });
  CHECK_FALSE(*first.code());
  CHECK_FALSE(*second.code());
  for (const auto& o : waiting) CHECK(o.code() == errc::shutting_down);
  w.run(redis.shutdown(0ms));
  w.until([&] { return w.eye("PUBSUB", "CHANNELS", of_locks).array().empty(); });
  CHECK(held.held());  // of another client
}

TEST_CASE("a shutdown with a shorter grace ends the one before it") {
  world w;
  std::optional redis(w.make());
  auto held = w.run(redis->mutex("m").lock());
  w.server.stop();
  const operation patient(w.io, "shutdown", redis->shutdown(1h));
  w.pass(20ms);
  CHECK_FALSE(patient.answered());
  SECTION("shutdown") {
    CHECK(time_of([&] { w.run(redis->shutdown(0ms)); }) < load);
  }
  SECTION("the client's end") { redis.reset(); }
  w.until([&] { return patient.answered(); }, 500ms + load);
  CHECK_FALSE(*patient.code());
  drain(w.io, 5s);
}

TEST_CASE("a client that goes out of scope ends its leases at once and releases them in the background") {
  world w;
  std::optional redis(w.make());
  auto m = redis->mutex("m");
  auto held = w.run(m.lock()), moved = w.run(redis->mutex("n").lock());
  const operation waiting(w.io, "lock", m.lock()), told(w.io, "lost", held.lost());
  w.pass(20ms);
  SECTION("destroyed") { redis.reset(); }
  SECTION("replaced") { *redis = w.make(); }
  CHECK_FALSE(held.held());
  CHECK_FALSE(moved.held());
  w.until([&] { return waiting.answered() && told.answered(); });
  CHECK(waiting.code() == errc::shutting_down);
  CHECK_FALSE(*told.code());
  drain(w.io, 5s);
  CHECK(w.keys().empty());
  CHECK(w.heard->count(kind::closed) == 2);
}

TEST_CASE("a client may end with thousands of leases, a hung server and no room for commands") {
  world w;
  std::optional redis(w.make([](config& c) { c.pending_commands = 1; }));
  std::vector<lease> held;
  for (int i = 0; i < 2000; ++i) held.push_back(w.run(redis->mutex("m" + std::to_string(i)).lock()));
  w.server.stop();
  held.resize(held.size() / 2);
  w.pass(50ms);
  const operation renewing(w.io, "renew", held.front().renew()), unlocking(w.io, "unlock", held.back().unlock());
  redis.reset();
  for (const auto& l : held) CHECK_FALSE(l.held());
  w.until([&] { return renewing.answered() && unlocking.answered(); });
  w.server.cont();
  drain(w.io, 5s);
}

TEST_CASE("leases and mutexes may outlive their client and its context") {
  world w;
  lease held;
  std::optional<holdfast::mutex> m;
  {
    asio::io_context io;
    client redis(io.get_executor(), w.settings());
    m = redis.mutex("m");
    held = run(io, m->lock());
  }
  CHECK(held.name() == "m");
  CHECK(m->name() == "m");
  auto gone = w.make(), successor = std::move(gone);
  check_everything_is_closed(w, gone, *m, held);
  held = lease();
}

TEST_CASE("everything that is under way is answered when the client ends") {
  world w;
  std::optional redis(w.make([](config& c) { c.command_timeout = 1s; }));
  everything under_way(w, w.io, *redis);
  for (const auto& o : under_way.all) {
    INFO(o.name);
    CHECK_FALSE(o.answered());
  }
  const auto begun = steady_clock::now();
  bool at_once = false;
  SECTION("shutdown") {
    at_once = true;
    w.run(redis->shutdown(0ms));
    CHECK(steady_clock::now() - begun < load);
    w.until([&] { return under_way.answered(); }, load);
  }
  SECTION("destroyed") { redis.reset(); }
  SECTION("replaced") { *redis = w.make(); }
  w.until([&] { return under_way.answered(); }, 1s + load);
  for (const auto& o : under_way.all) {
    INFO(o.name << ": " << o.code()->message());
    if (o.name == "lost")
      CHECK_FALSE(*o.code());  // it returns what the others throw
    else if (o.name == "unlock")
      CHECK((o.code() == errc::closed || o.code() == errc::unconfirmed));
    else if (o.name == "renew")
      CHECK((o.code() == errc::closed || (!at_once && o.code() == errc::unreachable)));
    else if (at_once)
      CHECK(o.code() == errc::shutting_down);
    else  // its own command timeout may end before the client's, which is as long
      CHECK((o.code() == errc::shutting_down || o.code() == errc::unreachable));
  }
  redis.reset();
  drain(w.io, 5s);
  w.server.cont();
  w.until([&] { return w.eye("PING") == "PONG"; });
}

TEST_CASE("a context may be destroyed with everything under way") {
  world w;
  std::optional<asio::io_context> io(std::in_place);
  std::optional<client> redis(std::in_place, io->get_executor(), w.settings());
  auto under_way = std::make_unique<everything>(w, *io, *redis);
  SECTION("after the client") { redis.reset(); }
  SECTION("after the client and what it does at its end") {
    redis.reset();
    io->poll();
  }
  SECTION("after the leases") { under_way.reset(); }
  SECTION("with the client in one of its coroutines") {
    auto keeper = [](client) -> asio::awaitable<void> {
      asio::steady_timer never(co_await asio::this_coro::executor, 1h);
      co_await never.async_wait(asio::use_awaitable);
    };
    asio::co_spawn(*io, keeper(std::move(*redis)), asio::detached);
    io->poll();
  }
  redis.reset();
  io.reset();
  if (under_way) CHECK_FALSE(under_way->renewed.held());
  w.server.cont();
}

TEST_CASE("a shutdown without patience returns at once though the server has stopped") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock());
  w.server.stop();
  CHECK(time_of([&] { w.run(redis.shutdown(0ms)); }) < load);
  CHECK_FALSE(held.held());
  drain(w.io, 1s);
  CHECK(w.heard->count(kind::release_given_up) == 1);
  w.server.cont();
}

namespace {

/// Tasks with an owner of their own, some of which hold a lock when the client is drained.
struct drained : world {
  /// Holds "outer" until `may_go_on`, then takes and gives back nested locks.
  asio::awaitable<void> request(client& redis) {
    auto outer = co_await redis.mutex("outer").lock();
    begun = true;
    while (!may_go_on) co_await pause(5ms);
    auto again = co_await redis.mutex("outer").lock();
    auto other = co_await redis.mutex("other").try_lock_for(1h);
    ours_to_the_end = again.held() && other->held();
    co_await other->unlock();
    co_await again.unlock();
    co_await outer.unlock();
  }
  static asio::awaitable<void> pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::use_awaitable);
  }
  operation start_request(client& redis) {
    // A coroutine of the bound executor, so that owner::of(this_coro::executor) is its owner.
    auto spawned = [](asio::any_io_executor on, asio::awaitable<void> op) -> asio::awaitable<void> {
      co_await asio::co_spawn(on, std::move(op), asio::use_awaitable);
    };
    operation started(io, "request", spawned(owner().bind(io.get_executor()), request(redis)));
    until([&] { return begun; });
    return started;
  }
  bool begun = false, may_go_on = false, ours_to_the_end = false;
};

}  // namespace

TEST_CASE("a drain lets who holds finish with all nested locks, refuses the others and leaves no key") {
  drained w;
  auto redis = w.make();
  const auto request = w.start_request(redis);
  auto unbound = w.run(redis.mutex("unbound").lock());
  const operation waiting(w.io, "lock", redis.mutex("outer").lock());
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{outer}").array()[1] == 1; });
  const operation draining(w.io, "drain", redis.drain(1h));
  w.until([&] { return waiting.answered(); });
  CHECK(waiting.code() == errc::shutting_down);
  auto m = redis.mutex("m");
  for (const auto code :
       {w.code_of(m.lock()), w.code_of(m.try_lock()), w.code_of(m.try_lock_for(1h)), w.code_of_as(owner(), m.lock())})
    CHECK(code == errc::shutting_down);
  CHECK_FALSE(w.run(m.is_locked()));
  w.run(unbound.renew());
  w.run(unbound.unlock());
  CHECK_FALSE(draining.answered());
  w.may_go_on = true;
  w.until([&] { return request.answered() && draining.answered(); });
  CHECK_FALSE(*request.code());
  CHECK_FALSE(*draining.code());
  CHECK(w.ours_to_the_end);
  CHECK(w.keys().empty());
  CHECK(w.heard->count(kind::lost) == 0);
  CHECK(w.code_of(m.is_locked()) == errc::shutting_down);
  drain(w.io, 5s);
}

TEST_CASE("a drain ends what is still held when its grace is over, and waits for the releases") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(), c.command_timeout = 10s; });
  auto held = w.run(redis.mutex("m").lock());
  net.delay(proxy::direction::to_client, 100ms);
  w.run(redis.drain(1ms));  // its grace is not theirs
  CHECK_FALSE(held.held());
  CHECK(w.keys().empty());
  CHECK(w.heard->count(kind::released_late) == 1);
  check_everything_is_closed(w, redis, redis.mutex("m"), held);
  CHECK(w.code_of(redis.drain(1h)) == error_code());
  CHECK(w.code_of(redis.shutdown(1h)) == error_code());
  drain(w.io, 5s);
}

TEST_CASE("a drain of a client that holds nothing returns at once, and an impossible grace is refused") {
  world w;
  auto redis = w.make();
  CHECK(w.code_of(redis.drain(-1ms)) == errc::invalid_wait);
  CHECK(w.code_of(redis.drain(25h)) == errc::invalid_wait);
  w.run(redis.connect());
  CHECK(time_of([&] { w.run(redis.drain(1h)); }) < load);
  CHECK(w.code_of(redis.connect()) == errc::shutting_down);
  drain(w.io, 5s);
}

TEST_CASE("a drain that is cancelled goes on") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock());
  asio::cancellation_signal stop;
  std::optional<error_code> code;
  auto ended = [&](std::exception_ptr, result<void> r) { code = r.has_error() ? r.error() : error_code(); };
  asio::co_spawn(w.io, as_result(redis.drain(1h)), asio::bind_cancellation_slot(stop.slot(), ended));
  w.pass(20ms);
  stop.emit(asio::cancellation_type::terminal);
  w.until([&] { return code.has_value(); });
  CHECK(*code == asio::error::operation_aborted);
  CHECK(held.held());
  CHECK(w.code_of(redis.mutex("n").try_lock()) == errc::shutting_down);
  w.run(held.unlock());
  w.until([&] { return w.code_of(redis.connect()) == errc::shutting_down; });
  CHECK(w.keys().empty());
  drain(w.io, 5s);
}

TEST_CASE("what ends a client while it drains ends its leases at once and answers the drains") {
  world w;
  std::optional redis(w.make());
  auto held = w.run(redis->mutex("m").lock());
  std::vector<operation> draining;
  for (int i = 0; i < 2; ++i) draining.emplace_back(w.io, "drain", redis->drain(1h));
  w.pass(20ms);
  for (const auto& d : draining) CHECK_FALSE(d.answered());
  CHECK(held.held());
  SECTION("shutdown") { w.run(redis->shutdown(5s)); }
  SECTION("a drain with a shorter grace") { w.run(redis->drain(0ms)); }
  SECTION("the client's end") { redis.reset(); }
  CHECK_FALSE(held.held());
  w.until([&] { return draining[0].answered() && draining[1].answered(); });
  for (const auto& d : draining) CHECK_FALSE(*d.code());
  drain(w.io, 5s);
  CHECK(w.keys().empty());
}

TEST_CASE("a context may be destroyed while its client drains") {
  world w;
  lease held;
  std::optional<asio::io_context> io(std::in_place);
  client redis(io->get_executor(), w.settings());
  held = run(*io, redis.mutex("m").lock());
  operation draining(*io, "drain", redis.drain(1h));
  io->restart();
  io->run_for(20ms);
  CHECK_FALSE(draining.answered());
  io.reset();
  CHECK_FALSE(held.held());
  CHECK_FALSE(draining.answered());  // destroyed with its context
  CHECK(w.code_of(redis.drain(1h)) == errc::closed);
}

TEST_CASE("an exception out of run leaves what is released in the background until run is called again") {
  world w;
  std::optional redis(w.make());
  auto held = w.run(redis->mutex("m").lock()), dropped = w.run(redis->mutex("n").lock());
  auto fail = []() -> asio::awaitable<void> {
    throw std::runtime_error("of a request");
    co_return;
  };
  asio::co_spawn(w.io, fail(), [](std::exception_ptr failed) { std::rethrow_exception(failed); });
  w.io.restart();
  CHECK_THROWS_AS(w.io.run(), std::runtime_error);
  dropped = lease();
  redis.reset();
  CHECK_FALSE(held.held());
  CHECK(w.keys().size() == 2);
  drain(w.io, 5s);
  CHECK(w.keys().empty());
}

TEST_CASE("a moved-from client is closed and its successor works") {
  world w;
  auto first = w.make();
  auto m = first.mutex("m");
  auto held = w.run(m.lock());
  auto second = std::move(first);
  CHECK(held.held());
  CHECK(w.code_of(first.mutex("m").lock()) == errc::closed);
  CHECK(w.code_of(first.connect()) == errc::closed);
  CHECK(w.code_of(first.shutdown(1s)) == errc::closed);
  CHECK(w.code_of(first.drain(1s)) == errc::closed);
  CHECK_FALSE(first.get_executor());
  CHECK_FALSE(w.run(m.try_lock()));  // of the successor
  first = std::move(second);
  w.run(held.unlock());
  CHECK(w.run(m.try_lock()));
}
