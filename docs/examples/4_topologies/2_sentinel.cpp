// SPDX-License-Identifier: BSL-1.0
// A primary dies, and sentinels put a replica in its place. A holds two locks: one that the replica has heard of, and
// one that was granted a moment before the end. The first goes on. The second is forgotten: B gets it at the new
// primary while A still believes to hold it, and A is told when it has followed.
#include "stage.hpp"
#include "support/real_sentinel.hpp"  // starts a primary, two replicas and three sentinels
using kind = holdfast::event_kind;

int main() {
  holdfast::test::real_sentinel servers(holdfast::test::real_sentinel::calm);
  attentive_process a({.url = servers.url()}), b({.url = servers.url()});
  std::cout << std::boolalpha;

  auto early = a.run(a.redis.mutex("early").lock());
  servers.replicate();
  fall_behind(servers.replica(0));
  fall_behind(servers.replica(1));
  auto late = a.run(a.redis.mutex("late").lock());
  servers.lose_primary();

  b.run(b.redis.connect());
  const auto others_early = b.run(b.redis.mutex("early").try_lock());
  const auto others_late = b.run(b.redis.mutex("late").try_lock());
  std::cout << "early: A holds it: " << early.held() << ", B gets it: " << others_early.has_value() << '\n';
  std::cout << "late: A holds it: " << late.held() << ", B gets it: " << others_late.has_value() << '\n';

  a.run_until(kind::restored, "early");
  a.run_until(kind::lost, "late");
  std::cout << "A was suspended: " << a.heard(kind::suspended, "early") << '\n';
  std::cout << "A has followed: early: " << early.held() << ", late: " << late.held() << '\n';
}

// Output:
//   early: A holds it: true, B gets it: false
//   late: A holds it: true, B gets it: true
//   A was suspended: true
//   A has followed: early: true, late: false
