// SPDX-License-Identifier: BSL-1.0
// A grant that counts when a replica has it. One of two is enough here, and it is the wrong one: the sentinels put the
// other in the primary's place, which their operator prefers, and which was late. Where all replicas that can be
// elected must have it, that cannot happen; but then one that stands still stops all grants.
#include "stage.hpp"
#include "support/real_sentinel.hpp"  // starts a primary, two replicas and three sentinels
using kind = holdfast::event_kind;

int main() {
  holdfast::test::real_sentinel servers(holdfast::test::real_sentinel::calm);
  auto &preferred = servers.replica(0), &acknowledging = servers.replica(1);
  const auto preferred_number = servers.replica_number(0);
  attentive_process a({.url = servers.url(), .min_replicas = 1}), b({.url = servers.url()});
  std::cout << std::boolalpha;

  holdfast::test::raw_client{preferred}("CONFIG", "SET", "replica-priority", 1);  // the lowest is the first choice
  fall_behind(preferred);
  auto lease = a.run(a.redis.mutex("account").lock());  // the other one has it
  servers.lose_primary();
  std::cout << "the preferred one was elected: " << (servers.primary_number() == preferred_number) << '\n';
  b.run(b.redis.connect());
  const auto second = b.run(b.redis.mutex("account").try_lock());
  std::cout << "A holds it: " << lease.held() << ", B holds it: " << second.has_value() << '\n';
  a.run_until(kind::lost, "account");
  std::cout << "A has followed, and holds it: " << lease.held() << '\n';

  servers.replicate(1);  // one replica is left: it is all
  acknowledging.stop();
  const auto refused = a.run(holdfast::as_result(a.redis.mutex("report").try_lock()));
  std::cout << "no replica hears of it: " << refused.error().message() << '\n';
  acknowledging.cont();
  servers.replicate(1);
  std::cout << "it is taken: " << a.run(a.redis.mutex("report").is_locked()) << '\n';
}

// Output:
//   the preferred one was elected: true
//   A holds it: true, B holds it: true
//   A has followed, and holds it: false
//   no replica hears of it: not replicated
//   it is taken: false
