// SPDX-License-Identifier: BSL-1.0
// A primary of a cluster dies, and its replica takes its slots. A holds two locks there: one that the replica has heard
// of, and one that was granted a moment before the end. The first goes on; the second is forgotten, and B gets it. A
// third lock lives on another primary and goes on.
#include "stage.hpp"
#include "support/real_cluster.hpp"  // starts three primaries with a replica each
using kind = holdfast::event_kind;

int main() {
  holdfast::test::real_cluster servers;
  attentive_process a({.url = servers.url()}), b({.url = servers.url()});
  std::cout << std::boolalpha;

  const auto here = servers.name_on(0), there = servers.name_on(1);
  const auto late_name = "{" + here + "}:late";  // in braces: the same slot
  auto early = a.run(a.redis.mutex(here).lock()), elsewhere = a.run(a.redis.mutex(there).lock());
  servers.replicate();

  auto &primary = servers.node(0), &replica = servers.node(servers.partner_of(0));
  replica.stop();
  holdfast::test::raw_client{primary}("CLIENT", "KILL", "TYPE", "replica");  // what was sent to it is lost, too
  auto late = a.run(a.redis.mutex(late_name).lock());
  primary.kill();
  replica.cont();
  servers.wait_for_promotion(0);

  b.run(b.redis.connect());
  const auto others_early = b.run(b.redis.mutex(here).try_lock());
  const auto others_late = b.run(b.redis.mutex(late_name).try_lock());
  std::cout << "early: A holds it: " << early.held() << ", B gets it: " << others_early.has_value() << '\n';
  std::cout << "late: A holds it: " << late.held() << ", B gets it: " << others_late.has_value() << '\n';
  a.run_until(kind::restored, here);
  a.run_until(kind::lost, late_name);
  std::cout << "A has followed: early: " << early.held() << ", late: " << late.held()
            << ", elsewhere: " << elsewhere.held() << '\n';
}

// Output:
//   early: A holds it: true, B gets it: false
//   late: A holds it: true, B gets it: true
//   A has followed: early: true, late: false, elsewhere: true
