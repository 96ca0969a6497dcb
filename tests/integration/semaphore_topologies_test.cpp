// SPDX-License-Identifier: BSL-1.0
// Permits in a cluster, behind sentinels, with replicas that must have them, and with few permissions.
#include <string>
#include <vector>

#include "integration/cluster_world.hpp"
#include "integration/locker.hpp"
#include "integration/sentinel_world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

void be_woken(config& c) { c.poll_cap = 60s; }  // by a message or never

/// Three permits of this name are had by two clients, waited for and given back.
template <class World>
void use_permits(World& w, const client& first, const client& second, const std::string& name) {
  INFO(name);
  const auto a = first.expirable_semaphore(name, 3), b = second.expirable_semaphore(name, 3);
  auto two = w.run(a.acquire(2)), one = w.run(b.acquire());
  CHECK_FALSE(w.run(b.try_acquire()));
  CHECK(w.run(a.available()) == 0);
  w.run(two.renew());
  started<lease> all(w, b.acquire(3));
  w.run(two.unlock());
  CHECK_FALSE(all.answer);
  w.run(one.unlock());
  w.until([&] { return all.succeeded(); });
  w.run(b.set_permits(4));
  CHECK(w.run(a.available()) == 1);
  CHECK(w.run(a.force_release()) == 3);
  CHECK(w.code_of(all.answer->value().unlock()) == errc::lost);
  CHECK(w.run(a.available()) == 4);
}

struct replicated_world : client_side {
  static redis_options without_delay() {
    redis_options o;
    o.tcp = true;
    o.arguments = {"--repl-diskless-sync-delay", "0"};
    return o;
  }
  static redis_options replica_of(const real_redis& primary) {
    redis_options o;
    o.arguments = {"--replicaof", "127.0.0.1", std::to_string(primary.port())};
    return o;
  }
  replicated_world() {
    eye("SET", "warm", "up");
    eye("WAIT", "1", "20000");
    REQUIRE(eye("WAIT", "1", "20000").integer() == 1);
  }
  std::string url() const override { return primary.url(); }

  real_redis primary{without_delay()};
  real_redis replica{replica_of(primary)};
  raw_client eye{primary}, other{replica};
};

/// Each call once. The first that a permission is withheld from ends it.
error_code use_all(world& w, const client& redis) {
  return world::code_of_call([&] {
    const auto semaphore = redis.expirable_semaphore("s", 3);
    auto two = w.run(semaphore.acquire(2));
    started<lease> all(w, semaphore.acquire(3));
    // The waiter listens as well. Otherwise the permits could come before the refusal of SUBSCRIBE.
    const auto waits = [&] {
      return w.eye("EXISTS", "holdfast_turn:{app:s}") == 1 &&
             w.eye("PUBSUB", "NUMSUB", "redisson_sc:{app:s}").array()[1] == 1;
    };
    w.until([&] { return all.answer || waits(); });
    w.run(two.renew());
    w.run(two.unlock());
    w.until([&] { return all.answer.has_value(); });
    auto had = std::move(*all.answer).value();
    w.run(semaphore.available());
    w.run(semaphore.set_permits(4));
    w.run(semaphore.force_release());
  });
}

}  // namespace

TEST_CASE("permits are had, waited for and given back on each primary of a cluster") {
  calm_cluster_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  for (std::size_t node = 0; node < 3; ++node) use_permits(w, a, b, w.rig.name_on(node));
}

TEST_CASE("permits are had, waited for and given back through sentinels") {
  sentinel_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  use_permits(w, a, b, "s");
}

TEST_CASE("a permit waits for its replicas, and its counter keeps no TTL") {
  replicated_world w;
  const auto strict = [](config& c) {
    c.min_replicas = 1;
    c.command_timeout = 5s;
  };
  auto a = w.make(strict), b = w.make(strict);
  use_permits(w, a, b, "s");
  auto held = w.run(a.expirable_semaphore("s", 3).acquire(2));
  CHECK(w.other("ZCARD", "{s}:timeout") == 2);
  CHECK(w.eye("PTTL", "s") == -1);
}

TEST_CASE("a user with the permissions of the header may do everything with permits, and needs each of them") {
  world w;
  locker user(w);
  const auto use = [&] {
    const auto redis = user.make_client();
    return use_all(w, redis);
  };
  user.check_needs({"~{app:*", "~holdfast_turn:{app:*", "&redisson_sc:{app:*", "+get", "+set", "+incrby", "+time",
                    "+zadd", "+zrem", "+zcard", "+zcount", "+zscore", "+zrangebyscore"},
                   use);
}
