// SPDX-License-Identifier: BSL-1.0
// A grant that counts when replicas have it: one server with a replica.
#include <stdexcept>
#include <string>
#include <vector>

#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

redis_options replica_of(const real_redis& primary) {
  redis_options o;
  o.arguments = {"--replicaof", "127.0.0.1", std::to_string(primary.port())};
  return o;
}
redis_options without_delay() {
  redis_options o;
  o.tcp = true;
  o.service_url = "redis://localhost?min_replicas=1";
  o.arguments = {"--repl-diskless-sync-delay", "0"};
  return o;
}

struct replicated_world : client_side {
  replicated_world() {
    eye("SET", "warm", "up");
    eye("WAIT", "1", "20000");
    REQUIRE(eye("WAIT", "1", "20000").integer() == 1);
  }

  std::string url() const override { return primary.url(); }
  /// Its commands have `time`: by default so much that a busy machine fails none.
  client make(unsigned min_replicas, std::chrono::milliseconds time = 5s) {
    return client_side::make([=](config& c) {
      c.min_replicas = min_replicas;
      c.command_timeout = time;
    });
  }

  real_redis primary{without_delay()};
  real_redis replica{replica_of(primary)};
  raw_client eye{primary};
  raw_client other{replica};
};

/// What the script before the next WAIT calls.
std::vector<std::string> calls_of_mark(raw_client& seen) {
  std::vector<std::string> calls;
  for (;;) {
    const auto line = seen.next_monitor_line(20s);
    if (!line) throw std::runtime_error("no WAIT");
    if (line->argv.at(0) == "WAIT") return calls;
    if (line->from == "lua")
      calls.push_back(line->argv[0]);
    else
      calls.clear();
  }
}

}  // namespace

TEST_CASE("a grant with min_replicas is on the replica when it is told") {
  replicated_world w;
  auto redis = w.make(1);
  w.run(redis.connect());
  for (int i = 0; i < 20; ++i) {
    const auto name = "m" + std::to_string(i);
    auto lease = w.run(redis.mutex(name).lock());
    CHECK(w.other("EXISTS", name).integer() == 1);
    w.run(lease.renew());
    w.run(lease.unlock());
  }
}

TEST_CASE("the next in the queue of a fair mutex has it when its replicas have it") {
  replicated_world w;
  auto redis = w.make(1);
  auto held = w.run(redis.fair_mutex("m").lock());
  CHECK(w.other("HLEN", "m").integer() == 1);
  started<lease> one(w, redis.fair_mutex("m").lock()), two(w, redis.fair_mutex("m").lock());
  w.until([&] { return w.eye("LLEN", "redisson_lock_queue:{m}") == 2; });
  for (auto* next : {&one, &two}) {
    w.run(held.unlock());
    w.until([&] { return next->succeeded(); });
    held = std::move(next->answer->value());
    CHECK(w.other("HKEYS", "m").strings() == std::vector<std::string>{std::string(held.id())});
  }
  w.run(held.unlock());
  w.until([&] { return w.eye("EXISTS", "m", "redisson_lock_queue:{m}", "redisson_lock_timeout:{m}") == 0; });
}

TEST_CASE("a mark leaves a lock as it is, and no key where the lock is gone") {
  replicated_world w;
  raw_client seen(w.primary);
  seen.monitor();
  auto redis = w.make(1);
  w.run(redis.connect());  // its own lock is gone when it asks for replicas
  CHECK(calls_of_mark(seen) == std::vector<std::string>{"pttl", "hdel", "hset", "hdel"});
  CHECK(w.eye("KEYS", "*").strings() == std::vector<std::string>{"warm"});
  auto held = w.run(redis.mutex("m").lock({.ttl = 40s}));
  CHECK(calls_of_mark(seen) == std::vector<std::string>{"pttl", "pexpire"});
  const auto left = w.eye("PTTL", "m").integer();
  CHECK(left <= 40'000);
  CHECK(left > 20'000);
  CHECK(w.eye("HLEN", "m") == 1);
  w.run(held.unlock());
}

TEST_CASE("without enough replicas nothing is granted, and nothing stays") {
  replicated_world w;
  auto redis = w.make(1, 500ms);
  auto early = w.run(redis.mutex("early").lock());
  w.replica.stop();
  CHECK(w.code_of(redis.mutex("m").try_lock()) == errc::not_replicated);
  CHECK(w.code_of(redis.mutex("m").try_lock_for(700ms)) == errc::not_replicated);
  CHECK(w.code_of(early.renew()) == errc::not_replicated);
  CHECK(early.held());
  CHECK(w.heard->count(kind::not_replicated) >= 2);
  w.replica.cont();
  auto lease = w.run(redis.mutex("m").lock());
  CHECK(lease.held());
  w.run(lease.unlock());
  w.run(early.unlock());
  w.run(redis.shutdown(1s));
  CHECK(w.eye("EXISTS", "m").integer() == 0);
}

TEST_CASE("a server without replicas is found when the client connects") {
  replicated_world w;
  auto redis = w.make(2, 500ms);
  CHECK(w.code_of(redis.connect()) == errc::not_replicated);
}

TEST_CASE("a caller that wants more replicas than there are holds up nobody else") {
  replicated_world w;
  auto redis = w.client_side::make([](config& c) { c.command_timeout = 20s; });
  started<std::optional<lease>> greedy(w, redis.mutex("g").try_lock({.ttl = 40s, .min_replicas = 5}));
  w.until([&] { return w.eye("INFO", "clients").to_string().find("blocked_clients:1\r\n") != std::string::npos; });
  auto held = w.run(redis.mutex("m").lock({.ttl = 40s, .min_replicas = 1}));
  w.run(held.renew());
  CHECK_FALSE(greedy.answer);
  w.run(held.unlock());
  w.run(redis.shutdown(0s));
  w.until([&] { return greedy.answer.has_value(); });
}

TEST_CASE("many grants at once share their questions") {
  replicated_world w;
  auto redis = w.make(1);
  w.run(redis.mutex("first").try_lock());
  const auto calls = [&] {
    const auto info = w.eye("INFO", "commandstats").to_string();
    const auto at = info.find("cmdstat_wait:calls=");
    return at == info.npos ? 0 : std::stoi(info.substr(at + 19));
  };
  const auto before = calls();
  std::vector<mutex> all;
  for (int i = 0; i < 100; ++i) all.push_back(redis.mutex("n" + std::to_string(i)));
  auto held = w.run(multi_lock(all).lock());
  CHECK(held.held());
  CHECK(calls() - before <= 5);
}
