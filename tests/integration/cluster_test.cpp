// SPDX-License-Identifier: BSL-1.0
// Locks in a cluster, while nothing is wrong; what is wrong is in cluster_faults_test.cpp.
#include "integration/cluster_world.hpp"
#include "integration/every_kind.hpp"
#include "lua_scripts.hpp"
#include "support/least_rights.hpp"
#include "support/proxy.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;

namespace {

std::vector<mutex> locks_of(const lock_kind& k, const client& c, const std::vector<std::string>& names) {
  std::vector<mutex> all;
  for (const auto& n : names) all.push_back(k(c, n));
  return all;
}

void be_woken(config& c) { c.poll_cap = 60s; }  // by a message or never

/// One name on each primary.
std::vector<std::string> everywhere(cluster_world& w) { return {w.rig.name_on(0), w.rig.name_on(1), w.rig.name_on(2)}; }

}  // namespace

TEST_CASE("locks of every kind are had, waited for and given back on each primary of a cluster") {
  calm_cluster_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  w.run(a.connect());
  each_kind_of_one_server([&](const lock_kind& k) {
    for (const auto& m : everywhere(w)) {
      INFO(m);
      auto held = w.run(k(a, m).lock());
      CHECK(w.exists(m));
      CHECK_FALSE(w.run(k(b, m).try_lock()));
      CHECK(w.run(k(b, m).holder())->id == held.id());
      w.run(held.renew());
      started<lease> waits(w, k(b, m).lock());
      w.until([&] { return w.awaited(k.channel, m); });
      w.run(held.unlock());
      w.until([&] { return waits.succeeded(); });
      if (held.token()) CHECK(waits.answer->value().token() > held.token());
      w.run(waits.answer->value().unlock());

      if (k.reentrant()) {
        const owner me;
        auto outer = w.run(k(a, m, me).lock()), inner = w.run(k(a, m, me).lock());
        CHECK(w.run(k(a, m, me).hold_count(me)) == 2);
        w.run(inner.unlock());
        w.run(outer.unlock());
      }
      auto taken = w.run(k(a, m).lock());
      CHECK(w.run(k(b, m).force_unlock()));
      CHECK(w.code_of(taken.unlock()) == errc::lost);
    }
  });
  CHECK(w.locks().empty());
}

TEST_CASE("several locks are had as one, and one of several, over all primaries of a cluster") {
  calm_cluster_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  const auto names = everywhere(w);
  each_kind_of_one_server([&](const lock_kind& k) {
    auto all_of_them = w.run(multi_lock(locks_of(k, a, names)).lock());
    CHECK(w.locks().size() == 3);
    started<lease> any(w, any_of(locks_of(k, b, names)).lock());
    for (const auto& m : names) w.until([&] { return w.awaited(k.channel, m); });
    CHECK_FALSE(any.answer);
    w.run(all_of_them.unlock());
    w.until([&] { return any.succeeded(); });
    started<multi_lease> all(w, multi_lock(locks_of(k, a, names)).lock());
    w.until([&] { return w.awaited(k.channel, any.answer->value().name()); });
    w.run(any.answer->value().unlock());
    w.until([&] { return all.succeeded(); });
    w.run(all.answer->value().unlock());
    CHECK(w.locks().empty());
  });
}

TEST_CASE("many leases of one cluster are renewed, those of one slot together and those of each slot for themselves") {
  calm_cluster_world w;
  auto redis = w.make([](config& c) { c.ttl = 3s; });
  std::vector<lease> held;
  for (std::size_t n = 0; n < 3; ++n)
    for (const auto& m : w.rig.names_on(n, 5))
      for (const auto* rest : {"", "2"}) held.push_back(w.run(redis.fenced_mutex("{" + m + "}" + rest).lock()));
  for (const auto& l : held) w.until([&] { return l.valid_for() < 2300ms; });
  for (const auto& l : held) w.until([&] { return l.valid_for() > 2400ms; });
  CHECK_FALSE(w.told(kind::renewal_failed));
  for (auto& l : held) w.run(l.unlock());
  CHECK(w.locks().empty());
}

TEST_CASE("a waiter in a cluster hears both words, if its client is told to listen for both") {
  calm_cluster_world w;
  const auto m = w.rig.name_on(0);
  auto node = w.to(0);
  for (const auto mode : {pubsub_mode::classic, pubsub_mode::sharded, pubsub_mode::both})
    for (const auto* word : {"PUBLISH", "SPUBLISH"}) {
      const bool sharded = word[0] == 'S';
      if (sharded && node.call({"SPUBLISH", m, ""}).is_error()) continue;  // before Redis 7
      const bool heard = mode == pubsub_mode::both || (mode == pubsub_mode::sharded) == sharded;
      if (!heard) continue;
      auto redis = w.make([&](config& c) { c.poll_cap = 60s, c.cluster.pubsub = mode; });
      node("HSET", m, by_hand::stranger, 1);
      node("PEXPIRE", m, 60'000);
      started<lease> waits(w, redis.mutex(m).lock());
      w.until([&] { return w.awaited(every_kind()[0].channel, m); });
      node("DEL", m);
      w.until([&] {
        node(word, "redisson_lock__channel:{" + m + "}", "0");
        return waits.succeeded();
      });
      w.run(waits.answer->value().unlock());
    }
}

TEST_CASE("a waiter that listens for both words asks once for each release that is told by both") {
  calm_cluster_world w;
  const auto m = w.rig.name_on(0), channel = "redisson_lock__channel:{" + m + "}";
  auto node = w.to(0);
  if (node.call({"SPUBLISH", m, ""}).is_error()) return;  // before Redis 7
  auto redis = w.make([](config& c) { c.poll_cap = 60s, c.cluster.pubsub = pubsub_mode::both; });
  const auto take = [&] {
    node("HSET", m, by_hand::stranger, 1);
    node("PEXPIRE", m, 60'000);
  };
  const auto release = [&] { node("EVAL", detail::lua::release.body, 1, m, "both", channel, by_hand::stranger); };
  const auto asked = [&] { return w.calls(0, "evalsha"); };
  take();
  started<lease> waits(w, redis.mutex(m).lock());
  w.until([&] { return asked() == 2; });  // the second time when it is subscribed
  node("SPUBLISH", channel, "00");        // a copy alone
  w.run(redis.mutex(m).is_locked());      // meanwhile it has come
  CHECK(asked() == 2);
  node("MULTI");
  release();
  take();
  CHECK(node("EXEC").array().at(0).integer() == 1);  // the waiter counts once
  w.until([&] { return asked() >= 3; });
  w.run(redis.mutex(m).is_locked());
  CHECK(asked() == 3);
  release();
  w.until([&] { return waits.succeeded(); });
  CHECK(asked() == 4);
  w.run(waits.answer->value().unlock());
}

TEST_CASE("a cluster behind NAT is reached where its node_map says") {
  calm_cluster_world w;
  std::deque<proxy> nets;
  const auto here = [](std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); };
  for (std::size_t n = 0; n < w.rig.nodes; ++n) nets.emplace_back(w.rig.node(n), proxy_options{.tcp = true});
  auto redis = w.make([&](config& c) {
    c.url = "redis+cluster://" + here(nets[0].port());
    for (std::size_t n = 0; n < w.rig.nodes; ++n)
      c.node_map.emplace_back(here(w.rig.node(n).port()), here(nets[n].port()));
  });
  for (const auto& m : everywhere(w)) {
    const auto node = w.rig.owner_of(m), next = (node + 1) % w.rig.shards;
    w.run(w.run(redis.mutex(m).lock()).unlock());
    CHECK(nets[node].count().commands["EVALSHA"] >= 2);
    w.rig.move(m, next);
    const auto before = nets[next].count().commands["EVALSHA"];
    w.run(w.run(redis.mutex(m).lock()).unlock());
    CHECK(nets[next].count().commands["EVALSHA"] >= before + 2);
  }
}

TEST_CASE("a name whose keys would be of two slots is refused in a cluster, and so is a database") {
  calm_cluster_world w;
  auto redis = w.make();
  for (const auto* name : {"a{", "a}", "{}a", "a{}b", "a}{b"})
    CHECK(w.code_of(redis.mutex(name).try_lock()) == errc::invalid_name);
  for (const auto* name : {"a", "{a}b", "a{b}c", "a{b}{c}", "}a{b}c{"}) {
    auto held = w.run(redis.fenced_mutex(name).lock());
    w.run(held.unlock());
  }
  CHECK(w.locks().empty());
  CHECK(w.code_of_call([&] { w.make([](config& c) { c.url += "/1"; }); }) == errc::invalid_config);
}

TEST_CASE("a URL of another scheme is refused by a node of a cluster, with the one to use") {
  calm_cluster_world w;
  const auto node = "127.0.0.1:" + std::to_string(w.rig.node(0).port());
  for (const auto& url : {"redis://" + node, "redis+sentinel://" + node + "/mymaster"}) {
    auto redis = w.make([&](config& c) { c.url = url; });
    const auto text = text_of_failure([&] { w.run(redis.connect()); });
    INFO(text);
    CHECK(text.find("redis+cluster://") != text.npos);
  }
}

TEST_CASE("a TTL that is shorter than a failover of the cluster is told once by each client") {
  least_rights::skip_if_in_force("CONFIG GET is withheld, because it shows passwords");
  cluster_world w;  // cluster-node-timeout 1 s
  const auto use = [&](std::chrono::milliseconds ttl) {
    auto redis = w.make([&](config& c) { c.ttl = ttl; });
    w.run(redis.connect());
    for (const auto* name : {"a", "b", "c", "d"}) w.run(w.run(redis.mutex(name).lock()).unlock());
  };
  use(7'520ms);
  CHECK_FALSE(w.told(event_kind::ttl_shorter_than_failover));
  use(7'519ms);
  CHECK(w.heard->count(event_kind::ttl_shorter_than_failover) == 1);
}
