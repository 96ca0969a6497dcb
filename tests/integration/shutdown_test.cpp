// SPDX-License-Identifier: BSL-1.0
// The end of a client, in good order and in the midst of everything: everyone is answered, what can be released is.
#include "integration/world.hpp"
#include "support/proxy.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event::kind;
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
    start("re-entry", redis.mutex("renewed", me).lock());
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
  for (const auto code :
       {w.code_of(m.lock()), w.code_of(m.try_lock()), w.code_of(m.try_lock_for(1h)), w.code_of(m.force_unlock()),
        w.code_of(m.is_locked()), w.code_of(m.hold_count(owner{})), w.code_of(m.held_by(held.owner())),
        w.code_of(m.remaining_ttl()), w.code_of(held.renew()), w.code_of(redis.connect())})
    CHECK(code == errc::closed);
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
  for (const auto& o : waiting) CHECK(o.code() == errc::closed);
  w.run(redis.shutdown(0ms));
  w.until([&] { return w.eye("PUBSUB", "CHANNELS").array().empty(); });
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
  CHECK(waiting.code() == errc::closed);
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
    else if (at_once)
      CHECK(o.code() == errc::closed);
    else  // its own command timeout may end before the client's, which is as long
      CHECK((o.code() == errc::closed || o.code() == errc::unreachable));
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
  CHECK_FALSE(first.get_executor());
  CHECK_FALSE(w.run(m.try_lock()));  // of the successor
  first = std::move(second);
  w.run(held.unlock());
  CHECK(w.run(m.try_lock()));
}
