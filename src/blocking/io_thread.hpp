// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <holdfast/client.hpp>
#include <holdfast/config.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/owner.hpp>

#include "base/fork_guard.hpp"
#include "blocking/call.hpp"
#include "blocking/stop_thread.hpp"

namespace holdfast::blocking::detail {

/// Never destroys an object that a child process has copied: threads that the child does not have may have been at work
/// on it.
template <class T>
void never_end(std::shared_ptr<T> copied) noexcept {
  union keeper {
    explicit keeper(std::shared_ptr<T> value) noexcept : kept(std::move(value)) {}
    ~keeper() {}
    std::shared_ptr<T> kept;
  };
  const keeper forgotten(std::move(copied));
}

/// Ends what a public object stands for: a client's thread, or the core of a lock. A thread that waits in it has read
/// the pointer before its call began, so the pointer may change only after this call.
template <class T>
void end(std::shared_ptr<T>& core) noexcept {
  if (!core) return;
  if (core->elsewhere()) return never_end(std::move(core));
  core->end();
}

/// The move assignment of a public object.
template <class T>
void replace(std::shared_ptr<T>& core, std::shared_ptr<T>&& next) noexcept {
  if (&core == &next) return;
  end(core);
  core = std::move(next);
}

/// A client and its context, the thread that runs it, and the thread that requests stops. The context ends with its
/// thread. This object and its client live as long as something refers to them, and are closed then.
///
/// Decision: a thread waits for the io thread, and never for a coroutine's frame. A blocking call posts its operation
/// to the io thread, which spawns it as a task of the calling thread's owner. The caller waits for a `call`: a mutex, a
/// condition variable and an outcome. The completion handler ends the call, and so does the destruction of that
/// handler. The end of a context destroys the handlers that wait, so a caller is always answered. An exception reaches
/// its thread after the coroutine that threw it is gone: two threads never share it.
class io_thread : public std::enable_shared_from_this<io_thread> {
 public:
  /// Throws as the constructor of holdfast::client, and std::system_error.
  static std::shared_ptr<io_thread> start(config);

  // Any thread.
  /// True in a child process, where no other function may be called.
  bool elsewhere() const noexcept { return here_.elsewhere(); }
  holdfast::client& client() noexcept { return client_; }
  /// Throws if a call would wait indefinitely, or for nothing: resource_deadlock_would_occur, shutting_down.
  void check_may_wait();

  /// Runs the operation as a task of `owner` and waits for its end; rethrows what it throws. Throws as
  /// check_may_wait(), but `ended` in place of shutting_down, and operation_aborted after cancel().
  void run(const owner& owner, asio::awaitable<void> operation, errc ended,
           const call_ptr& as = std::make_shared<call>());
  template <class T>
  T get(const owner& owner, asio::awaitable<T> operation, errc ended, const call_ptr& as = std::make_shared<call>()) {
    std::optional<T> value;
    run(owner, into(value, std::move(operation)), ended, as);
    return std::move(*value);
  }
  /// Starts it and waits for nothing. False: the thread has ended, and nothing was started.
  bool start_operation(asio::awaitable<void> operation);
  void cancel(const call_ptr& call);
  /// Requests the stop on the second thread. Only end() waits for a callback of it.
  void request(stop_to_request stop) noexcept { stops_.request(std::move(stop)); }
  /// An unlock() of a lock that `owner` does not hold.
  void tell_foreign_unlock(const owner& owner, std::string_view name);

  /// Refuses new calls; all that wait get their `ended`. Waits for the io thread and for the stops that it has handed
  /// over. Called on the io thread it waits for neither; called in a callback of a stop, for the io thread alone.
  void end() noexcept;

 private:
  explicit io_thread(config);

  template <class T>
  static asio::awaitable<void> into(std::optional<T>& value, asio::awaitable<T> operation) {
    value.emplace(co_await std::move(operation));
  }
  void work();
  void begin_end() noexcept;
  void stop() noexcept;
  void check_open(errc ended);  // guarded

  const holdfast::detail::fork_guard here_;
  const milliseconds grace_;
  const std::shared_ptr<holdfast::observer> observer_;
  std::mutex guard_;
  bool open_ = true;                         // guarded
  std::atomic<bool> ended_{false};           // the context is to run no more
  std::optional<asio::io_context> context_;  // until the thread has ended; while open_ anyone may post to it
  holdfast::client client_;
  stop_thread stops_;
  std::thread thread_;
};

}  // namespace holdfast::blocking::detail
