// SPDX-License-Identifier: BSL-1.0
// A looks whether the lock is its own and then deletes it: two commands. The TTL can be over between the two.
#include "stage.hpp"

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  plain_redis redis(url);
  std::cout << std::boolalpha;

  redis("SET", "job", "A", "NX", "PX", 30'000);
  const bool is_mine = redis("GET", "job") == "A";
  redis.expire("job");
  const bool b_has_it = redis("SET", "job", "B", "NX", "PX", 30'000) == "OK";
  if (is_mine) redis("DEL", "job");
  std::cout << "wrong: B has it: " << b_has_it << ", its key is there: " << (redis("EXISTS", "job") == 1) << '\n';
  redis("DEL", "job");

  process a(url), b(url);
  auto first = a.run(a.redis.simple_mutex("job").lock());
  redis.expire("job");
  auto second = b.run(b.redis.simple_mutex("job").lock());
  const auto said = a.run(holdfast::as_result(first.unlock()));  // looks and deletes in one script
  std::cout << "right: B has it: " << second.held() << ", its key is there: " << (redis("EXISTS", "job") == 1);
  std::cout << ", A is told: " << said.error().message() << '\n';
}

// Output:
//   wrong: B has it: true, its key is there: false
//   right: B has it: true, its key is there: true, A is told: the lock was lost
