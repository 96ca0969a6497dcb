// SPDX-License-Identifier: BSL-1.0
// The RedMutex of redis-plus-plus and a simple_mutex of one name exclude each other. This program needs no
// redis-plus-plus: red_mutex sends the commands that RedMutex sends to one server.
#include <holdfast/blocking.hpp>
#include <mutex>
#include <thread>

#include "../4_wrong_ways/stage.hpp"

struct red_mutex {
  plain_redis redis;
  std::string name, value;  // RedMutex draws the value anew for each hold

  bool try_lock() { return redis("SET", name, value, "PX", 3000, "NX") == "OK"; }
  void lock() {
    while (!try_lock()) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // it polls, too
  }
  void unlock() {
    const auto* compare_and_delete =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
    redis("EVAL", compare_and_delete, 1, name, value);
  }
};

/// Nothing but the lock protects the counter: two at once would lose a count.
template <class Mutex>
void count(Mutex& mutex, plain_redis redis) {
  for (int round = 0; round < 100; ++round) {
    std::lock_guard lock(mutex);
    const auto before = redis("GET", "counter").integer();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    redis("SET", "counter", before + 1);
  }
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  holdfast::blocking::client redis({.url = url});
  auto ours = redis.simple_mutex("report");
  red_mutex theirs{plain_redis(url), "report", "c0ffee"};
  std::cout << std::boolalpha;
  theirs.lock();
  std::cout << "RedMutex has it, simple_mutex gets it: " << ours.try_lock() << '\n';
  theirs.unlock();
  ours.lock();
  std::cout << "simple_mutex has it, RedMutex gets it: " << theirs.try_lock() << '\n';
  ours.unlock();
  plain_redis data(url);
  data("SET", "counter", 0);
  std::thread other([&] { count(theirs, plain_redis(url)); });
  count(ours, plain_redis(url));
  other.join();
  std::cout << "100 rounds each: " << data("GET", "counter") << '\n';
}

// Output:
//   RedMutex has it, simple_mutex gets it: false
//   simple_mutex has it, RedMutex gets it: false
//   100 rounds each: 200
