// SPDX-License-Identifier: BSL-1.0
#include "support/redisson_peer.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/catch.hpp"
#include "support/real_redis.hpp"
#include "support/skip.hpp"

using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

struct fixture {
  fixture() {
    if (!real_redis::available()) skip("no redis-server found");
    server.emplace();
    redis.emplace(*server);
  }
  std::optional<real_redis> server;
  std::optional<raw_client> redis;
};

}  // namespace

TEST_CASE("the peer's owner is a version 4 uuid and a thread") {
  const auto uuid = redisson_peer::new_uuid();
  CHECK(uuid.size() == 36);
  CHECK(uuid[14] == '4');
  CHECK(std::string("89ab").find(uuid[19]) != std::string::npos);
  CHECK(std::count(uuid.begin(), uuid.end(), '-') == 4);
  CHECK(redisson_peer::channel("a") == "redisson_lock__channel:{a}");
  CHECK(redisson_peer::channel("x{a}y") == "redisson_lock__channel:x{a}y");
  CHECK(redisson_peer::latch_key("a", "0f") == "redisson_unlock_latch:{a}:0f");
}

TEST_CASE_METHOD(fixture, "the peer leaves Redisson's hash and counts re-entries") {
  redisson_peer peer(*server), other(*server);
  CHECK(peer.try_lock("a", 20s));
  CHECK(peer.try_lock("a", 10s));
  CHECK((*redis)("HGETALL", "a").strings() == std::vector<std::string>{peer.owner(), "2"});
  CHECK((*redis)("PTTL", "a").integer() <= 10'000);
  CHECK(other.acquire("a", 20s) > 9'000);
  CHECK_FALSE(peer.try_lock("a", 10s, 2));
  CHECK_FALSE(other.unlock("a"));
  CHECK(peer.renew("a"));
  CHECK((*redis)("PTTL", "a").integer() > 20'000);
  CHECK_FALSE(other.renew("a"));
  CHECK(peer.unlock("a") == false);
  CHECK(peer.hold_count("a") == 1);
  CHECK(peer.unlock("a") == true);
  CHECK((*redis)("DBSIZE") == 0);
}

TEST_CASE_METHOD(fixture, "the peer's repeated unlock is answered by the latch and its release is published") {
  redisson_peer peer(*server);
  raw_client listener(*server);
  listener.subscribe(redisson_peer::channel("a"));
  CHECK(peer.try_lock("a"));
  const auto request = redisson_peer::new_request();
  CHECK(peer.send_unlock("a", request) == true);
  CHECK(peer.send_unlock("a", request) == true);
  const auto message = listener.next_message(10s);
  REQUIRE(message);
  CHECK(message->payload == "0");
  CHECK_FALSE(listener.next_message(1ms));
  CHECK_FALSE(peer.force_unlock("a"));
  CHECK(peer.try_lock("a"));
  CHECK(peer.force_unlock("a"));
  CHECK(listener.next_message(10s));
}

TEST_CASE_METHOD(fixture, "a waiting peer is woken by the release") {
  redisson_peer holder(*server), waiter(*server);
  CHECK(holder.try_lock("a"));
  CHECK_FALSE(waiter.lock("a", 30s, 5ms));
  bool acquired = false;
  std::thread thread([&] { acquired = waiter.lock("a", 30s, 20s); });
  raw_client observer(*server);
  while (observer("PUBSUB", "NUMSUB", redisson_peer::channel("a")).array().at(1) == 0) std::this_thread::yield();
  CHECK(holder.unlock("a") == true);
  thread.join();
  CHECK(acquired);
  CHECK(waiter.hold_count("a") == 1);
}
