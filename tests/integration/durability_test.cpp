// SPDX-License-Identifier: BSL-1.0
// One node's durability: what a server that dies at once (SIGKILL) knows of its locks afterwards, and three ways to
// live with it.
#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

redis_options with_arguments(std::vector<std::string> arguments) {
  redis_options o;
  o.arguments = std::move(arguments);
  return o;
}

/// The server dies and comes back with what it had on its disk.
void crash(world& w) {
  w.server.restart();
  w.eye = raw_client(w.server);
}

}  // namespace

TEST_CASE(
    "a server without persistence forgets the lock: another has it while the holder has not heard, who is then told") {
  world w;
  auto a = w.make();
  auto first = w.run(a.fenced_mutex("m").lock());
  crash(w);
  asio::io_context elsewhere;
  client b(elsewhere.get_executor(), w.settings());
  auto second = test::run(elsewhere, b.fenced_mutex("m").lock());
  CHECK(first.held());  // nobody has told it
  CHECK(second.held());
  CHECK(second.token() > first.token());
  w.until([&] { return w.heard->count(kind::lost) == 1; });
  CHECK_FALSE(first.held());
  CHECK(second.held());
  test::run(elsewhere, second.unlock());
}

TEST_CASE("a server that has written the lock to its file keeps it, its token and its time when it is killed") {
  const std::string when = GENERATE("always", "everysec");
  world w(with_arguments({"--appendonly", "yes", "--appendfsync", when}));
  auto redis = w.make();
  auto held = w.run(redis.fenced_mutex("m").lock({.ttl = 20s}));
  const auto ttl = w.eye("PTTL", "m").integer();
  w.until([&] { return w.eye("INFO", "persistence").to_string().find("aof_buffer_length:0\r") != std::string::npos; });
  crash(w);
  w.until([&] { return w.heard->count(kind::restored) == 1; });
  CHECK(held.held());
  CHECK(w.eye("PTTL", "m").integer() <= ttl);
  CHECK_FALSE(w.run(redis.mutex("m").try_lock()).has_value());
  CHECK(w.run(redis.fenced_mutex("m").last_token()) >= held.token());
  w.run(held.unlock());
  CHECK(w.heard->count(kind::lost) == 0);
}

TEST_CASE("work under a key of its own is done once although the lock was forgotten and taken twice") {
  world w;
  real_redis books;  // where the work is written down
  raw_client ledger(books);
  const auto work = [&] { return ledger("SET", "invoice:42", "paid", "NX").to_string() == "OK"; };
  auto a = w.make(), b = w.make();
  auto first = w.run(a.mutex("invoice:42").lock());
  CHECK(work());
  crash(w);
  auto second = w.run(b.mutex("invoice:42").lock());
  CHECK_FALSE(work());
  w.run(second.unlock());
}

TEST_CASE("a server that stays away until the validity is over gives nobody a second lock") {
  world w;
  auto a = w.make([](config& c) { c.ttl = 500ms; }), b = w.make();
  auto first = w.run(a.mutex("m").lock());
  w.server.kill();
  started<lease> second(w, b.mutex("m").lock());
  w.until([&] { return w.heard->count(kind::lost) == 1; });
  CHECK_FALSE(first.held());
  crash(w);
  w.until([&] { return second.succeeded(); });
  CHECK(second.answer->value().held());
}
