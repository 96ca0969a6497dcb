// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking/mutex.hpp>
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

/// holdfast::client for threads: it has an io_context and a thread of its own, which works for all that call it, and a
/// second one, on which stops are requested: see lockable::get_stop_token().
/// Make one and share it: all functions may be called from any thread, except moves and destruction of the same object.
/// Its functions that wait keep the rules of lockable: on its own thread they throw
/// resource_deadlock_would_occur. In a child process connect() throws shutting_down, and the others closed. A child may
/// make a client of its own.
class HOLDFAST_EXPORT client {
 public:
  /// Checks the config, starts the threads and does no I/O: it connects at first use. They have the signal mask of
  /// their maker. Throws what the constructor of holdfast::client throws, and std::system_error where no thread can be
  /// had.
  explicit client(config = {});
  client(client&&) noexcept = default;
  client& operator=(client&&) noexcept;
  /// Ends every hold at once; threads that wait get shutting_down. Releases all holds, waits for that at most a command
  /// timeout, and for its threads, so for callbacks of its stops as well; what could not be released ends with its
  /// TTL. A name lookup under way, which the system does not let go, is waited for. Coroutines on the executor that
  /// still wait are destroyed.
  /// A thread of the client's own does not wait for itself (in an observer or a coroutine, in a callback of a stop): it
  /// ends by itself, and may still run while main() returns and static objects are destroyed.
  /// In a child process it does nothing: no byte is sent, and the parent's connections stay as they are; the child's
  /// copies of the sockets are closed when it ends or executes another program.
  ~client();

  // As those of holdfast::client, waiting.
  void connect();  ///< optional: fails early instead of at the first lock
  /// Releases every hold. Afterwards a call about a hold throws closed, and every other one shutting_down.
  void shutdown(milliseconds grace);
  /// For SIGTERM: threads that hold may finish, all others get shutting_down. A thread that holds and calls it waits
  /// for itself, until the grace is over.
  void drain(milliseconds grace);

  /// A lock on `name`, whose holds have these terms.
  blocking::mutex mutex(std::string_view name, lock_options = {}) const;
  blocking::fenced_mutex fenced_mutex(std::string_view name, lock_options = {}) const;
  blocking::simple_mutex simple_mutex(std::string_view name, lock_options = {}) const;
  blocking::red_lock red_lock(std::string_view name, lock_options = {}, reentrancy = reentrancy::reentrant) const;

  /// Runs any operation of the library on the client's thread, as a task of the calling one, and waits for its outcome:
  /// `redis.wait(redis.async().mutex("m").holder())`. Throws what it throws; closed if the client ends before.
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

  /// The client for coroutines, on the executor of this one's thread. It lives as long as this object. An exception
  /// that leaves io_context::run() there is dropped: the thread goes on. Never notify a condition_variable_any there
  /// that waits with a lock of this client: it waits for an unlock() then. Throws closed if this object was moved from.
  holdfast::client& async() const;

  /// Who the calling thread is to the locks: the same for every client, never another thread's. A coroutine re-enters
  /// what the thread holds by `redis.async().mutex(name, owner)`.
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
