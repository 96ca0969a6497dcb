// SPDX-License-Identifier: BSL-1.0
// A asks a replica whether the lock is free. A replica tells what was, and this one has not heard of B yet.
#include "stage.hpp"
#include "support/real_redis.hpp"  // starts and stops the replica

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  plain_redis primary(url);
  holdfast::test::real_redis late;
  plain_redis replica(late.unix_url());
  replica("REPLICAOF", "127.0.0.1", 1);  // it has a primary, from which nothing has arrived

  std::cout << std::boolalpha;
  primary("SET", "job", "B", "NX", "PX", 30'000);
  std::cout << "wrong: B has it: " << (primary("GET", "job") == "B");
  std::cout << ", and A sees it free: " << replica("GET", "job").is_nil() << '\n';
  primary("DEL", "job");

  process a(late.unix_url()), b(url);
  auto lease = b.run(b.redis.simple_mutex("job").lock());
  const auto said = a.run(holdfast::as_result(a.redis.simple_mutex("job").try_lock()));
  std::cout << "right: B has it: " << lease.held() << ", and A is told: " << said.error().message() << '\n';
}

// Output:
//   wrong: B has it: true, and A sees it free: true
//   right: B has it: true, and A is told: the server is not a primary
