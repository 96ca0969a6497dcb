// SPDX-License-Identifier: BSL-1.0
#include "integration/world.hpp"
#include "support/proxy.hpp"
#include "support/redisson_peer.hpp"

using namespace holdfast;
using namespace holdfast::test;
using texts = std::vector<std::string>;

namespace {

const std::string counter = "redisson_lock_token:{m}";
constexpr std::uint64_t block = 1'000;  // of tokens, for those that a grant is passed on to

/// lock and unlock; the token that the hold had.
asio::awaitable<std::uint64_t> token_of_a_hold(fenced_mutex m) {
  auto held = co_await m.lock();
  const auto token = held.token();
  co_await held.unlock();
  co_return token.value();
}

}  // namespace

TEST_CASE("a token is larger for each new hold, whichever client gets it, and the newest one can be asked for") {
  world w;
  const bool turns = GENERATE(true, false);
  const auto setting = [turns](config& c) { c.turns = turns; };
  auto a = w.make(setting), b = w.make(setting);
  CHECK_FALSE(w.run(a.fenced_mutex("m").last_token()).has_value());
  std::uint64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    const auto token = w.run(token_of_a_hold((i % 2 ? a : b).fenced_mutex("m")));
    CHECK(token > last);
    CHECK(token < 1ULL << 53);
    last = token;
  }
  const auto newest = w.run(b.fenced_mutex("m").last_token()).value();
  CHECK(newest >= last);
  CHECK(newest < last + (turns ? block : 1));
  CHECK(w.keys() == texts{counter});
  CHECK(w.eye("PTTL", counter) == -1);
  CHECK(w.eye("GET", counter).to_string() == std::to_string(newest));
}

TEST_CASE("a re-entry has the token of its hold and a plain lease has none") {
  world w;
  auto redis = w.make();
  const owner me;
  auto outer = w.run(redis.fenced_mutex("m", me).lock());
  auto inner = w.run(redis.fenced_mutex("m", me).try_lock()).value();
  auto plain = w.run(redis.mutex("m", me).lock());
  CHECK(outer.token().has_value());
  CHECK(inner.token() == outer.token());
  CHECK(plain.token() == outer.token());
  w.until([&] { return w.eye("HVALS", "m").strings() == texts{"3"}; });
  CHECK_FALSE(w.run(redis.mutex("other").lock()).token().has_value());
}

TEST_CASE("a fenced re-entry of a hold without token is refused") {
  world w;
  auto redis = w.make();
  const owner me;
  auto plain = w.run(redis.mutex("m", me).lock());
  CHECK(w.code_of(redis.fenced_mutex("m", me).lock()) == errc::already_held);
  CHECK(plain.held());
  CHECK(w.eye("HVALS", "m").strings() == texts{"1"});
  w.run(plain.unlock());
  CHECK(w.keys().empty());
}

TEST_CASE("plain and fenced mutexes of one name exclude each other and a waiter is woken") {
  world w;
  auto a = w.make(), b = w.make();
  auto held = w.run(a.fenced_mutex("m").lock());
  CHECK_FALSE(w.run(b.mutex("m").try_lock()).has_value());
  std::optional<lease> next;
  asio::co_spawn(w.io, b.fenced_mutex("m").lock(), [&](std::exception_ptr, lease l) { next = std::move(l); });
  w.until([&] { return w.eye("PUBSUB", "CHANNELS", of_locks).strings().size() == 1; });
  w.run(held.unlock());
  w.until([&] { return next.has_value(); });
  CHECK(next->token() > held.token());
}

TEST_CASE("tokens grow on after everything was flushed") {
  world w;
  auto redis = w.make();
  std::uint64_t before = 0;
  for (int n = 0; n < 50; ++n) before = w.run(token_of_a_hold(redis.fenced_mutex("m")));
  w.eye("FLUSHALL");
  CHECK(w.run(token_of_a_hold(redis.fenced_mutex("m"))) > before);
}

TEST_CASE("Redisson's INCR of the token goes on from ours and ours from it") {
  world w;
  const bool turns = GENERATE(true, false);
  auto redis = w.make([turns](config& c) { c.turns = turns; });
  const auto first = w.run(token_of_a_hold(redis.fenced_mutex("m")));
  w.eye("SET", counter, "9007199254730000");  // far ahead of the clock
  const auto java = w.eye("INCR", counter).integer();
  CHECK(static_cast<std::uint64_t>(java) > first);
  CHECK(w.run(token_of_a_hold(redis.fenced_mutex("m"))) == static_cast<std::uint64_t>(java) + 1);
  CHECK(w.eye("INCR", counter) == java + 2);  // no block: the counter would be further ahead of the clock
}

TEST_CASE("Redisson counts from one when the counter was lost, and the next of our tokens is larger than all") {
  world w;
  auto redis = w.make();
  const auto before = w.run(token_of_a_hold(redis.fenced_mutex("m")));
  w.eye("DEL", counter);
  CHECK(w.eye("INCR", counter) == 1);
  CHECK(w.run(token_of_a_hold(redis.fenced_mutex("m"))) > before);
}

TEST_CASE("a fenced hold that was granted twice for a lost reply has one token") {
  world w({.tcp = true});
  proxy net(w.server);
  auto redis = w.make([&](config& c) { c.url = net.url(); });
  w.run(token_of_a_hold(redis.fenced_mutex("m")));  // connected, script known
  net.at_reply({.what = proxy::rule::action::cut_before, .command = "EVALSHA"});
  auto held = w.run(redis.fenced_mutex("m").lock());
  CHECK(w.eye("GET", counter).to_string() == std::to_string(held.token().value()));
  CHECK(w.eye("HVALS", "m").strings() == texts{"1"});
  w.run(held.unlock());
}

TEST_CASE("a counter that is no number is named and nothing is written") {
  world w;
  auto redis = w.make();
  w.eye("SET", counter, "many");
  CHECK(w.code_of(redis.fenced_mutex("m").lock()) == errc::corrupt_lock);
  CHECK(w.code_of(redis.fenced_mutex("m").last_token()) == errc::corrupt_lock);
  w.eye("DEL", counter);
  w.eye("HSET", counter, "a", "1");
  CHECK(w.code_of(redis.fenced_mutex("m").lock()) == errc::corrupt_lock);
  CHECK(w.keys() == texts{counter});
}

TEST_CASE("a user who may not write the counter gets no fenced lock and leaves none") {
  world w;
  w.eye("ACL", "SETUSER", "locker", "reset", "on", ">secret", "~*", "&*", "+@all", "-set");
  auto redis = w.make([&](config& c) {
    c.user = "locker";
    c.password = "secret";
  });
  CHECK(w.code_of(redis.fenced_mutex("m").lock()) == errc::no_permission);
  CHECK(w.keys().empty());
  w.run(w.run(redis.mutex("m").lock()).unlock());
}

TEST_CASE("a section under a fenced mutex sees the token") {
  world w;
  auto redis = w.make();
  auto body = [](lease& held) -> asio::awaitable<std::uint64_t> { co_return held.token().value(); };
  const auto token = w.run(with_lock(redis.fenced_mutex("m"), body));
  const auto newest = w.run(redis.fenced_mutex("m").last_token());
  CHECK(newest >= token);
  CHECK(newest < token + block);
}

TEST_CASE("a grant gives the counter its TTL, and keeps the one that it has where none is asked for") {
  world w;
  const bool turns = GENERATE(true, false);
  auto forgets = w.make([turns](config& c) { c.turns = turns, c.token_ttl = 1h; });
  auto keeps = w.make([turns](config& c) { c.turns = turns; });
  const auto left = [&] { return milliseconds(w.eye("PTTL", counter).integer()); };
  w.run(token_of_a_hold(forgets.fenced_mutex("m")));
  CHECK((left() > 59min && left() <= 1h));
  w.eye("PEXPIRE", counter, 100'000);
  const auto before = w.run(token_of_a_hold(keeps.fenced_mutex("m")));
  CHECK((left() > 50s && left() <= 100s));
  w.run(token_of_a_hold(forgets.fenced_mutex("m")));
  CHECK(left() > 59min);
  w.eye("PEXPIRE", counter, 1);
  w.until([&] { return w.eye("EXISTS", counter).integer() == 0; });
  CHECK(w.run(token_of_a_hold(keeps.fenced_mutex("m"))) > before);  // by the server's clock
  CHECK(left() == -1ms);
}
