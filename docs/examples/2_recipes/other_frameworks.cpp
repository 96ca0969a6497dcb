// SPDX-License-Identifier: BSL-1.0
// Locks in a program whose event loop is not Asio's: Drogon, gRPC callbacks, Qt, libuv. loop_locks.hpp is all it takes.
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <queue>

#include "loop_locks.hpp"
using namespace std::chrono_literals;

struct event_loop {  // stands for yours
  void post(std::function<void()> task) {
    std::lock_guard lock(mutex);
    tasks.push(std::move(task));
    filled.notify_one();
  }
  void run() {
    for (std::unique_lock lock(mutex); !ended;) {
      filled.wait(lock, [&] { return !tasks.empty(); });
      const auto task = std::move(tasks.front());
      tasks.pop();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex;
  std::condition_variable filled;
  std::queue<std::function<void()>> tasks;
  bool ended = false;
};

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  event_loop loop;
  loop_locks locks({.url = url, .ttl = 3s}, [&](loop_locks::task task) { loop.post(std::move(task)); });
  holdfast::blocking::client elsewhere({.url = url});
  const holdfast::owner job;
  loop_locks::lease kept;

  locks.lock("report", job, 2s, [&](std::exception_ptr failed, loop_locks::lease lease) {
    if (failed || !lease) return void(loop.ended = true);
    kept = lease;  // the lease is the hold
    std::cout << "held: " << std::boolalpha << kept->held() << '\n';
    locks.on_loss(kept, [&] {
      std::cout << "lost: stop the work\n";
      loop.ended = true;
    });
    elsewhere.mutex("report").force_unlock();  // somebody breaks the lock
    std::cout << "now held by another: " << elsewhere.mutex("report").try_lock() << '\n';
  });
  loop.run();
}

// Output:
//   held: true
//   now held by another: true
//   lost: stop the work
