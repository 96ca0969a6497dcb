// SPDX-License-Identifier: BSL-1.0
// What it is worth that replicas have a grant, and what not.
#include "integration/sentinel_world.hpp"
#include "support/net.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

const auto with_replicas = [](unsigned count) { return [count](config& c) { c.ttl = 30s, c.min_replicas = count; }; };

/// The first replica is the one to be elected, and hears no more of the primary.
void cut_off_the_next(sentinel_world& w) {
  raw_client next(w.rig.replica(0));
  next("CONFIG", "SET", "replica-priority", 1);
  next("REPLICAOF", "127.0.0.1", free_loopback_port());
  raw_client primary(w.rig.primary());
  w.until([&] { return primary("INFO", "replication").to_string().find("connected_slaves:1") != std::string::npos; });
}

}  // namespace

TEST_CASE("a grant that all replicas must have outlives the failover to any of them") {
  sentinel_world w;
  auto redis = w.make(with_replicas(2));
  auto held = w.run(redis.fenced_mutex("m").lock());
  for (const std::size_t n : {0, 1}) CHECK(raw_client(w.rig.replica(n))("EXISTS", "m") == 1);
  auto& old = w.rig.primary();
  w.rig.be_quick();
  old.kill();
  w.until_announced();
  CHECK(held.held());
  CHECK(held.state() == lease_state::suspended);  // one replica is left, and cannot extend it alone
  old.restart();
  raw_client{old}("REPLICAOF", "127.0.0.1", w.rig.primary().port());
  w.until([&] { return w.told(kind::restored); }, 25s);
  CHECK(held.held());
  CHECK_FALSE(w.told(kind::lost));
}

TEST_CASE("a grant that one of two replicas has is lost if the other is elected") {
  sentinel_world w;
  auto redis = w.make(with_replicas(1)), careful = w.make(with_replicas(2));
  cut_off_the_next(w);
  const auto other = w.rig.replica_number(1);
  auto held = w.run(redis.mutex("m").lock());
  CHECK(raw_client(w.rig.server(other))("EXISTS", "m") == 1);
  CHECK(w.code_of(careful.mutex("n").try_lock()) == errc::not_replicated);
  w.until([&] { return w.locks() == std::vector<std::string>{"m"}; });  // it is given back
  w.rig.be_quick();
  w.rig.primary().kill();
  w.until_announced();
  REQUIRE(w.rig.primary_number() != other);
  w.until([&] { return w.told(kind::lost); });
  CHECK_FALSE(held.held());
}

TEST_CASE("a lease that too few replicas renew ends by its TTL") {
  sentinel_world w;
  auto redis = w.make([](config& c) { c.ttl = 2s, c.min_replicas = 1; });
  auto held = w.run(redis.mutex("m").lock());
  for (const std::size_t n : {0, 1}) raw_client(w.rig.replica(n))("REPLICAOF", "127.0.0.1", free_loopback_port());
  w.until([&] { return w.told(kind::lost); });
  CHECK_FALSE(held.held());
  CHECK(w.code_of(redis.mutex("n").try_lock()) == errc::not_replicated);
}
