// SPDX-License-Identifier: BSL-1.0
// The semantics table of with_lock.hpp, row by row; then its siblings: under a lease that is held already, and with a
// bounded wait.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include "api/core.hpp"
#include "integration/world.hpp"
#include "support/proxy.hpp"

using namespace holdfast;
using namespace holdfast::test;
using action = proxy::rule::action;
using direction = proxy::direction;
using kind = event_kind;

namespace {

/// Waits for ever, unless it is cancelled.
asio::awaitable<void> wait_for_ever() {
  asio::steady_timer never(co_await asio::this_coro::executor, 1h);
  co_await never.async_wait(asio::use_awaitable);
}

/// As wait_for_ever, but ends as if nothing had happened.
asio::awaitable<void> ignore_cancellation() {
  try {
    co_await wait_for_ever();
  } catch (const boost::system::system_error&) {
  }
}

/// Spawns `op`; cancel() reaches it from inside the context.
template <class T>
struct spawned {
  spawned(world& where, asio::awaitable<T> op) : w(where) {
    auto done = [this](std::exception_ptr e, auto... value) {
      failed = e;
      (void(result = value), ...);
      ended = true;
    };
    asio::co_spawn(w.io, std::move(op), asio::bind_cancellation_slot(signal.slot(), done));
  }
  void cancel() {
    asio::post(w.io, [this] { signal.emit(asio::cancellation_type::terminal); });
  }
  error_code code() {
    w.until([this] { return ended; });
    try {
      if (failed) std::rethrow_exception(failed);
    } catch (const boost::system::system_error& e) {
      nested = nested_code(e);
      return e.code();
    }
    return {};
  }
  static error_code nested_code(const std::exception& e) {
    try {
      std::rethrow_if_nested(e);
    } catch (const boost::system::system_error& inner) {
      return inner.code();
    } catch (const std::exception&) {
      return errc::protocol_error;  // something of the body's own
    }
    return {};
  }

  world& w;
  asio::cancellation_signal signal;
  bool ended = false;
  std::exception_ptr failed;
  int result = 0;
  error_code nested;
};

struct own_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr auto returns_7 = [](lease&) -> asio::awaitable<int> { co_return 7; };
constexpr auto returns_nothing = [](lease&) -> asio::awaitable<void> { co_return; };

/// The owner field and the count in the hash `m`.
std::string counts(world& w) {
  std::string all;
  for (const auto& one : w.eye("HVALS", "m").strings()) all += (all.empty() ? "" : ", ") + one;
  return all;
}

}  // namespace

TEST_CASE("with_lock gives the body's value after the unlock") {
  world w;
  auto redis = w.make();
  auto body = [&](lease& held) -> asio::awaitable<std::string> {
    CHECK(held.held());
    CHECK(w.eye("EXISTS", "m") == 1);
    co_return held.name();
  };
  CHECK(w.run(with_lock(redis.mutex("m"), body)) == "m");
  CHECK(w.keys().empty());
}

TEST_CASE("with_lock gives what the body throws after the unlock") {
  world w;
  auto redis = w.make();
  auto body = [](lease&) -> asio::awaitable<void> {
    throw own_failure("mine");
    co_return;
  };
  CHECK_THROWS_AS(w.run(with_lock(redis.mutex("m"), body)), own_failure);
  CHECK(w.keys().empty());
}

TEST_CASE("the body runs under the lease's owner and nested locks of the name re-enter") {
  world w;
  auto redis = w.make();
  auto body = [&](lease&) -> asio::awaitable<unsigned> {
    auto inner = co_await redis.mutex("m").lock();
    const auto count = co_await redis.mutex("m").hold_count(inner.owner());
    co_await inner.unlock();
    co_return count;
  };
  CHECK(w.run(with_lock(redis.mutex("m"), body)) == 2);
  CHECK(w.keys().empty());
}

TEST_CASE("a loss cancels the body and the caller gets lost with the cancellation nested") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 150ms; });
  auto body = [&](lease&) -> asio::awaitable<void> {
    w.eye("DEL", "m");
    co_await wait_for_ever();
  };
  spawned<void> s(w, with_lock(redis.mutex("m"), body));
  CHECK(s.code() == errc::lost);
  CHECK(s.nested == asio::error::operation_aborted);
  CHECK(w.heard->count(event_kind::lost) == 1);
}

TEST_CASE("a body whose lease is lost before it begins never begins") {
  world w;
  asio::io_context mine;  // busy between the grant and the body
  std::optional<client> redis(w.make());
  bool began = false;
  auto body = [&began](lease&) -> asio::awaitable<void> {
    began = true;
    co_return;
  };
  error_code got;
  asio::co_spawn(mine, as_result(with_lock(redis->mutex("m"), body)),
                 [&got](std::exception_ptr, const result<void>& r) { got = r.error(); });
  mine.poll();
  w.until([&] { return w.heard->count(event_kind::acquired) == 1; });
  redis.reset();
  w.io.restart();
  w.io.run();
  mine.restart();
  mine.run();
  CHECK_FALSE(began);
  CHECK(got == errc::closed);
}

TEST_CASE("a body that returns after the loss has its value dropped") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 150ms; });
  auto body = [&](lease&) -> asio::awaitable<int> {
    w.eye("DEL", "m");
    co_await ignore_cancellation();
    co_return 7;
  };
  spawned<int> s(w, with_lock(redis.mutex("m"), body));
  CHECK(s.code() == errc::lost);
  CHECK(s.result == 0);
  CHECK_FALSE(s.nested);
}

TEST_CASE("a body that throws after the loss has its exception nested in lost") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 150ms; });
  auto body = [&](lease&) -> asio::awaitable<void> {
    w.eye("DEL", "m");
    co_await ignore_cancellation();
    throw own_failure("mine");
  };
  spawned<void> s(w, with_lock(redis.mutex("m"), body));
  CHECK(s.code() == errc::lost);
  CHECK(s.nested == errc::protocol_error);
}

TEST_CASE("a stranger's lock survives the end of a body that lost it") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 150ms; });
  auto body = [&](lease&) -> asio::awaitable<void> {
    w.eye("DEL", "m");
    w.eye("HSET", "m", "stranger:1", 1);
    co_await wait_for_ever();
  };
  spawned<void> s(w, with_lock(redis.mutex("m"), body));
  CHECK(s.code() == errc::lost);
  drain(w.io);
  CHECK(w.eye("HGETALL", "m").to_string() == "[stranger:1, 1]");
}

TEST_CASE("cancelled from outside a body that stops is released in the background") {
  world w;
  auto redis = w.make();
  bool inside = false;
  auto body = [&](lease&) -> asio::awaitable<void> {
    inside = true;
    co_await wait_for_ever();
  };
  spawned<void> s(w, with_lock(redis.mutex("m"), body));
  w.until([&] { return inside; });
  s.cancel();
  CHECK(s.code() == asio::error::operation_aborted);
  drain(w.io);
  CHECK(w.keys().empty());
}

TEST_CASE("cancelled from outside a body that returns gives its value after the unlock") {
  world w;
  auto redis = w.make();
  bool inside = false;
  auto body = [&](lease&) -> asio::awaitable<int> {
    inside = true;
    co_await ignore_cancellation();
    co_return 7;
  };
  spawned<int> s(w, with_lock(redis.mutex("m"), body));
  w.until([&] { return inside; });
  s.cancel();
  CHECK_FALSE(s.code());
  CHECK(s.result == 7);
  CHECK(w.keys().empty());
}

TEST_CASE("cancelled while it acquires the body never starts") {
  world w;
  auto redis = w.make();
  auto other = w.run(redis.mutex("m").lock());
  bool inside = false;
  auto body = [&](lease&) -> asio::awaitable<void> {
    inside = true;
    co_return;
  };
  spawned<void> s(w, with_lock(redis.mutex("m"), body));
  w.pass(30ms);
  s.cancel();
  CHECK(s.code() == asio::error::operation_aborted);
  w.run(other.unlock());
  drain(w.io);
  CHECK_FALSE(inside);
  CHECK(w.keys().empty());
}

TEST_CASE("a body may unlock its lease itself") {
  world w;
  auto redis = w.make();
  auto body = [](lease& held) -> asio::awaitable<int> {
    co_await held.unlock();
    co_return 3;
  };
  CHECK(w.run(with_lock(redis.mutex("m"), body)) == 3);
}

TEST_CASE("a value is not thrown away because only the unlock is unconfirmed") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(), c.command_timeout = 60ms; });  // and a ttl of 30 s
  const bool cut_off = GENERATE(false, true);
  auto body = [&](lease&) -> asio::awaitable<int> {
    if (cut_off) {
      net.refuse();
      net.cut();
    } else {
      net.hold(direction::to_client);
    }
    co_return 7;
  };
  CHECK(w.run(with_lock(redis.mutex("m"), body)) == 7);
  CHECK(w.heard->count(kind::release_failed) == 1);
  net.heal();
  w.until([&] { return w.heard->count(kind::released_late) == 1; });
  CHECK(w.keys().empty());
  CHECK(w.heard->count(kind::lost) == 0);
}

TEST_CASE("what a body throws comes before an unlock that is unconfirmed") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(), c.command_timeout = 60ms; });
  auto body = [&](lease&) -> asio::awaitable<int> {
    net.hold(direction::to_client);
    throw own_failure("mine");
    co_return 7;
  };
  CHECK_THROWS_AS(w.run(with_lock(redis.mutex("m"), body)), own_failure);
  CHECK(w.heard->count(kind::release_failed) == 1);
}

TEST_CASE("a value stays when another server answers the second copy of the release") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(), c.command_timeout = 5s; });
  auto body = [&](lease&) -> asio::awaitable<int> {
    net.at_reply({.what = action::cut_before, .command = "EVALSHA"});  // it has run; its answer does not come
    net.refuse();
    co_return 7;
  };
  started<int> got(w, with_lock(redis.mutex("m"), body));
  w.until([&] { return net.count().fired == 1; });
  CHECK_FALSE(got.answer);
  w.server.restart_empty();
  net.heal();
  w.until([&] { return got.answer.has_value(); });
  CHECK(got.answer->value() == 7);
  const auto heard = w.heard->all();
  CHECK(std::any_of(heard.begin(), heard.end(), [](const auto& e) {
    return e.what == kind::release_failed && e.detail.find("another server") != e.detail.npos;
  }));
}

TEST_CASE("a value is dropped when the unlock says that the key was gone") {
  world w;
  auto redis = w.make();
  auto body = [&](lease&) -> asio::awaitable<int> {
    w.eye("DEL", "m");
    co_return 7;
  };
  CHECK(w.code_of(with_lock(redis.mutex("m"), body)) == errc::lost);
}

TEST_CASE("a value is dropped when the validity was over at the end of the body") {
  world w;
  auto redis = w.make();
  auto body = [&](lease& held) -> asio::awaitable<int> {
    while (held.held()) {  // and nothing else runs
    }
    co_return 7;
  };
  CHECK(w.code_of(with_lock(redis.mutex("m"), body, {.ttl = 50ms})) == errc::lost);
}

TEST_CASE("a loss that nobody has told yet says how it is known") {
  world w;
  auto redis = w.make();
  const auto text_of = [&](auto operation) -> std::string {
    try {
      w.run(std::move(operation));
    } catch (const error& e) {
      CHECK(e.code() == errc::lost);
      return e.what();
    }
    return "no error";
  };
  auto outlives_its_ttl = [](lease& held) -> asio::awaitable<void> {
    while (held.held()) {  // and nothing else runs
    }
    co_return;
  };
  const auto over = text_of(with_lock(redis.mutex("m"), outlives_its_ttl, {.ttl = 50ms}));
  CHECK_THAT(over, contains_text("its TTL was over, and nobody wanted it to be renewed"));
  auto held = w.run(redis.mutex("n").lock());
  w.eye("DEL", "n");
  w.until([&] { return held.state() == lease_state::lost; });
  auto never_begun = [](lease&) -> asio::awaitable<void> { co_return; };
  CHECK_THAT(text_of(with_lock(held, never_begun)), contains_text("Redis answered that its key is gone or another's"));
}

TEST_CASE("a value is dropped when the client was closed at the end of the body") {
  world w;
  auto redis = w.make();
  auto body = [&](lease&) -> asio::awaitable<int> {
    co_await redis.shutdown(1s);
    co_return 7;
  };
  CHECK(w.code_of(with_lock(redis.mutex("m"), body)) == errc::closed);
  drain(w.io);
  CHECK(w.keys().empty());
}

TEST_CASE("a value is dropped as closed when the body ends its client") {
  world w;
  std::optional<client> redis(w.make());
  const auto m = redis->mutex("m");
  auto body = [&](lease&) -> asio::awaitable<int> {
    redis.reset();
    co_return 7;
  };
  CHECK(w.code_of(with_lock(m, body)) == errc::closed);
  drain(w.io);
  CHECK(w.keys().empty());
}

TEST_CASE("a body under a lease that is held already costs no command and leaves it held") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(); });
  auto held = w.run(redis.mutex("m").lock());
  const auto commands = net.count().commands;
  auto body = [&](lease& inside) -> asio::awaitable<int> {
    CHECK(&inside == &held);
    co_return 7;
  };
  CHECK(w.run(with_lock(held, body)) == 7);
  w.run(with_lock(held, returns_nothing));
  CHECK(net.count().commands == commands);
  CHECK(held.held());
  CHECK(counts(w) == "1");
  w.run(held.unlock());
  CHECK(w.keys().empty());
}

TEST_CASE("under a lease that is held already the body runs as its owner") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock());  // without an owner
  auto body = [&](lease&) -> asio::awaitable<unsigned> {
    auto inner = co_await redis.mutex("m").lock();
    const auto count = co_await redis.mutex("m").hold_count(inner.owner());
    co_await inner.unlock();
    co_return count;
  };
  CHECK(w.run(with_lock(held, body)) == 2);
  w.until([&] { return counts(w) == "1"; });
}

TEST_CASE("a lease outlives what its body throws") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock());
  auto body = [](lease&) -> asio::awaitable<void> {
    throw own_failure("mine");
    co_return;
  };
  CHECK_THROWS_AS(w.run(with_lock(held, body)), own_failure);
  CHECK(held.held());
  w.run(held.unlock());
}

TEST_CASE("a lease outlives the cancellation of its body from outside") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock());
  bool inside = false;
  auto body = [&](lease&) -> asio::awaitable<void> {
    inside = true;
    co_await wait_for_ever();
  };
  spawned<void> s(w, with_lock(held, body));
  w.until([&] { return inside; });
  s.cancel();
  CHECK(s.code() == asio::error::operation_aborted);
  CHECK(held.held());
  CHECK(counts(w) == "1");
  w.run(held.unlock());
}

TEST_CASE("a loss cancels the body under a lease that was held already") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 150ms; });
  auto held = w.run(redis.mutex("m").lock());
  auto body = [&](lease&) -> asio::awaitable<void> {
    w.eye("DEL", "m");
    co_await wait_for_ever();
  };
  spawned<void> s(w, with_lock(held, body));
  CHECK(s.code() == errc::lost);
  CHECK(s.nested == asio::error::operation_aborted);
  CHECK(held.state() == lease_state::lost);
  CHECK(w.code_of(held.unlock()) == errc::lost);
}

TEST_CASE("no body begins under a lease that holds nothing") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 150ms; });
  bool began = false;
  auto body = [&began](lease&) -> asio::awaitable<void> {
    began = true;
    co_return;
  };
  lease held;
  CHECK(w.code_of(with_lock(held, body)) == errc::not_held);
  held = w.run(redis.mutex("m").lock());
  w.run(held.unlock());
  CHECK(w.code_of(with_lock(held, body)) == errc::not_held);
  held = w.run(redis.mutex("m").lock());
  w.eye("DEL", "m");
  w.until([&] { return held.state() == lease_state::lost; });
  CHECK(w.code_of(with_lock(held, body)) == errc::lost);
  held = w.run(redis.mutex("m").lock());
  w.run(redis.shutdown(1s));
  CHECK_FALSE(held.held());
  CHECK(w.code_of(with_lock(held, body)) == errc::closed);
  CHECK_FALSE(began);
}

TEST_CASE("a body may give away the lease that it was lent") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock());
  const bool by_a_move = GENERATE(false, true);
  lease taken;
  auto body = [&](lease& lent) -> asio::awaitable<int> {
    if (by_a_move)
      taken = std::move(lent);
    else
      co_await lent.unlock();
    co_return 7;
  };
  CHECK(w.run(with_lock(held, body)) == 7);
  CHECK_FALSE(held.held());
  CHECK(taken.held() == by_a_move);
  CHECK((counts(w) == "1") == by_a_move);
}

TEST_CASE("a lease that saw many bodies listens for none of them") {
  world w;
  auto redis = w.make();
  auto held = w.run(redis.mutex("m").lock());
  auto body = [&](lease&) -> asio::awaitable<void> {
    while (!detail::access::record(held)->has_listeners()) co_await asio::post(asio::use_awaitable);
  };
  for (int i = 0; i < 10; ++i) {
    w.run(with_lock(held, body));
    w.run(with_lock(held, returns_nothing));  // may end before anybody listens
  }
  w.pass(1ms);
  CHECK_FALSE(detail::access::record(held)->has_listeners());
  w.run(held.unlock());
}

TEST_CASE("a bounded wait gives the body's value, or says that it ran") {
  world w;
  auto redis = w.make();
  CHECK(w.run(try_with_lock_for(redis.mutex("m"), 1h, returns_7)) == 7);
  CHECK(w.run(try_with_lock_for(redis.mutex("m"), 0ms, returns_nothing)));
  auto token = [](lease& held) -> asio::awaitable<bool> { co_return held.token().has_value(); };
  CHECK(w.run(try_with_lock_for(redis.fenced_mutex("m"), 1h, token)) == true);
  CHECK(w.eye("EXISTS", "m") == 0);
}

TEST_CASE("a bounded wait with a body costs an acquire and a release") {
  world w;
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(); });
  w.run(try_with_lock_for(redis.mutex("m"), 1h, returns_nothing));
  const auto before = net.count().commands["EVALSHA"];
  w.run(try_with_lock_for(redis.mutex("m"), 1h, returns_nothing));
  CHECK(net.count().commands["EVALSHA"] == before + 2);
}

TEST_CASE("no body begins when the lock is not had within the bounded wait") {
  world w;
  auto redis = w.make();
  auto other = w.run(redis.mutex("m").lock());
  bool began = false;
  auto value = [&began](lease&) -> asio::awaitable<int> {
    began = true;
    co_return 7;
  };
  auto none = [&began](lease&) -> asio::awaitable<void> {
    began = true;
    co_return;
  };
  CHECK_FALSE(w.run(try_with_lock_for(redis.mutex("m"), 20ms, value)));
  CHECK_FALSE(w.run(try_with_lock_for(redis.mutex("m"), 0ms, none)));
  CHECK(w.code_of(try_with_lock_for(redis.mutex("m"), -1ms, value)) == errc::invalid_wait);
  CHECK_FALSE(began);
  w.run(other.unlock());
  drain(w.io);
  CHECK(w.keys().empty());
}

TEST_CASE("after a bounded wait a body is guarded as by with_lock") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 150ms; });
  auto body = [&](lease&) -> asio::awaitable<int> {
    auto inner = co_await redis.mutex("m").lock();
    const auto count = co_await redis.mutex("m").hold_count(inner.owner());
    CHECK(count == 2);
    w.eye("DEL", "m");
    co_await wait_for_ever();
    co_return 7;
  };
  std::optional<error_code> got;
  asio::co_spawn(w.io, as_result(try_with_lock_for(redis.mutex("m"), 1h, body)),
                 [&got](std::exception_ptr, const result<std::optional<int>>& r) { got = r.error(); });
  w.until([&] { return got.has_value(); });
  CHECK(*got == errc::lost);
}

TEST_CASE("as_result gives codes and values for every awaitable") {
  world w;
  auto redis = w.make();
  auto held = w.run(as_result(redis.mutex("m").lock()));
  REQUIRE(held.has_value());
  CHECK(w.run(as_result(redis.mutex("").lock())).error() == errc::invalid_name);
  CHECK(w.run(as_result(held->unlock())).has_value());
  CHECK(w.run(as_result(held->unlock())).error() == errc::not_held);
}

TEST_CASE("lost gives the reason of a loss and throws not_held for an unlock") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 150ms; });
  auto held = w.run(redis.mutex("a").lock());
  w.eye("DEL", "a");
  CHECK(w.run(as_result(held.lost())).value() == errc::lost);
  auto other = w.run(redis.mutex("b").lock());
  spawned<void> s(w, [](lease& l) -> asio::awaitable<void> { (void)co_await l.lost(); }(other));
  w.run(other.unlock());
  CHECK(s.code() == errc::not_held);
}

TEST_CASE("a re-entry after the loss is lost and never brings the hold back") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 150ms; });
  const owner me;
  auto mutex = redis.mutex("m", me);
  auto held = w.run(mutex.lock());
  w.eye("DEL", "m");
  auto nested = w.run(mutex.lock());  // does not ask, but a round trip later it is known
  w.until([&] { return !held.held(); });
  CHECK_FALSE(nested.held());
  CHECK(w.keys().empty());
  CHECK(w.code_of(mutex.try_lock()) == errc::lost);
  CHECK(w.code_of(nested.unlock()) == errc::lost);
  CHECK(w.code_of(held.unlock()) == errc::lost);
  auto fresh = w.run(mutex.lock());  // the lost lease is gone: a new hold
  CHECK(fresh.held());
}
