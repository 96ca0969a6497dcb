// SPDX-License-Identifier: BSL-1.0
// Redis measures TTLs with the wall clock of its machine. Set forward, it ends a lease early: another gets the lock
// while the first holder's own clock says that it still has it. The first is told at its next renewal; a write before
// that is refused.
#include <iostream>

#include "fenced_store.hpp"
#include "process.hpp"
#include "support/real_redis.hpp"     // starts the server with …
#include "support/stepped_clock.hpp"  // … a clock of its own
using namespace std::chrono_literals;

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  fenced_store store(url);

  holdfast::test::stepped_clock clock(HOLDFAST_CLOCK_SHIM);
  holdfast::test::redis_options options;
  options.environment = clock.environment();
  const holdfast::test::real_redis stepped(options);
  process a(stepped.unix_url()), b(stepped.unix_url());
  auto first = a.run(a.redis.fenced_mutex("account").lock({.ttl = 2s, .renew = true}));
  clock.step_to(1min);  // by hand, or by a time service that corrects a large error at once
  auto second = b.run(b.redis.fenced_mutex("account").lock());
  std::cout << std::boolalpha << "A holds it: " << first.held() << ", B holds it: " << second.held() << '\n';
  store.run(second.token().value(), {{"SET", "balance", "B"}});
  std::cout << "the store takes A's write: " << store.run(first.token().value(), {{"SET", "balance", "A"}}) << '\n';
  std::cout << "A is told: " << a.run(first.lost()).message() << '\n';
  std::cout << "A holds it: " << first.held() << ", B holds it: " << second.held() << '\n';
  std::cout << "the value is " << store.run_unfenced({"GET", "balance"}) << "'s\n";
}

// Output:
//   A holds it: true, B holds it: true
//   the store takes A's write: false
//   A is told: the lock was lost
//   A holds it: false, B holds it: true
//   the value is B's
