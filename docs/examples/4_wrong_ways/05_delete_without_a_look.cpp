// SPDX-License-Identifier: BSL-1.0
// A's TTL is over before its work is. Its DEL then frees the lock of B, and C comes in beside B.
#include "stage.hpp"

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  plain_redis redis(url);
  std::cout << std::boolalpha;

  redis("SET", "job", "A", "NX", "PX", 30'000);
  redis.expire("job");
  const bool b_has_it = redis("SET", "job", "B", "NX", "PX", 30'000) == "OK";
  redis("DEL", "job");  // A has done its work
  const bool c_has_it = redis("SET", "job", "C", "NX", "PX", 30'000) == "OK";
  std::cout << "wrong: B has it: " << b_has_it << ", C has it: " << c_has_it << '\n';
  redis("DEL", "job");

  process a(url), b(url), c(url);
  auto first = a.run(a.redis.simple_mutex("job").lock());
  redis.expire("job");
  auto second = b.run(b.redis.simple_mutex("job").lock());
  const auto said = a.run(holdfast::as_result(first.unlock()));  // deletes what is A's, and that is gone
  auto third = c.run(c.redis.simple_mutex("job").try_lock());
  std::cout << "right: B has it: " << second.held() << ", C has it: " << third.has_value();
  std::cout << ", A is told: " << said.error().message() << '\n';
}

// Output:
//   wrong: B has it: true, C has it: true
//   right: B has it: true, C has it: false, A is told: the lock was lost
