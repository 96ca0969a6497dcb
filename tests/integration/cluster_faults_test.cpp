// SPDX-License-Identifier: BSL-1.0
// Slots that move, and nodes of a cluster that die, hang, are relieved or forget.
#include "integration/cluster_world.hpp"
#include "integration/every_kind.hpp"
#include "support/server_version.hpp"
#include "support/stepped_clock.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;
using std::chrono::steady_clock;

namespace {

constexpr auto load = 10s;         // what a busy machine may add to an upper bound
constexpr auto long_enough = 30s;  // a TTL that outlives a failover on such a machine

const auto with_ttl = [](std::chrono::milliseconds ttl) { return [ttl](config& c) { c.ttl = ttl; }; };
const auto patient = [](config& c) { c.ttl = long_enough, c.poll_cap = 60s; };  // woken by a message or never

long long refreshes(cluster_world& w) {
  long long all = 0;
  for (std::size_t n = 0; n < w.rig.nodes; ++n) all += w.calls(n, "cluster|slots");
  return all;
}

}  // namespace

TEST_CASE("a slot that has moved is followed, and a hundred calls that find it moved ask once for the map") {
  cluster_world w;
  auto redis = w.make();
  const auto m = w.rig.name_on(0);
  w.run(redis.connect());
  w.run(w.run(redis.mutex(m).lock()).unlock());
  const auto before = refreshes(w);
  w.rig.move(m, 1);
  std::deque<started<lease>> calls;
  for (int i = 0; i < 100; ++i) calls.emplace_back(w, redis.mutex("{" + m + "}" + std::to_string(i)).lock());
  for (auto& each : calls) w.until([&] { return each.succeeded(); });
  w.until([&] { return w.told(kind::slots_moved); });
  CHECK(refreshes(w) - before <= 2);  // each call of ours counts, that of the rig does not
  for (auto& each : calls) w.run(each.answer->value().unlock());
  CHECK(w.locks().empty());
}

TEST_CASE("a slot moves under its holder, its waiter and its releaser, there and back, and nobody notices") {
  cluster_world w;
  auto a = w.make(patient), b = w.make(patient);
  each_kind_of_one_server([&](const lock_kind& k) {
    const auto m = w.rig.name_on(0);
    const auto slot = w.rig.slot_of(m);
    for (const std::size_t to : {1, 0}) {
      auto held = w.run(k(a, m).lock());
      started<lease> waits(w, k(b, m).lock());
      w.until([&] { return w.awaited(k.channel, m); });
      w.rig.begin_move(slot, to);
      w.run(held.renew());
      w.rig.move_keys(slot, to);
      w.run(held.renew());
      w.rig.end_move(slot, to);
      w.run(held.renew());
      CHECK_FALSE(waits.answer);
      w.run(held.unlock());
      w.until([&] { return waits.succeeded(); });
      if (held.token()) CHECK(waits.answer->value().token() > held.token());
      w.run(waits.answer->value().unlock());
    }
  });
  CHECK_FALSE(w.told(kind::lost));
  CHECK(w.locks().empty());
}

TEST_CASE("permits are renewed and given back while their slot moves, and the next ones are had when it has moved") {
  cluster_world w;
  const auto patient_unlock = [](config& c) { patient(c), c.command_timeout = 20s; };
  auto a = w.make(patient_unlock), b = w.make(patient_unlock), quick = w.make();
  const auto s = w.rig.name_on(0);
  const auto slot = w.rig.slot_of(s);
  const auto of = [&](const client& c) { return c.expirable_semaphore(s, 4); };
  for (const std::size_t to : {1, 0}) {
    auto one = w.run(of(a).acquire()), next = w.run(of(a).acquire()), two = w.run(of(a).acquire(2));
    started<lease> waits(w, of(b).acquire());
    w.until([&] { return w.awaited("redisson_sc:{m}", s); });
    w.rig.begin_move(slot, to);
    w.run(two.renew());
    w.run(one.unlock());
    CHECK(w.code_of(of(quick).try_acquire()) == errc::server_refused);
    w.rig.move_keys(slot, to);
    w.run(two.renew());
    w.run(next.unlock());
    started<void> all_back(w, two.unlock());
    w.pass(50ms);
    CHECK_FALSE(all_back.answer);
    CHECK_FALSE(waits.answer);
    w.rig.end_move(slot, to);
    w.until([&] { return all_back.succeeded() && waits.succeeded(); });
    CHECK(w.run(of(quick).available()) == 3);
    w.run(waits.answer->value().unlock());
    CHECK(w.to_owner(s)("GET", s) == "4");
  }
  CHECK_FALSE(w.told(kind::lost));
}

TEST_CASE("the node that a slot is moving to is told the scripts while it asks for each command singly") {
  cluster_world w;
  auto redis = w.make();
  each_kind_of_one_server([&](const lock_kind& k) {
    const auto m = w.rig.name_on(0, k.name);
    const auto slot = w.rig.slot_of(m);
    auto held = w.run(k(redis, m).lock());
    w.rig.begin_move(slot, 1);
    w.rig.move_keys(slot, 1);
    w.to(1)("SCRIPT", "FLUSH");
    w.run(held.renew());
    CHECK(w.to(1)("KEYS", m).array().size() == 1);
    w.to(1)("SCRIPT", "FLUSH");
    w.run(held.unlock());
    CHECK(w.to(1)("KEYS", m).array().empty());
    w.to(1)("SCRIPT", "FLUSH");
    // Its counter is there and its lock is not: the servers refuse two such keys until the slot has moved.
    started<lease> again(w, k(redis, m).lock());
    if (held.token())
      w.pass(100ms);
    else
      w.until([&] { return again.succeeded(); });
    CHECK(again.answer.has_value() == !held.token());
    w.rig.end_move(slot, 1);
    w.until([&] { return again.succeeded(); });
    if (held.token()) CHECK(again.answer->value().token() > held.token());
    w.run(again.answer->value().unlock());
  });
  CHECK(w.locks().empty());
}

TEST_CASE("the replicas of the node that a slot is moving to count for what it grants and renews") {
  cluster_world w;
  auto redis = w.make([](config& c) { patient(c), c.min_replicas = 1; });
  const auto m = w.rig.name_on(0);
  const auto slot = w.rig.slot_of(m);
  auto held = w.run(redis.mutex(m).lock());
  w.rig.begin_move(slot, 1);
  w.rig.move_keys(slot, 1);
  w.run(held.renew());
  auto other = w.run(redis.mutex("{" + m + "}2").lock());
  w.rig.end_move(slot, 1);
  w.run(held.renew());
  w.run(held.unlock());
  w.run(other.unlock());
  CHECK(w.locks().empty());
}

TEST_CASE("a release on the node that a slot is moving to wakes a waiter when the slot has moved") {
  cluster_world w;
  auto a = w.make(patient), b = w.make(patient);
  const auto m = w.rig.name_on(0);
  const auto slot = w.rig.slot_of(m);
  auto held = w.run(a.mutex(m).lock());
  started<lease> waits(w, b.mutex(m).lock());
  w.until([&] { return w.awaited(m); });
  w.rig.begin_move(slot, 1);
  w.rig.move_keys(slot, 1);
  w.run(held.unlock());  // there, where nobody is subscribed
  w.rig.end_move(slot, 1);
  w.until([&] { return waits.succeeded(); });
  w.run(waits.answer->value().unlock());
  CHECK(w.locks().empty());
}

TEST_CASE("a waiter polls while its slot is moving") {
  cluster_world w;
  auto a = w.make(), b = w.make([](config& c) { c.poll_cap = 500ms; });
  const auto m = w.rig.name_on(0);
  const auto slot = w.rig.slot_of(m);
  auto held = w.run(a.mutex(m).lock());
  started<lease> waits(w, b.mutex(m).lock());
  w.until([&] { return w.awaited(m); });
  w.rig.begin_move(slot, 1);
  w.rig.move_keys(slot, 1);
  w.run(held.unlock());
  w.until([&] { return waits.succeeded(); }, 500ms + load);
  w.rig.end_move(slot, 1);
  w.run(waits.answer->value().unlock());
  CHECK(w.locks().empty());
}

TEST_CASE("a primary of a cluster that is relieved hands its leases and waiters on") {
  cluster_world w;
  auto a = w.make(patient), b = w.make(patient);
  each_kind_of_one_server([&](const lock_kind& k) {
    const auto m = w.rig.name_on(w.rig.primaries()[0], k.name);
    auto held = w.run(k(a, m).lock());
    started<lease> waits(w, k(b, m).lock());
    w.until([&] { return w.awaited(k.channel, m); });
    w.rig.replicate();
    w.rig.fail_over(w.rig.owner_of(m));
    w.run(held.renew());
    w.run(held.unlock());
    w.until([&] { return waits.succeeded(); });
    w.run(waits.answer->value().unlock());
  });
  CHECK_FALSE(w.told(kind::lost));
  CHECK(w.locks().empty());
}

TEST_CASE("a shard that dies suspends the leases of all while the cluster says that it is down, and no longer") {
  cluster_world w;
  auto redis = w.make(with_ttl(long_enough));
  std::vector<lease> held;
  for (std::size_t n = 0; n < 3; ++n) held.push_back(w.run(redis.mutex(w.rig.name_on(n)).lock()));
  w.rig.replicate();
  w.rig.node(0).kill();
  started<lease> asks(w, redis.mutex(w.rig.name_on(1, "other")).lock());
  w.until([&] { return w.rig.promoted(0); }, 20s);
  for (auto& l : held) w.until([&] { return !w.code_of(l.renew()); });
  w.until([&] { return asks.succeeded(); });
  w.until([&] { return w.heard->count(kind::restored) == w.heard->count(kind::suspended); });
  CHECK_FALSE(w.told(kind::lost));
  for (auto& l : held) w.run(l.unlock());
  w.run(asks.answer->value().unlock());
  CHECK(w.locks().empty());
}

TEST_CASE("a shard that dies without a replica loses its leases at their end, and its callers have their deadlines") {
  cluster_world w;
  w.rig.configure("cluster-require-full-coverage", "no");
  auto redis = w.make(with_ttl(2s));
  const auto m = w.rig.name_on(0), n = w.rig.name_on(1), other = w.rig.name_on(0, "other");
  auto gone = w.run(redis.mutex(m).lock()), kept = w.run(redis.mutex(n).lock());
  w.rig.node(w.rig.partner_of(0)).kill();
  w.rig.node(0).kill();
  const auto died = steady_clock::now();
  CHECK(w.code_of(redis.mutex(other).try_lock_for(300ms)) == errc::unreachable);
  w.until([&] { return w.told_of(m, kind::lost); });
  CHECK(steady_clock::now() - died < 2s + load);
  CHECK_FALSE(gone.held());
  CHECK(kept.held());
  w.pass(1s);  // others renew meanwhile
  CHECK_FALSE(w.told_of(n, kind::suspended));
  w.run(kept.unlock());
  started<lease> waits(w, redis.mutex(m).lock());
  w.pass(100ms);
  CHECK_FALSE(waits.answer);
  w.rig.reset();
  w.until([&] { return waits.succeeded(); });
  w.run(waits.answer->value().unlock());
}

TEST_CASE("a shard that is dead keeps no lock of another one from any_of") {
  cluster_world w;
  w.rig.configure("cluster-require-full-coverage", "no");
  auto redis = w.make(patient);
  std::vector<mutex> some{redis.mutex(w.rig.name_on(0)), redis.mutex(w.rig.name_on(1)), redis.mutex(w.rig.name_on(2))};
  for (auto& m : some) w.run(w.run(m.lock()).unlock());
  w.rig.node(w.rig.partner_of(0)).kill();
  w.rig.node(0).kill();
  for (int i = 0; i < 5; ++i) {
    auto one = w.run(any_of(some).lock()), two = w.run(any_of(some).try_lock_for(20s)).value();
    CHECK(one.name() != two.name());
    w.run(one.unlock());
    w.run(two.unlock());
  }
}

TEST_CASE("a node that hangs costs the leases of the others nothing") {
  cluster_world w;
  w.rig.configure("cluster-require-full-coverage", "no");
  auto redis = w.make(with_ttl(3s));
  const auto hung = w.rig.name_on(0);
  std::vector<lease> held;
  for (const std::size_t n : {1, 2})
    for (const auto& m : w.rig.names_on(n, 10)) held.push_back(w.run(redis.mutex(m).lock()));
  auto suspended = w.run(redis.mutex(hung).lock());
  w.rig.node(0).stop();
  w.until([&] { return w.told_of(hung, kind::suspended); });
  auto least = 3000ms;
  const auto end = steady_clock::now() + 3s;
  w.until([&] {
    for (const auto& l : held) least = std::min(least, l.valid_for());
    return steady_clock::now() > end;
  });
  CHECK(least > 1300ms);  // two thirds, where the machine is idle
  for (const auto& l : held) {
    CHECK_FALSE(w.told_of(l.name(), kind::suspended));
    CHECK_FALSE(w.told_of(l.name(), kind::renewal_failed));
  }
  for (auto& l : held) w.run(l.unlock());
}

TEST_CASE("a replica whose clock is ahead forgets a lease when it is promoted, and its holder is told") {
  need_redis_7("replicas are sent the time of an expiry, not how long it takes");
  stepped_clock clock(HOLDFAST_CLOCK_SHIM);
  clock.step_to(60s);
  cluster_world w([&](std::size_t n, redis_options& o) {
    if (n == real_cluster::partner_of(0)) o.environment = clock.environment();
  });
  auto redis = w.make(with_ttl(3s)), other = w.make();
  const auto m = w.rig.name_on(0), n = w.rig.name_on(1);
  auto gone = w.run(redis.fenced_mutex(m).lock()), kept = w.run(other.mutex(n).lock());
  w.rig.replicate();
  w.rig.fail_over(0);
  w.until([&] { return w.told_of(m, kind::lost); });
  CHECK_FALSE(gone.held());
  auto next = w.run(other.fenced_mutex(m).lock());
  CHECK(next.token() > gone.token());
  CHECK(kept.held());
  w.run(kept.unlock());
}
