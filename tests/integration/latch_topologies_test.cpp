// SPDX-License-Identifier: BSL-1.0
// Latches in a cluster, through sentinels, and with few permissions.
#include <list>
#include <set>
#include <string>

#include "integration/cluster_world.hpp"
#include "integration/locker.hpp"
#include "integration/sentinel_world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

void be_woken(config& c) { c.poll_cap = 60s; }  // by a message or never
void be_patient(config& c) { c.command_timeout = 20s; }

/// Two clients count one latch down, and wait for it.
template <class World>
void use_latch(World& w, const client& first, const client& second, const std::string& name) {
  INFO(name);
  const auto a = first.latch(name), b = second.latch(name);
  CHECK(w.run(a.try_set(3)));
  CHECK_FALSE(w.run(b.try_set(1)));
  std::list<started<void>> all;
  all.emplace_back(w, a.arrive_and_wait());
  all.emplace_back(w, b.arrive_and_wait());
  w.until([&] { return w.run(a.count()) == 1; });
  for (const auto& each : all) CHECK_FALSE(each.answer);
  w.run(b.count_down());
  w.until([&] { return all.front().succeeded() && all.back().succeeded(); });
  CHECK(w.run(a.try_wait()));
}

}  // namespace

TEST_CASE("a latch is set, counted down and waited for on each primary of a cluster") {
  calm_cluster_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  std::set<std::size_t> owners;
  for (const auto* const name : {"l1", "l2", "l3", "l4", "l5", "l6"}) {
    owners.insert(w.rig.owner_of(name));
    use_latch(w, a, b, name);
  }
  CHECK(owners.size() == 3);
}

TEST_CASE("in a cluster a latch whose name has a brace is refused") {
  calm_cluster_world w;
  auto redis = w.make();
  for (const auto* const name : {"{l}:1", "l{", "l}"}) {
    INFO(name);
    CHECK(w.code_of(redis.latch(name).try_set(1)) == errc::invalid_name);
    CHECK(w.code_of(redis.latch(name).count_down()) == errc::invalid_name);
    CHECK(w.code_of(redis.latch(name).wait()) == errc::invalid_name);
  }
}

TEST_CASE("a count-down waits until its slot has moved, and counts once") {
  calm_cluster_world w;
  auto a = w.make(be_patient), b = w.make(be_patient);
  const auto slot = w.rig.slot_of("l");
  const auto to = (w.rig.owner_of("l") + 1) % 3;
  CHECK(w.run(a.latch("l").try_set(2)));
  started<void> waits(w, b.latch("l").wait());
  w.rig.begin_move(slot, to);
  started<void> counts(w, a.latch("l").count_down());
  w.pass(50ms);
  CHECK_FALSE(counts.answer);
  CHECK(w.run(b.latch("l").count()) == 2);
  w.rig.move_keys(slot, to);
  w.rig.end_move(slot, to);
  w.until([&] { return counts.succeeded(); });
  CHECK(w.run(b.latch("l").count()) == 1);
  w.run(b.latch("l").count_down());
  w.until([&] { return waits.succeeded(); });
}

TEST_CASE("a latch is set, counted down and waited for through sentinels") {
  sentinel_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  use_latch(w, a, b, "{l}:1");
}

TEST_CASE("a client of several primaries has no latch") {
  world w;
  real_redis second, third;
  config settings;
  settings.red_lock.primaries = {w.server.url(), second.url(), third.url()};
  settings.quiet = true;
  const client redis(w.io.get_executor(), settings);
  CHECK(w.code_of(redis.latch("l").try_wait()) == errc::invalid_config);
}

TEST_CASE("a user with the permissions of the header may do everything with a latch, and needs each of them") {
  world w;
  locker user(w);
  const auto use = [&] {
    const auto redis = user.make_client();
    return world::code_of_call([&] {
      const auto latch = redis.latch("l");
      const bool set = w.run(latch.try_set(2));
      CHECK(set);
      started<void> waits(w, latch.wait());
      w.until([&] {
        return waits.answer || w.eye("PUBSUB", "NUMSUB", "redisson_countdownlatch__channel__{app:l}").array()[1] == 1;
      });
      w.run(latch.count_down());
      w.run(latch.count_down());
      w.until([&] { return waits.answer.has_value(); });
      std::move(*waits.answer).value();
    });
  };
  user.check_needs({"~holdfast_done:{app:*", "&redisson_countdownlatch__channel__{app:*", "+get", "+set"}, use);
}
