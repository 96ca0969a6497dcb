// SPDX-License-Identifier: BSL-1.0
// Elections in a cluster, through sentinels, and with few permissions.
#include <optional>
#include <set>
#include <string>

#include "integration/cluster_world.hpp"
#include "integration/locker.hpp"
#include "integration/sentinel_world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

using leader_now = std::optional<leader_info>;

void be_woken(config& c) { c.poll_cap = 60s; }  // by a message or never

/// Two clients campaign in one election, and one of them observes it.
template <class World>
void use_election(World& w, const client& first, const client& second, const std::string& name) {
  INFO(name);
  const auto a = first.election(name), b = second.election(name);
  started<leader_now> elected(w, b.next({}));
  auto lead = w.run(a.campaign("one"));
  w.until([&] { return elected.succeeded(); });
  auto known = elected.answer->value();
  REQUIRE(known);
  CHECK(known->term == lead.token());
  started<leader_now> changed(w, b.next(known));
  started<lease> waits(w, b.campaign("two"));
  w.pass(5ms);
  CHECK_FALSE((changed.answer || waits.answer));
  w.run(a.proclaim(lead, "one, ready"));
  w.until([&] { return changed.succeeded(); });
  CHECK(changed.answer->value()->value == "one, ready");
  w.run(lead.unlock());
  w.until([&] { return waits.succeeded(); });
  CHECK(waits.answer->value().token().value() > known->term);
  CHECK(w.run(a.leader())->value == "two");
}

}  // namespace

TEST_CASE("an election takes place on each primary of a cluster") {
  calm_cluster_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  std::set<std::size_t> owners;
  for (const auto* const name : {"l1", "l2", "l3", "l4", "l5", "l6", "{l}:1"}) {
    owners.insert(w.rig.owner_of(name));
    use_election(w, a, b, name);
  }
  CHECK(owners.size() == 3);
}

TEST_CASE("in a cluster an election whose name splits slots is refused by each call") {
  calm_cluster_world w;
  auto redis = w.make();
  const auto split = redis.election("a}");
  CHECK(w.code_of(split.campaign("v")) == errc::invalid_name);
  CHECK(w.code_of(split.candidate("v").try_lock()) == errc::invalid_name);
  CHECK(w.code_of(split.leader()) == errc::invalid_name);
  CHECK(w.code_of(split.next({})) == errc::invalid_name);
}

TEST_CASE("an observer and a candidate follow a slot that moves") {
  calm_cluster_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  auto lead = w.run(a.election("l").campaign("one"));
  started<leader_now> observes(w, b.election("l").next(w.run(b.election("l").leader())));
  started<lease> waits(w, b.election("l").campaign("two"));
  const auto slot = w.rig.slot_of("l");
  const auto to = (w.rig.owner_of("l") + 1) % 3;
  w.rig.begin_move(slot, to);
  w.rig.move_keys(slot, to);
  w.rig.end_move(slot, to);
  w.run(a.election("l").proclaim(lead, "one, moved"));
  w.until([&] { return observes.succeeded(); });
  w.run(lead.unlock());
  w.until([&] { return waits.succeeded(); });
}

TEST_CASE("an election takes place through sentinels") {
  sentinel_world w;
  auto a = w.make(be_woken), b = w.make(be_woken);
  use_election(w, a, b, "l");
}

TEST_CASE("a client of several primaries has no election") {
  world w;
  real_redis second, third;
  config settings;
  settings.red_lock.primaries = {w.server.url(), second.url(), third.url()};
  settings.quiet = true;
  const client redis(w.io.get_executor(), settings);
  CHECK(w.code_of(redis.election("l").leader()) == errc::invalid_config);
  CHECK(w.code_of(redis.election("l").campaign("v")) == errc::invalid_config);
}

TEST_CASE("a user with the permissions of the header may do everything with an election, and needs each of them") {
  world w;
  locker user(w);
  const auto use = [&] {
    const auto redis = user.make_client();
    return world::code_of_call([&] {
      const auto chief = redis.election("l");
      started<leader_now> observes(w, chief.next({}));
      w.until(
          [&] { return observes.answer || w.eye("PUBSUB", "NUMSUB", "holdfast_election:{app:l}").array()[1] == 1; });
      auto lead = w.run(chief.campaign("one"));
      w.until([&] { return observes.answer.has_value(); });
      std::move(*observes.answer).value();
      w.run(chief.proclaim(lead, "two"));
      CHECK(w.run(chief.leader())->value == "two");
      w.run(lead.unlock());
      lead = w.run(chief.campaign("three"));
      CHECK(w.run(chief.force_unlock()));
    });
  };
  user.check_needs({"~redisson_lock_token:{app:*", "&holdfast_election:{app:*", "+get", "+set", "+time"}, use);
}
