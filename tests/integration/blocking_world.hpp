// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking.hpp>

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "integration/world.hpp"

namespace holdfast::test {

/// Waits until what another thread or a server does is to be seen. Fails the test after `limit`.
template <class Condition>
void see(Condition condition, std::chrono::milliseconds limit = 60s) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) throw std::runtime_error("the condition was not met in time");
    std::this_thread::sleep_for(1ms);
  }
}

/// A private server for clients of plain threads. Nobody runs world::io.
struct blocking_world : world {
  using world::world;

  template <class Change>
  config settings_with(Change change) const {
    auto c = settings();
    change(c);
    return c;
  }
  /// So many of our clients have waiters for this lock, at least.
  void see_waiters(const std::string& name, long long clients = 1) {
    see([&] {
      return eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{" + name + "}").array()[1].integer() >= clients;
    });
  }
};

/// What a function throws on a thread of its own; its code.
inline error_code code_in_thread(const std::function<void()>& f) {
  error_code code;
  std::thread([&] { code = client_side::code_of_call(f); }).join();
  return code;
}

/// What it says on a thread of its own, or throws there.
template <class F>
auto in_thread(F f) {
  std::packaged_task<decltype(f())()> task(std::move(f));
  auto said = task.get_future();
  std::thread(std::move(task)).join();
  return said.get();
}

/// Another thread does not get the lock by `attempt`. Of a red_lock on a busy machine too few may have said so.
template <class F>
bool in_vain(F attempt) {
  return in_thread([&] {
    try {
      return !attempt();
    } catch (const error& e) {
      return e.code() == errc::quorum_failed;
    }
  });
}

/// A thread that is about to wait: whether it does.
class waiting_thread {
 public:
  /// In that thread, before its call.
  void begins() { id_ = ::gettid(); }
  /// It sleeps: in its call, since nothing else is between.
  bool asleep() const {
    if (id_ == 0) return false;
    std::string number, name, state;
    std::ifstream("/proc/self/task/" + std::to_string(id_) + "/stat") >> number >> name >> state;
    return state == "S";
  }

 private:
  std::atomic<pid_t> id_{0};
};

/// Threads that are joined whatever happens; the first exception of one is thrown by join().
class crew {
 public:
  crew() = default;
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;
  ~crew() {
    for (auto& t : threads_)
      if (t.joinable()) t.join();
  }
  template <class F>
  void start(F f) {
    threads_.emplace_back([this, f]() mutable {
      try {
        f();
      } catch (...) {
        const std::lock_guard lock(guard_);
        if (!failed_) failed_ = std::current_exception();
      }
    });
  }
  void join() {
    for (auto& t : threads_) t.join();
    threads_.clear();
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
  }

 private:
  std::mutex guard_;
  std::exception_ptr failed_;
  std::vector<std::thread> threads_;
};

/// Closed, or, where it takes nothing, refused: by the end of its lock object or its client.
inline bool closed(const std::function<void()>& f) {
  const auto code = client_side::code_of_call(f);
  return code == errc::closed || code == errc::shutting_down;
}

/// Threads that wait in one lock object, the first of them for an hour at most: all do when it is made.
class waiting_threads {
 public:
  template <class Lock>
  waiting_threads(Lock& m, std::size_t n) : each_(n) {
    for (auto& me : each_)
      crew_.start([this, &me, &m] {
        me.begins();
        got_closed_ += closed([&] { &me == each_.data() ? (void)m.try_lock_for(std::chrono::hours(1)) : m.lock(); });
      });
    for (const auto& t : each_) see([&] { return t.asleep(); });
  }
  /// When all have been answered: so many got closed.
  std::size_t closed_of_all() {
    crew_.join();
    return got_closed_;
  }

 private:
  std::vector<waiting_thread> each_;
  std::atomic<std::size_t> got_closed_{0};
  crew crew_;
};

}  // namespace holdfast::test
