// SPDX-License-Identifier: BSL-1.0
// The value is the thread's name, and two processes have a thread of that name: each takes the other's lock for its
// own.
#include "stage.hpp"

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  plain_redis redis(url);
  std::cout << std::boolalpha;

  // Looks and deletes in one step, as it should.
  const std::string unlock = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0";
  redis("SET", "job", "worker-1", "NX", "PX", 30'000);  // in process A
  redis.expire("job");
  redis("SET", "job", "worker-1", "NX", "PX", 30'000);  // in process B
  std::cout << "wrong: A frees B's: " << (redis("EVAL", unlock, 1, "job", "worker-1") == 1) << '\n';

  process a(url), b(url);
  holdfast::owner worker_of_a, worker_of_b;
  auto first = a.run(a.redis.simple_mutex("job", worker_of_a).lock());
  redis.expire("job");
  auto second = b.run(b.redis.simple_mutex("job", worker_of_b).lock());
  const auto said = a.run(holdfast::as_result(first.unlock()));  // 128 random bits, and a number never used before
  std::cout << "right: A frees B's: " << (redis("EXISTS", "job") == 0);
  std::cout << ", A is told: " << said.error().message() << '\n';
}

// Output:
//   wrong: A frees B's: true
//   right: A frees B's: false, A is told: the lock was lost
