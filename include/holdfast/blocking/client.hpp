// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking/election.hpp>
#include <holdfast/blocking/expirable_semaphore.hpp>
#include <holdfast/blocking/latch.hpp>
#include <holdfast/blocking/mutex.hpp>
#include <holdfast/blocking/shared_mutex.hpp>
#include <holdfast/client.hpp>
#include <holdfast/config.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lock_options.hpp>
#include <holdfast/owner.hpp>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace holdfast::blocking {
namespace asio = boost::asio;

namespace detail {
class io_thread;
}  // namespace detail

/// holdfast::client for threads. It has an io_context and a thread that works for all callers. On a second thread it
/// requests stops: see lockable::get_stop_token().
/// Make one client and share it: all functions may be called from any thread, except moves and destruction of the same
/// object. Functions that wait keep the rules of lockable: on the client's own thread they throw
/// resource_deadlock_would_occur. In a child process connect() throws shutting_down, and the others throw closed. A
/// child may make a client of its own.
class HOLDFAST_EXPORT client {
 public:
  /// Checks the config, starts the threads and does no I/O; the client connects at first use. The threads have the
  /// signal mask of the constructor's caller. Throws what the constructor of holdfast::client throws, and
  /// std::system_error if no thread can be started.
  explicit client(config = {});
  client(client&&) noexcept = default;
  client& operator=(client&&) noexcept;
  /// Ends every hold at once; threads that wait get shutting_down. Releases all holds and waits at most a command
  /// timeout for that. A hold that could not be released ends with its TTL. Waits for its threads, so also for
  /// callbacks of its stops and for a name lookup under way, which the system does not cancel. Coroutines on the
  /// executor that still wait are destroyed.
  /// On a thread of the client's own the destructor does not wait for that thread. This is the case in an observer, a
  /// coroutine, or a callback of a stop. The thread ends by itself, and may still run while main() returns and static
  /// objects are destroyed.
  /// In a child process the destructor does nothing. No byte is sent, and the parent's connections stay as they are.
  /// The child's copies of the sockets are closed when it ends or executes another program.
  ~client();

  // As the functions of holdfast::client, but they wait.
  void connect();  ///< optional: fails early instead of at the first lock
  /// Releases every hold. Afterwards a call about a hold throws closed, and every other call throws shutting_down.
  void shutdown(milliseconds grace);
  /// For SIGTERM: threads that hold may finish; all others get shutting_down. If a thread that holds calls it, it waits
  /// for itself, until the grace is over.
  void drain(milliseconds grace);

  /// A lock on `name`, whose holds have these terms.
  blocking::mutex mutex(std::string_view name, lock_options = {}) const;
  blocking::fenced_mutex fenced_mutex(std::string_view name, lock_options = {}) const;
  blocking::simple_mutex simple_mutex(std::string_view name, lock_options = {}) const;
  blocking::fair_mutex fair_mutex(std::string_view name, lock_options = {}) const;
  /// At most `permits` at once, as holdfast::client::expirable_semaphore().
  blocking::expirable_semaphore expirable_semaphore(std::string_view name, unsigned permits, lock_options = {}) const;
  /// Many readers or one writer, as holdfast::client::shared_mutex(). Both sides have these terms.
  blocking::shared_mutex shared_mutex(std::string_view name, lock_options = {}) const;
  /// A candidate with this value, as holdfast::client::election(). Its holds have these terms.
  blocking::election election(std::string_view name, std::string value, lock_options = {}) const;
  /// Opens when it was counted down to 0, as holdfast::client::latch().
  blocking::latch latch(std::string_view name) const;
  blocking::red_lock red_lock(std::string_view name, lock_options = {}, reentrancy = reentrancy::reentrant) const;

  /// Runs any operation of the library on the client's thread, as a task of the calling one, and waits for its result:
  /// `redis.wait(redis.async().mutex("m").holder())`. Throws what the operation throws; closed if the client ends
  /// before.
  template <class T>
  T wait(asio::awaitable<T> operation) const {
    if constexpr (std::is_void_v<T>) {
      run(std::move(operation));
    } else {
      std::optional<T> value;
      run(into(value, std::move(operation)));
      return std::move(*value);
    }
  }

  /// The client for coroutines, on the executor of this client's thread. It lives as long as this object. If an
  /// exception leaves io_context::run() there, it is dropped and the thread goes on. Never notify a
  /// condition_variable_any there that waits with a lock of this client: the notification then waits for an unlock().
  /// Throws closed if this object was moved from.
  holdfast::client& async() const;

  /// The owner that stands for the calling thread: the same for every client, never another thread's. By
  /// `redis.async().mutex(name, owner)` a coroutine re-enters the holds of the thread.
  static holdfast::owner this_thread() noexcept;

 private:
  template <class T>
  static asio::awaitable<void> into(std::optional<T>& value, asio::awaitable<T> operation) {
    value.emplace(co_await std::move(operation));
  }
  void run(asio::awaitable<void> operation) const;
  const std::shared_ptr<detail::io_thread>& io() const;

  std::shared_ptr<detail::io_thread> io_;
};

}  // namespace holdfast::blocking
