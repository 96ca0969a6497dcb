// SPDX-License-Identifier: BSL-1.0
// From plain threads: std::scoped_lock, std::unique_lock and std::condition_variable_any take the locks of Redis.
#include <chrono>
#include <condition_variable>
#include <holdfast/blocking.hpp>
#include <iostream>
#include <mutex>
#include <thread>
using namespace std::chrono_literals;
namespace blocking = holdfast::blocking;

void two_transfers(blocking::client& redis) {
  auto alice = redis.mutex("account:alice"), bob = redis.mutex("account:bob");
  int of_alice = 300, of_bob = 100;  // ordinary variables, guarded by the locks
  const auto transfer = [&] {
    std::scoped_lock both(alice, bob);  // no deadlock if a thread names them in the other order
    of_alice -= 100, of_bob += 100;
  };
  {
    std::jthread other(transfer);
    transfer();
  }
  std::cout << "alice has " << of_alice << ", bob has " << of_bob << '\n';
}

void queue(blocking::client& redis) {
  auto mutex = redis.mutex("queue");
  std::condition_variable_any filled;
  int jobs = 0;
  std::jthread worker([&](std::stop_token stop) {
    std::unique_lock lock(mutex);
    if (filled.wait(lock, stop, [&] { return jobs > 0; })) std::cout << "a job\n";
  });
  if (std::unique_lock lock(mutex, 10s); lock) ++jobs;
  filled.notify_one();
}

void report(blocking::client& redis) {
  auto mutex = redis.mutex("report");
  try {
    blocking::with_lock(mutex, [&](std::stop_token lost) {
      mutex.force_unlock();  // somebody breaks the lock
      while (!lost.stop_requested()) std::this_thread::sleep_for(1ms);
    });  // an unlock never throws; with_lock() does, when the lock was lost
  } catch (const holdfast::error& e) {
    std::cout << e.code().message() << '\n';
  }
}

int main(int argc, char** argv) {
  blocking::client redis({.url = argc > 1 ? argv[1] : "redis://localhost"});  // has a thread of its own
  two_transfers(redis);
  queue(redis);
  report(redis);
}

// Output:
//   alice has 100, bob has 300
//   a job
//   the lock was lost
