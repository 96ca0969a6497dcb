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

/// One stop, with the memory that hands it over: nothing is needed when a lock is lost. Or none.
using stop_to_request = std::list<std::stop_source>;

/// Requests stops on a thread of its own, one after the other. A callback of a stop may wait for somebody who waits
/// for the io thread: a condition_variable_any keeps its mutex while it unlocks, and a callback that notifies it wants
/// that.
class stop_thread {
 public:
  /// Throws std::system_error.
  stop_thread();
  stop_thread(const stop_thread&) = delete;
  stop_thread& operator=(const stop_thread&) = delete;
  ~stop_thread();

  // Any thread; none of these waits for a callback.
  void request(stop_to_request) noexcept;
  /// Stops that were handed over are still requested, later ones are not; then the thread ends.
  void close() noexcept;

  // Whoever ends it, once.
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
  const std::shared_ptr<line> line_ = std::make_shared<line>();  // the thread's as well, which may be detached
  std::thread thread_;
};

}  // namespace holdfast::blocking::detail
