// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/config.hpp>
#include <holdfast/election.hpp>
#include <holdfast/expirable_semaphore.hpp>
#include <holdfast/export.hpp>
#include <holdfast/fair_mutex.hpp>
#include <holdfast/fenced_mutex.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/red_lock.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/simple_mutex.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace holdfast {
namespace asio = boost::asio;

/// Connections, watchdog and maker of locks. Mutexes and leases only refer to the client and may outlive it.
/// The client's parts belong to its io_context. Client, mutexes, leases and io_context may end in any order and on any
/// threads. ~io_context closes the client, whoever owns it; then nothing of the io_context is touched any more. A
/// waiting coroutine of that io_context is destroyed with it. A call from another io_context gets shutting_down; a call
/// about a lease gets closed.
/// All functions may be called from any thread, except moves and destruction of the same object.
/// After fork() the child's copy is closed and sends nothing. It ends when the child calls
/// io_context::notify_fork(fork_child). Asio demands that call before the child runs or destroys its copy of the
/// io_context. Until then the copy could read the parent's data.
/// While idle (no command, waiter or lease) the client keeps nothing pending, and io_context::run() returns. Hold a
/// work guard if your program should stay.
class HOLDFAST_EXPORT client {
 public:
  /// Checks the config and does no I/O; the client connects at first use. `executor`: runs the client's own work, on
  /// one strand.
  /// Throws error: invalid_config (also for a TLS file that cannot be used) and invalid_ttl, whose texts name the
  /// field. Throws asio::bad_executor for an empty executor. Throws boost::system::system_error if the process has no
  /// file descriptor left for Asio's reactor. Throws std::bad_alloc, and what copying config::credentials throws.
  explicit client(asio::any_io_executor executor, config = {});
  /// The same, on the executor of an io_context, a thread_pool or another context.
  template <class Context>
    requires std::is_convertible_v<Context&, asio::execution_context&>
  explicit client(Context& context, config config = {})
      : client(asio::any_io_executor(context.get_executor()), std::move(config)) {}
  client(client&&) noexcept = default;
  client& operator=(client&&) noexcept;
  /// Closes at once: held() of every lease is false when it returns, and waiters fail with shutting_down. Leases are
  /// released in the background, for at most the command timeout. A lease that could not be released ends with its TTL.
  /// The background is the io_context. If an exception leaves io_context::run(), nothing is released before run() is
  /// called again.
  ~client();

  /// Optional: fails early instead of at the first lock. Checks address, TLS, password, role, and every permission that
  /// a plain lock needs. It does not check what a fenced or a simple lock needs in addition. It does a no-op acquire,
  /// renew, release and publish on the name `__probe:<client uuid>` behind the key_prefix. The ACL's patterns must
  /// cover that name. Tries for connect_timeout and command_timeout together, even if the connection is refused, and
  /// takes no longer.
  /// Of several primaries a majority with votes is enough (red_lock). The observer learns why another is away (outage),
  /// but not of a permission that only a minority withholds.
  /// Throws unreachable (of several primaries quorum_failed), auth_failed, no_permission, not_primary, tls_failed,
  /// server_refused, protocol_error, overloaded, shutting_down. Throws invalid_config for a database that the server
  /// does not have. Cancelled: operation_aborted.
  asio::awaitable<void> connect();

  /// Refuses new work, fails waiters with shutting_down, and releases every lease in one pipeline. Waits at most
  /// `grace` for the releases under way, then closes the connections. `grace`: 0 to 24 h, else invalid_wait.
  /// Idempotent.
  /// Afterwards nothing of the client is pending on the executor. The exception is a name lookup under way, which the
  /// system does not cancel.
  /// Cancelled: operation_aborted; the shutdown goes on.
  asio::awaitable<void> shutdown(milliseconds grace);

  /// For SIGTERM: lets owners that hold a lease of this client finish. Such an owner may still lock, wait for and
  /// re-enter any name. The owner must be bound (owner::bind, the body of with_lock) or given to mutex(). All others
  /// get shutting_down from lock(), try_lock() and try_lock_for(), also those that wait already. An owner that waits
  /// when its last lease ends gets it too. A caller without an owner is refused, even if it holds. Everything else
  /// works as before: leases are renewed, and may be unlocked. A task that awaits drain() while it holds a lease waits
  /// for itself, until the grace is over.
  /// When the last lease has ended, or after `grace`, it does what shutdown() does. Those releases get one command
  /// timeout of their own. `grace`: 0 to 24 h, else invalid_wait.
  /// A second call waits with the first; the grace that ends first counts. A shutdown() meanwhile, or the end of the
  /// client, ends the leases and the drain at once. After a shutdown(), drain() is one more shutdown() with the command
  /// timeout as grace. Cancelled: operation_aborted; the drain goes on. Throws closed only if the client is gone.
  asio::awaitable<void> drain(milliseconds grace);

  /// A lock on `name`: 1 byte to 64 KiB, any bytes, checked at first use. Behind key_prefix the name *is* the Redis
  /// key.
  holdfast::mutex mutex(std::string_view name) const;
  holdfast::mutex mutex(std::string_view name, holdfast::owner) const;
  /// The same lock, with fencing tokens for its leases.
  holdfast::fenced_mutex fenced_mutex(std::string_view name) const;
  holdfast::fenced_mutex fenced_mutex(std::string_view name, holdfast::owner) const;
  /// A lock of one string key, shared with clients of other languages.
  holdfast::simple_mutex simple_mutex(std::string_view name) const;
  holdfast::simple_mutex simple_mutex(std::string_view name, holdfast::owner) const;

  /// A lock that serves its callers in the order of their arrival, over all processes.
  holdfast::fair_mutex fair_mutex(std::string_view name) const;
  holdfast::fair_mutex fair_mutex(std::string_view name, holdfast::owner) const;

  /// Many readers or one writer, over all processes.
  holdfast::shared_mutex shared_mutex(std::string_view name) const;
  holdfast::shared_mutex shared_mutex(std::string_view name, holdfast::owner) const;

  /// At most `permits` at once, over all processes: 1 to 2^31-1, else invalid_argument at first use. The first acquire
  /// of the name sets the number. Only set_permits() changes it later.
  holdfast::expirable_semaphore expirable_semaphore(std::string_view name, unsigned permits) const;

  /// One leader at a time, over all processes, with a term and a value.
  holdfast::election election(std::string_view name) const;
  holdfast::election election(std::string_view name, holdfast::owner) const;

  /// Opens when it was counted down to 0, for all processes.
  holdfast::latch latch(std::string_view name) const;

  /// A lock that a majority of config::red_lock.primaries grants.
  holdfast::red_lock red_lock(std::string_view name, reentrancy = reentrancy::reentrant) const;
  holdfast::red_lock red_lock(std::string_view name, holdfast::owner, reentrancy = reentrancy::reentrant) const;

  /// A uuid, new for each client. It begins every lease::id() of this client and is in the name of its connections. So
  /// CLIENT LIST shows where the holder of a lock runs (see config::client_name). Empty for a moved-from client.
  const std::string& id() const noexcept;
  /// The executor that it was made with. Empty for a moved-from client, and after the io_context has ended.
  asio::any_io_executor get_executor() const noexcept;

 private:
  friend detail::access;
  explicit client(std::shared_ptr<detail::core>) noexcept;

  std::shared_ptr<detail::core> core_;
};

}  // namespace holdfast
