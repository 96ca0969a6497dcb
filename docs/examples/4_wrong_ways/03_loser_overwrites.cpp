// SPDX-License-Identifier: BSL-1.0
// Two clients take over an ended lock by GETSET. One wins; the other learns that it lost, but its value stands there
// now. The winner's unlock does not find its own value, and nobody frees the lock.
#include "stage.hpp"

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  plain_redis redis(url);
  std::cout << std::boolalpha;

  const long long ended = 100, until_a = 200, until_b = 201;  // by whichever clock: both see that `ended` is over
  redis("SET", "job", ended);
  std::cout << "wrong: A gets it: " << (redis("GETSET", "job", until_a).integer() == ended);
  std::cout << ", B gets it: " << (redis("GETSET", "job", until_b).integer() == ended);
  const bool is_mine = redis("GET", "job").integer() == until_a;  // what A asks before its DEL
  std::cout << ", A may unlock: " << is_mine << ", it is free then: " << (redis("EXISTS", "job") == 0) << '\n';
  redis("DEL", "job");

  process a(url), b(url);
  auto lease = a.run(a.redis.simple_mutex("job").lock());
  std::cout << "right: A gets it: " << lease.held();
  std::cout << ", B gets it: " << b.run(b.redis.simple_mutex("job").try_lock()).has_value();
  const auto unlocked = a.run(holdfast::as_result(lease.unlock()));  // an attempt that failed has written nothing
  std::cout << ", A may unlock: " << unlocked.has_value() << ", it is free then: " << (redis("EXISTS", "job") == 0)
            << '\n';
}

// Output:
//   wrong: A gets it: true, B gets it: false, A may unlock: false, it is free then: false
//   right: A gets it: true, B gets it: false, A may unlock: true, it is free then: true
