// SPDX-License-Identifier: BSL-1.0
// SETNX, then EXPIRE: a process that dies between the two leaves a lock that nobody ever frees.
#include "stage.hpp"

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  plain_redis redis(url);
  std::cout << std::boolalpha;

  redis("SETNX", "job", "A");
  // EXPIRE job 30 should follow, but A dies here.
  std::cout << "wrong: it ends by itself: " << (redis("PTTL", "job").integer() > 0);
  std::cout << ", B gets it: " << (redis("SETNX", "job", "B") == 1) << '\n';
  redis("DEL", "job");

  process a(url), b(url);
  auto lease = a.run(a.redis.simple_mutex("job").lock());  // key and TTL by one command: there is no between
  // A dies here: it runs no more, so nobody renews.
  std::cout << "right: it ends by itself: " << (redis("PTTL", "job").integer() > 0);
  redis.expire("job");
  std::cout << ", B gets it: " << b.run(b.redis.simple_mutex("job").try_lock()).has_value() << '\n';
}

// Output:
//   wrong: it ends by itself: false, B gets it: false
//   right: it ends by itself: true, B gets it: true
