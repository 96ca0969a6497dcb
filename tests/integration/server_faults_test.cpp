// SPDX-License-Identifier: BSL-1.0
// A server that is there and cannot do what it should: what holders and waiters see, and what becomes of the lock.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "integration/world.hpp"
#include "support/server_version.hpp"
#include "support/stepped_clock.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;
using texts = std::vector<std::string>;

namespace {

constexpr auto load = 10s;  // what a busy machine may add to an upper bound

void be_short(config& c) { c.ttl = 900ms; }

redis_options with_clock(const stepped_clock& clock) {
  redis_options options;
  options.environment = clock.environment();
  return options;
}

/// A write to a resource that refuses older tokens: 1 when it was done.
value fenced_write(world& w, const lease& by) {
  std::ostringstream script;
  script << std::ifstream(FENCED_TASK_LUA).rdbuf();
  return w.eye("EVAL", script.str(), 2, "fence", "written", by.token().value(), 3, "SET", "written", 1).array().at(0);
}

}  // namespace

TEST_CASE("a server that cannot save refuses and is an outage for holders as well") {
  world w;
  auto redis = w.make(be_short);
  auto held = w.run(redis.mutex("m").lock());
  w.eye("CONFIG", "SET", "save", "3600 1");
  std::filesystem::remove_all(w.server.folder() + "/data");
  w.eye("BGSAVE");
  w.until(
      [&] { return w.eye("INFO", "persistence").to_string().find("rdb_last_bgsave_status:err") != std::string::npos; });
  CHECK(text_of_failure([&] { w.run(redis.mutex("n").try_lock()); }).find("MISCONF") != std::string::npos);
  CHECK(w.code_of(redis.mutex("n").try_lock_for(50ms)) == errc::server_refused);
  w.until([&] { return held.state() == lease_state::suspended; });
  w.eye("CONFIG", "SET", "stop-writes-on-bgsave-error", "no");
  w.until([&] { return held.state() == lease_state::held; }, load);
  CHECK(w.heard->count(kind::lost) == 0);
  w.eye("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes");
  w.until([&] { return w.heard->count(kind::lost) == 1; });
  CHECK_FALSE(held.held());
}

TEST_CASE("re-entries and nested and last unlocks succeed while the server has no memory to give") {
  world w;
  auto redis = w.make();
  const owner task;
  auto outer = w.run(redis.mutex("m", task).lock()), inner = w.run(redis.mutex("m", task).lock());
  w.eye("CONFIG", "SET", "maxmemory", "1");
  REQUIRE(w.code_of(redis.mutex("n").try_lock()) == errc::server_refused);
  auto innermost = w.run(redis.mutex("m", task).try_lock());  // re-entry needs none
  REQUIRE(innermost);
  CHECK(w.run(redis.mutex("m").hold_count(task)) == 3);
  w.run(innermost->unlock());
  CHECK(w.run(redis.mutex("m").hold_count(task)) == 2);
  w.run(inner.unlock());
  CHECK(outer.held());
  CHECK(w.keys() == texts{"m"});
  w.run(outer.unlock());
  CHECK(w.keys().empty());
}

TEST_CASE("a lock that the server evicts is told by the next renewal and its token is refused") {
  world w;
  auto redis = w.make(be_short), other = w.make();
  auto held = w.run(redis.fenced_mutex("m").lock());
  const auto used = w.eye("INFO", "memory").to_string();
  const auto at = used.find("used_memory:") + 12;
  w.eye("CONFIG", "SET", "maxmemory", std::stoll(used.substr(at)) + 200'000);
  w.eye("CONFIG", "SET", "maxmemory-policy", "volatile-random");  // the lock is the only key with a TTL
  for (int i = 0; w.eye("EXISTS", "m") == 1; ++i) {
    REQUIRE(i < 1000);
    w.eye.call({"SET", "key" + std::to_string(i), std::string(10'000, 'x')});
  }
  w.eye("CONFIG", "SET", "maxmemory", "0");
  auto second = w.run(other.fenced_mutex("m").lock());
  CHECK(second.token() > held.token());
  CHECK(fenced_write(w, second) == 1);
  CHECK(fenced_write(w, held) == 0);
  w.until([&] { return w.heard->count(kind::lost) == 1; });
  CHECK_FALSE(held.held());
  CHECK(second.held());
  CHECK(w.code_of(held.unlock()) == errc::lost);
}

TEST_CASE("a server that sleeps for less than the validity costs no lock") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 6s; });
  auto held = w.run(redis.mutex("m").lock());
  w.server.stop();
  w.until([&] { return held.state() == lease_state::suspended; });
  w.server.cont();
  w.until([&] { return held.state() == lease_state::held; });
  CHECK(w.heard->count(kind::lost) == 0);
  w.run(held.unlock());
  CHECK(w.keys().empty());
}

TEST_CASE("writes that the server holds back for longer than the validity end the hold and leave no key") {
  world w;
  auto redis = w.make([](config& c) { c.ttl = 600ms; });
  auto held = w.run(redis.mutex("m").lock());
  w.eye("CLIENT", "PAUSE", 60'000, "WRITE");
  w.until([&] { return w.heard->count(kind::lost) == 1; });
  CHECK_FALSE(held.held());
  CHECK(w.heard->count(kind::suspended) == 1);
  w.eye("CLIENT", "UNPAUSE");
  CHECK(w.code_of(held.unlock()) == errc::lost);
  drain(w.io);
  CHECK(w.keys().empty());
}

TEST_CASE("a server whose clock is set forward gives the lock away and its holder is told") {
  stepped_clock clock(HOLDFAST_CLOCK_SHIM);
  world w(with_clock(clock));
  auto redis = w.make([](config& c) { c.ttl = 6s; }), other = w.make();
  auto held = w.run(redis.fenced_mutex("m").lock());
  clock.step_to(40s);
  auto second = w.run(other.fenced_mutex("m").lock());
  CHECK(second.token() > held.token());
  CHECK(second.held());
  CHECK(held.held());  // two holders: the promise ends with the server's clock
  w.until([&] { return w.heard->count(kind::lost) == 1; });
  CHECK_FALSE(held.held());
  CHECK(w.code_of(held.unlock()) == errc::lost);
  CHECK(second.held());
  w.run(second.unlock());
}

TEST_CASE("a server whose clock is set back keeps a holder's lock and lets nobody wait beyond a deadline") {
  stepped_clock clock(HOLDFAST_CLOCK_SHIM);
  world w(with_clock(clock));
  auto redis = w.make(be_short), other = w.make();
  auto held = w.run(redis.mutex("m").lock());
  clock.step_to(-40s);
  CHECK(w.eye("PTTL", "m").integer() > 30'000);  // what a dead holder would cost
  const auto begun = std::chrono::steady_clock::now();
  CHECK_FALSE(w.run(other.mutex("m").try_lock_for(100ms)));
  CHECK(std::chrono::steady_clock::now() - begun < 100ms + load);
  w.until([&] { return held.valid_for() > 800ms; });  // renewed
  CHECK(w.heard->count(kind::lost) == 0);
  started<lease> waiting(w, other.mutex("m").lock());
  w.run(held.unlock());
  w.until([&] { return waiting.succeeded(); }, load);
}

TEST_CASE("a waiter whose subscription the server drops for its backlog is served all the same") {
  world w;
  auto redis = w.make();
  w.eye("HSET", "m", "somebody:1", 1);
  w.eye("PEXPIRE", "m", 60'000);
  started<lease> waiting(w, redis.mutex("m").lock());
  const std::string channel = "redisson_lock__channel:{m}";
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", channel).array().at(1) == 1; });
  w.eye("CONFIG", "SET", "client-output-buffer-limit", "pubsub 65536 0 0");
  while (w.eye("PUBLISH", channel, std::string(10'000, 'x')) != 0) {
  }  // the client does not read: its context does not run
  w.until([&] { return w.eye("PUBSUB", "NUMSUB", channel).array().at(1) == 1; });
  CHECK_FALSE(waiting.answer);
  w.eye("DEL", "m");
  w.eye("PUBLISH", channel, "0");
  w.until([&] { return waiting.succeeded(); }, load);
}

TEST_CASE("a waiter waits for a server that cannot save, although that refuses PING to its subscription as well") {
  world w;
  auto redis = w.make();
  w.eye("HSET", "m", "somebody:1", 1);
  w.eye("PEXPIRE", "m", 60'000);
  w.eye("CONFIG", "SET", "save", "3600 1");
  std::filesystem::remove_all(w.server.folder() + "/data");
  w.eye("BGSAVE");
  w.until([&] { return w.eye.call({"PING"}).to_string().starts_with("MISCONF"); });
  const auto refusals = [&] {
    constexpr std::string_view label = "errorstat_MISCONF:count=";
    const auto text = w.eye("INFO", "errorstats").to_string();
    return std::stoll(text.substr(text.find(label) + label.size()));
  };
  const auto before = refusals();
  started<lease> waiting(w, redis.mutex("m").lock());
  w.until([&] { return refusals() >= before + 2; });  // it has heard the first, and tries again
  CHECK_FALSE(waiting.answer);
  w.eye("CONFIG", "SET", "stop-writes-on-bgsave-error", "no");
  w.eye("DEL", "m");
  w.until([&] { return waiting.succeeded(); }, 15s + load);
}

TEST_CASE("a count that is no number is a corrupt lock a round trip after a nested lock") {
  world w;
  auto redis = w.make();
  const owner task;
  auto outer = w.run(redis.mutex("m", task).lock());
  w.eye("HSET", "m", w.eye("HKEYS", "m").strings().at(0), "abc");
  CHECK(w.code_of(redis.mutex("m").hold_count(task)) == errc::corrupt_lock);
  auto inner = w.run(redis.mutex("m", task).lock());  // does not ask, but a round trip later it is known
  w.until([&] { return !outer.held(); });
  CHECK(w.code_of(inner.unlock()) == errc::corrupt_lock);
  CHECK(w.code_of(outer.unlock()) == errc::corrupt_lock);
}

TEST_CASE("a count that somebody raised beyond all bounds is set right by the next lock and never costs the ttl") {
  world w;
  auto redis = w.make();
  const owner task;
  auto outer = w.run(redis.mutex("m", task).lock());
  const auto field = w.eye("HKEYS", "m").strings().at(0);
  w.eye("HSET", "m", field, "9223372036854775807");
  auto inner = w.run(redis.mutex("m", task).lock());
  w.until([&] { return w.eye("HGET", "m", field) == "2"; });
  CHECK(w.eye("PTTL", "m").integer() > 0);
  w.run(inner.unlock());
  w.until([&] { return w.eye("HGET", "m", field) == "1"; });
  w.run(outer.unlock());
  CHECK(w.keys().empty());
}
