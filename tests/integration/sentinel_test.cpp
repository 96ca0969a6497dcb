// SPDX-License-Identifier: BSL-1.0
// Locks of a primary that sentinels announce, while nothing is wrong; what is wrong is in sentinel_faults_test.cpp.
#include "integration/every_kind.hpp"
#include "integration/sentinel_world.hpp"
#include "support/net.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;
using std::chrono::steady_clock;

namespace {

constexpr auto load = 10s;  // what a busy machine may add to an upper bound

std::vector<mutex> locks_of(const lock_kind& k, const client& c, const std::vector<std::string>& names) {
  std::vector<mutex> all;
  for (const auto& n : names) all.push_back(k(c, n));
  return all;
}

void be_woken(config& c) { c.poll_cap = 60s; }  // by a message or never

}  // namespace

TEST_CASE("locks of every kind are had, waited for and given back through sentinels") {
  sentinel_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  w.run(a.connect());
  each_kind_of_one_server([&](const lock_kind& k) {
    auto held = w.run(k(a).lock());
    CHECK(held.held());
    CHECK(w.locks() == std::vector<std::string>{"m"});
    CHECK_FALSE(w.run(k(b).try_lock()));
    CHECK(w.run(k(b).holder())->id == held.id());
    w.run(held.renew());
    started<lease> waits(w, k(b).lock());
    w.until([&] { return w.to_primary()("PUBSUB", "NUMSUB", k.channel).array().at(1) == 1; });
    w.run(held.unlock());
    w.until([&] { return waits.succeeded(); });
    if (held.token()) CHECK(waits.answer->value().token() > held.token());
    w.run(waits.answer->value().unlock());

    if (k.reentrant()) {
      const owner me;
      auto outer = w.run(k(a, "m", me).lock()), inner = w.run(k(a, "m", me).lock());
      CHECK(w.run(k(a, "m", me).hold_count(me)) == 2);
      w.run(inner.unlock());
      w.run(outer.unlock());
    }
    auto taken = w.run(k(a).lock());
    CHECK(w.run(k(b).force_unlock()));
    CHECK(w.code_of(taken.unlock()) == errc::lost);
    CHECK(w.locks().empty());
  });
}

TEST_CASE("several locks are had as one, and one of several, through sentinels") {
  sentinel_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  each_kind_of_one_server([&](const lock_kind& k) {
    auto both_of_them = w.run(multi_lock(locks_of(k, a, {"m", "n"})).lock());
    CHECK(w.locks().size() == 2);
    started<lease> either(w, any_of(locks_of(k, b, {"m", "n"})).lock());
    started<multi_lease> all(w, multi_lock(locks_of(k, b, {"n", "o"})).lock());
    w.until([&] { return w.to_primary()("PUBSUB", "CHANNELS", of_locks).array().size() >= 2; });
    CHECK_FALSE(either.answer);
    CHECK_FALSE(all.answer);
    w.run(both_of_them.unlock());
    w.until([&] { return either.succeeded(); });
    w.run(either.answer->value().unlock());
    w.until([&] { return all.succeeded(); });
    w.run(all.answer->value().unlock());
    CHECK(w.locks().empty());
  });
}

TEST_CASE("one sentinel that answers is enough to find the primary, and tells of the others") {
  sentinel_world w;
  const auto alone = [&](config& c) {
    c.url = "redis+sentinel://127.0.0.1:" + std::to_string(free_loopback_port()) +
            ",127.0.0.1:" + std::to_string(w.rig.sentinel(0).port()) + "/" + w.rig.name;
  };
  auto redis = w.make(alone);
  w.run(redis.connect());
  auto held = w.run(redis.mutex("m").lock());
  w.rig.replicate();
  w.rig.sentinel(0).kill();
  w.rig.fail_over();
  w.until([&] { return w.told(kind::primary_changed); });
  w.until([&] { return w.told(kind::restored); });
  w.run(held.unlock());
  CHECK(w.locks().empty());
}

TEST_CASE("servers and sentinels behind NAT are reached where the node_map says") {
  far_sentinels_world w;
  std::deque<proxy> nets;
  for (std::size_t n = 0; n < w.rig.servers; ++n) nets.emplace_back(w.rig.server(n), proxy_options{.tcp = true});
  auto redis = w.make([&](config& c) {
    for (std::size_t n = 0; n < w.rig.servers; ++n)
      c.node_map.emplace_back(w.address(w.rig.server(n).port()), w.address(nets[n].port()));
  });
  auto held = w.run(redis.mutex("m").lock());
  CHECK(nets[w.rig.primary_number()].count().commands["EVALSHA"] >= 1);
  w.rig.replicate();
  w.rig.fail_over();
  w.until([&] { return w.told(kind::restored); });
  w.run(held.unlock());
  CHECK(nets[w.rig.primary_number()].count().commands["EVALSHA"] >= 2);
}

TEST_CASE("sentinels that do not know the name, that are none, or that are not there, say so in time") {
  sentinel_world w;
  const auto port = [](std::uint16_t number) { return "127.0.0.1:" + std::to_string(number); };
  const auto failure = [&](const std::string& url) {
    auto redis = w.make([&](config& c) { c.url = url, c.connect_timeout = 1s; });
    const auto begun = steady_clock::now();
    const auto text = text_of_failure([&] { w.run(redis.connect()); });
    CHECK(steady_clock::now() - begun < 2s + load);
    CHECK(text_of_failure([&] { w.run(redis.mutex("m").try_lock_for(300ms)); }) != "");
    return text;
  };
  const auto says = [&](const std::string& url, const std::string& part) {
    const auto text = failure(url);
    INFO(text);
    CHECK(text.find(part) != text.npos);
  };
  const auto sentinel = port(w.rig.sentinel(0).port()), server = port(w.rig.primary().port());
  says("redis+sentinel://" + sentinel + "/nobody", "nobody");
  says("redis+sentinel://" + server + "/mymaster", "redis://");
  says("redis://" + sentinel, "redis+sentinel://");
  says("redis+cluster://" + sentinel, "redis+sentinel://");
  says("redis+cluster://" + server, "redis://");
  const auto nowhere = port(free_loopback_port());
  says("redis+sentinel://" + nowhere + "/mymaster", nowhere);
}
