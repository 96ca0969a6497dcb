// SPDX-License-Identifier: BSL-1.0
// A lock without a TTL, "since we always unlock". The holder is killed, and everybody waits until somebody is called.
#include "stage.hpp"

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  plain_redis redis(url);
  std::cout << std::boolalpha;

  redis("SET", "job", "A", "NX");
  // A is killed in its section.
  const bool wrong_ends = redis("PTTL", "job") != -1;
  std::cout << "wrong: it ends without A: " << wrong_ends;
  std::cout << ", B gets it: " << (redis("SET", "job", "B", "NX") == "OK") << '\n';
  redis("DEL", "job");

  process a(url), b(url);
  auto lease = a.run(a.redis.simple_mutex("job").lock());  // 30 s, renewed as long as A lives
  // A is killed in its section: it runs no more.
  std::cout << "right: it ends without A: " << (redis("PTTL", "job") != -1);
  redis.expire("job");
  std::cout << ", B gets it: " << b.run(b.redis.simple_mutex("job").try_lock()).has_value() << '\n';
}

// Output:
//   wrong: it ends without A: false, B gets it: false
//   right: it ends without A: true, B gets it: true
