// SPDX-License-Identifier: BSL-1.0
// Two waiters see that a lock has ended. Each deletes it and takes it anew: the second deletes the first one's.
#include "stage.hpp"

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  plain_redis redis(url);
  std::cout << std::boolalpha;

  const long long ended = 100, now = 101;
  redis("SET", "job", ended);
  const bool a_sees = redis("GET", "job").integer() < now, b_sees = redis("GET", "job").integer() < now;
  if (a_sees) redis("DEL", "job");
  std::cout << "wrong: A gets it: " << (redis("SETNX", "job", now + 10) == 1);
  if (b_sees) redis("DEL", "job");
  std::cout << ", B gets it: " << (redis("SETNX", "job", now + 10) == 1) << '\n';
  redis("DEL", "job");

  process dead(url), a(url), b(url);
  auto old = dead.run(dead.redis.simple_mutex("job").lock());
  redis.expire("job");  // the server removes what has ended: no client has to
  auto lease = a.run(a.redis.simple_mutex("job").try_lock());
  std::cout << "right: A gets it: " << lease.has_value();
  std::cout << ", B gets it: " << b.run(b.redis.simple_mutex("job").try_lock()).has_value() << '\n';
}

// Output:
//   wrong: A gets it: true, B gets it: true
//   right: A gets it: true, B gets it: false
