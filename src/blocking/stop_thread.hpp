// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/fork_guard.hpp"

namespace holdfast::blocking::detail {

/// One stop or none, with the memory that hands it over: no memory is needed when a lock is lost.
using stop_to_request = std::list<std::stop_source>;

/// Requests stops on a thread of its own, one after the other.
///
/// Decision: a stop is requested on a thread that no unlock waits for. condition_variable_any keeps a mutex while it
/// calls unlock(), and a notification wants that mutex. If the io thread requested a stop whose callback notifies, it
/// would wait for an unlock() that waits for the io thread. No user's callback is needed for that:
/// wait(lock, stop_token, …) has one. So the io thread hands a loss over, in memory that was taken with the token, and
/// goes on. Callbacks may therefore block, and make blocking calls. The io thread closes this line at its end without
/// waiting; the thread that ends the client waits for both.
class stop_thread {
 public:
  /// Throws std::system_error.
  stop_thread();
  stop_thread(const stop_thread&) = delete;
  stop_thread& operator=(const stop_thread&) = delete;
  ~stop_thread();

  // Any thread. None of these waits for a callback.
  void request(stop_to_request) noexcept;
  /// Stops that were handed over are still requested, later ones are not; then the thread ends.
  void close() noexcept;

  // By the owner, once.
  /// Waits for the thread to end, unless it is called by that.
  void join() noexcept;
  void detach() noexcept { thread_.detach(); }

 private:
  struct line {
    void work();

    const holdfast::detail::fork_guard here;
    std::mutex guard;
    std::condition_variable changed;
    bool closed = false;        // guarded
    stop_to_request requested;  // guarded
  };
  const std::shared_ptr<line> line_ = std::make_shared<line>();  // shared with the thread, which may be detached
  std::thread thread_;
};

}  // namespace holdfast::blocking::detail
