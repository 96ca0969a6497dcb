// SPDX-License-Identifier: BSL-1.0
// A Redis without persistence is restarted and has forgotten the lock. Another takes it at once, while the first
// holder has heard nothing yet: two holders. The first is told as soon as it speaks with the server again; a write
// before that is refused.
#include <iostream>

#include "fenced_store.hpp"
#include "process.hpp"
#include "support/real_redis.hpp"  // starts and stops the server that forgets

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  fenced_store store(url);

  holdfast::test::real_redis forgetful;
  process a(forgetful.unix_url()), b(forgetful.unix_url());
  auto first = a.run(a.redis.fenced_mutex("account").lock());
  forgetful.restart_empty();
  auto second = b.run(b.redis.fenced_mutex("account").lock());
  std::cout << std::boolalpha << "A holds it: " << first.held() << ", B holds it: " << second.held() << '\n';
  std::cout << "B's token is larger, although the counter was lost: " << (second.token() > first.token()) << '\n';
  store.run(second.token().value(), {{"SET", "balance", "B"}});
  std::cout << "the store takes A's write: " << store.run(first.token().value(), {{"SET", "balance", "A"}}) << '\n';
  std::cout << "A is told: " << a.run(first.lost()).message() << '\n';
  std::cout << "A holds it: " << first.held() << ", B holds it: " << second.held() << '\n';
  std::cout << "the value is " << store.run_unfenced({"GET", "balance"}) << "'s\n";
}

// Output:
//   A holds it: true, B holds it: true
//   B's token is larger, although the counter was lost: true
//   the store takes A's write: false
//   A is told: the lock was lost
//   A holds it: false, B holds it: true
//   the value is B's
