// SPDX-License-Identifier: BSL-1.0
// The value says when the lock ends, and GETSET takes over what has ended. Each client compares with its own clock: one
// that is a second fast takes over what another holds.
#include "stage.hpp"

namespace {

/// The recipe of old: seconds by the client's own clock, which is `fast` seconds fast.
struct by_expiry {
  plain_redis& redis;
  long long fast;

  bool try_lock(long long time, long long ttl) {
    const auto now = time + fast, ends = now + ttl;
    if (redis("SETNX", "job", ends) == 1) return true;
    if (redis("GET", "job").integer() > now) return false;
    return redis("GETSET", "job", ends).integer() <= now;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  plain_redis redis(url);
  std::cout << std::boolalpha;

  by_expiry right_clock{redis, 0}, fast_clock{redis, 1};
  std::cout << "wrong: A gets 10 s at second 0: " << right_clock.try_lock(0, 10);
  std::cout << ", B gets it at second 9: " << fast_clock.try_lock(9, 10) << '\n';
  redis("DEL", "job");

  process a(url), b(url);
  auto lease = a.run(a.redis.simple_mutex("job").lock({.ttl = std::chrono::seconds(10)}));
  redis("PEXPIRE", "job", 1000);  // second 9. The server counts, and neither client's clock is asked.
  std::cout << "right: A has 10 s at second 0: " << lease.held();
  std::cout << ", B gets it at second 9: " << b.run(b.redis.simple_mutex("job").try_lock()).has_value() << '\n';
}

// Output:
//   wrong: A gets 10 s at second 0: true, B gets it at second 9: true
//   right: A has 10 s at second 0: true, B gets it at second 9: false
