// SPDX-License-Identifier: BSL-1.0
// Primaries that die, hang, are relieved or forget, and sentinels that are dead, unheard or wrong.
#include "integration/every_kind.hpp"
#include "integration/sentinel_world.hpp"
#include "support/net.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;
using std::chrono::steady_clock;

namespace {

constexpr auto load = 10s;         // what a busy machine may add to an upper bound
constexpr auto long_enough = 30s;  // a TTL that outlives a failover on such a machine
constexpr auto too_short = 800ms;  // and one that does not

const auto with_ttl = [](std::chrono::milliseconds ttl) { return [ttl](config& c) { c.ttl = ttl; }; };

/// Somebody who is no client of ours, and believes in this server.
bool grants(raw_client& server, const std::string& name) {
  return server.call({"SET", name, "stranger", "NX", "PX", "60000"}) == "OK";
}

bool has_lock(const real_redis& server, const std::string& name) { return raw_client(server)("EXISTS", name) == 1; }

/// It forgets what it knows, the epoch and the other sentinels too.
void tell(real_redis& sentinel, std::uint16_t port_of_primary) {
  raw_client ask(sentinel);
  ask("SENTINEL", "REMOVE", real_sentinel::name);
  ask("SENTINEL", "MONITOR", real_sentinel::name, "127.0.0.1", port_of_primary, 2);
}

}  // namespace

TEST_CASE("the lease of a primary that dies is suspended, and confirmed by the next one, or lost at its end") {
  sentinel_world w;
  auto redis = w.make(with_ttl(long_enough)), brief = w.make(with_ttl(too_short)), other = w.make();
  std::vector<lease> held;
  each_kind_of_one_server([&](const lock_kind& k) { held.push_back(w.run(k(redis, k.name).lock())); });
  auto lost = w.run(brief.mutex("brief").lock());
  started<lease> waits(w, other.mutex("plain_lock").lock());
  w.until([&] { return w.to_primary()("PUBSUB", "NUMSUB", "redisson_lock__channel:{plain_lock}").array().at(1) == 1; });
  w.rig.replicate();
  const auto end_of = [](const lease& l) { return std::chrono::steady_clock::now() + l.valid_for(); };
  const auto before = end_of(held.back());
  w.rig.be_quick();
  w.rig.primary().kill();
  w.until([&] { return w.told(kind::suspended, held.size()); });
  w.until([&] { return !lost.held(); });
  CHECK(lost.state() == lease_state::lost);
  for (const auto& l : held) CHECK(l.held());
  w.until_announced();
  w.until([&] { return w.told(kind::restored, held.size()); });
  CHECK(w.told(kind::primary_changed));
  for (const auto& l : held) CHECK(end_of(l) > before);
  CHECK_FALSE(waits.answer);
  for (auto& l : held) w.run(l.unlock());
  w.until([&] { return waits.succeeded(); });
  w.run(waits.answer->value().unlock());
  CHECK(w.heard->count(kind::lost) == 1);
  for (const auto& e : w.heard->all())
    if (e.what == kind::lost) CHECK(e.name == "brief");
  CHECK(w.code_of(lost.unlock()) == errc::lost);
  w.until([&] { return w.locks().empty(); });
}

TEST_CASE("a primary that is relieved is left at the announcement, although it goes on to grant") {
  sentinel_world w;
  auto redis = w.make(with_ttl(long_enough)), other = w.make();
  auto held = w.run(redis.mutex("m").lock());
  w.run(other.connect());
  w.rig.replicate();
  const auto old = w.rig.primary_number();
  raw_client to_old(w.rig.server(old));
  w.rig.begin_fail_over();
  w.until_promoted();
  auto forgotten = w.run(redis.fenced_mutex("late").lock());  // by the old one, and nobody replicates it any more
  w.until_announced();
  w.until([&] { return w.told(kind::primary_changed) && w.told(kind::restored) && w.told(kind::lost); });
  CHECK_FALSE(forgotten.held());
  CHECK(held.held());
  CHECK(grants(to_old, "old"));
  CHECK(has_lock(w.rig.server(old), "late"));
  auto next = w.run(other.fenced_mutex("late").lock());
  auto late = w.run(other.mutex("old").try_lock());
  REQUIRE(late);
  CHECK(has_lock(w.rig.primary(), "late"));
  CHECK_FALSE(w.run(other.mutex("m").try_lock()));
  w.run(late->unlock());
  w.run(next.unlock());
  w.run(held.unlock());
  CHECK(w.locks().empty());
}

TEST_CASE("a primary that is made a replica by hand confirms nothing, loses nothing and grants nothing") {
  sentinel_world w;
  auto redis = w.make(with_ttl(long_enough)), other = w.make();
  std::vector<lease> held;
  each_kind_of_one_server([&](const lock_kind& k) { held.push_back(w.run(k(redis, k.name).lock())); });
  w.run(other.connect());
  w.rig.replicate();
  auto& primary = w.rig.primary();
  raw_client to_primary(primary);
  to_primary("REPLICAOF", "127.0.0.1", w.rig.replica(0).port());
  each_kind_of_one_server([&](const lock_kind& k) {
    CHECK(w.code_of(k(other, "free").try_lock_for(200ms)) == errc::unreachable);
    CHECK(text_of_failure([&] { (void)w.run(k(other, "free").try_lock()); }).find("too few") == std::string::npos);
    bool granted = false;  // it is busy, or refused
    (void)text_of_failure([&] { granted = w.run(k(other, k.name).try_lock_for(200ms)).has_value(); });
    CHECK_FALSE(granted);
  });
  started<lease> waits(w, other.mutex("free").lock());
  for (auto& l : held) CHECK(w.code_of(l.renew()) == errc::unreachable);
  CHECK_FALSE(waits.answer);
  for (const auto& l : held) CHECK(l.held());
  CHECK_FALSE(w.told(kind::lost));
  to_primary("REPLICAOF", "NO", "ONE");
  for (auto& l : held) w.until([&] { return !w.code_of(l.renew()); });
  for (auto& l : held) w.run(l.unlock());
  w.until([&] { return waits.succeeded(); });
  w.run(waits.answer->value().unlock());
  CHECK_FALSE(w.told(kind::lost));
  CHECK(w.locks().empty());
}

TEST_CASE("what a stopped primary says when it goes on is not read, and nobody comes back to it") {
  sentinel_world w;
  auto redis = w.make(with_ttl(long_enough));
  auto held = w.run(redis.mutex("m").lock());
  w.rig.replicate();
  auto& old = w.rig.primary();
  w.rig.be_quick();
  old.stop();
  started<lease> asks(w, redis.mutex("n").lock());  // lies in its socket
  w.until([&] { return w.told(kind::suspended); });
  w.until_announced();
  w.until([&] { return asks.succeeded(); });
  w.until([&] { return w.told(kind::restored); });
  CHECK(has_lock(w.rig.primary(), "n"));
  old.cont();
  raw_client to_old(old);
  w.until([&] { return grants(to_old, "old"); });
  auto late = w.make();
  w.run(late.connect());
  CHECK(w.run(late.mutex("old").try_lock()));
  CHECK_FALSE(w.run(late.mutex("m").try_lock()));
  CHECK_FALSE(w.run(late.mutex("n").try_lock()));
  w.run(asks.answer->value().unlock());
  w.run(held.unlock());
  CHECK_FALSE(w.told(kind::lost));
}

TEST_CASE("a primary that is back empty before it was missed has lost its leases, and they end at once") {
  sentinel_world w;
  auto redis = w.make();
  w.run(redis.connect());
  auto& primary = w.rig.primary();
  for (const auto n : {0, 1}) w.rig.replica(static_cast<std::size_t>(n)).stop();  // else they could be elected
  auto held = w.run(redis.mutex("m").lock());
  primary.restart_empty();
  w.until([&] { return w.told(kind::lost); });
  CHECK_FALSE(held.held());
  CHECK_FALSE(w.told(kind::primary_changed));
  CHECK(w.run(redis.mutex("m").try_lock()));
}

TEST_CASE("who is cut off from the sentinels together with an old primary is told, and strictly loses his leases") {
  far_sentinels_world w;
  auto trusting = w.make(with_ttl(3s));
  auto strict = w.make([](config& c) { c.ttl = 3s, c.sentinel.strict = true; });
  auto kept = w.run(trusting.mutex("m").lock()), lost = w.run(strict.mutex("n").lock());
  w.rig.replicate();
  for (auto& net : w.nets) net.hold(proxy::direction::to_client);
  const auto cut = steady_clock::now();
  w.until([&] { return w.told(kind::sentinels_unreachable, 2); }, 3s + load);
  w.until([&] { return w.told(kind::lost); });
  CHECK(steady_clock::now() - cut < 3s + 3s + load);
  CHECK_FALSE(lost.held());
  CHECK(kept.held());
  w.rig.begin_fail_over();
  w.until_announced();
  const auto renewed = kept.valid_for();
  w.until([&] { return kept.valid_for() > renewed; });  // by the old one: nobody has told us
  for (auto& net : w.nets) net.heal();
  w.until([&] { return w.told(kind::primary_changed, 2); });
  CHECK(w.run(strict.mutex("n").lock()).held());
}

TEST_CASE("leases go on without a majority of the sentinels, and so does the next failover once it is back") {
  sentinel_world w;
  auto redis = w.make(with_ttl(long_enough));
  auto held = w.run(redis.mutex("m").lock());
  w.rig.sentinel(0).kill();
  w.rig.sentinel(1).kill();
  w.until([&] { return w.told(kind::sentinels_unreachable); }, 3s + load);
  CHECK(w.heard->count(kind::sentinels_unreachable) == 1);
  w.run(held.renew());
  w.run(w.run(redis.mutex("n").lock()).unlock());
  w.rig.sentinel(0).restart();
  w.rig.sentinel(1).restart();
  w.rig.replicate();
  w.rig.fail_over();
  w.until([&] { return w.told(kind::restored); });
  w.run(held.unlock());
  CHECK_FALSE(w.told(kind::lost));
  CHECK(w.locks().empty());
}

TEST_CASE("a sentinel that tells an old primary, a replica or nobody is not believed, and harms nobody") {
  sentinel_world w;
  auto redis = w.make(with_ttl(long_enough));
  auto held = w.run(redis.mutex("m").lock());
  w.rig.replicate();
  const auto old = w.rig.primary_number();
  w.rig.fail_over();
  w.until([&] { return w.told(kind::restored); });
  raw_client(w.rig.server(old))("REPLICAOF", "127.0.0.1", w.rig.primary().port());  // the sentinels would take 10 s
  auto& wrong = w.rig.sentinel(2);
  const auto only_wrong = [&](config& c) {
    c.url = "redis+sentinel://127.0.0.1:" + std::to_string(wrong.port()) + "/" + w.rig.name;
    c.connect_timeout = 500ms;
  };
  for (const auto port : {w.rig.server(old).port(), free_loopback_port()}) {
    // The others would set it right within two seconds.
    tell(wrong, port);
    auto late = w.make();
    auto lock = w.run(late.mutex("n").try_lock());
    REQUIRE(lock);
    CHECK_FALSE(w.run(late.mutex("m").try_lock()));
    for (const auto n : {0, 1}) w.rig.sentinel(static_cast<std::size_t>(n)).stop();
    tell(wrong, port);
    CHECK(w.code_of(w.make(only_wrong).connect()) == errc::unreachable);
    w.run(held.renew());
    for (const auto n : {0, 1}) w.rig.sentinel(static_cast<std::size_t>(n)).cont();
    w.run(lock->unlock());
  }
  CHECK(w.heard->count(kind::primary_changed) == 1);
  w.run(held.unlock());
  CHECK_FALSE(w.told(kind::lost));
}
