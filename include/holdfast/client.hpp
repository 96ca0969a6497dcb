// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/config.hpp>
#include <holdfast/export.hpp>
#include <holdfast/fenced_mutex.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/red_lock.hpp>
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

/// Connections, watchdog and maker of locks. Mutexes and leases only refer to it and may outlive it.
/// What it is made of belongs to its io_context. Client, mutexes, leases and io_context may end in any order and on any
/// threads: ~io_context closes the client, whoever owns it, and from then on nothing of the io_context is touched. A
/// waiting coroutine of that io_context is destroyed with it. A call from another io_context gets shutting_down; a call
/// about a lease gets closed.
/// All functions may be called from any thread, except moves and destruction of the same object.
/// After fork() the child's copy is closed: it sends nothing, and ends when the child calls
/// io_context::notify_fork(fork_child), which Asio demands before the child runs or destroys its copy of the
/// io_context: until then it could read what is the parent's.
/// While idle (no command, waiter or lease) it keeps nothing pending, and io_context::run() returns: hold a work guard
/// if your program should stay.
class HOLDFAST_EXPORT client {
 public:
  /// Checks the config and does no I/O: it connects at first use. `executor`: where its own work runs, on one strand.
  /// Throws error: invalid_config (also of a TLS file that cannot be used) and invalid_ttl, whose texts name the field.
  /// Throws asio::bad_executor for an empty executor, boost::system::system_error where the process has no file
  /// descriptor left for Asio's reactor, std::bad_alloc, and what copying config::credentials throws.
  explicit client(asio::any_io_executor executor, config = {});
  /// The same, on the executor of an io_context, a thread_pool or another context.
  template <class Context>
    requires std::is_convertible_v<Context&, asio::execution_context&>
  explicit client(Context& context, config config = {})
      : client(asio::any_io_executor(context.get_executor()), std::move(config)) {}
  client(client&&) noexcept = default;
  client& operator=(client&&) noexcept;
  /// Closes at once: held() of every lease is false when it returns, waiters fail with shutting_down. Leases are
  /// released in the background, for at most the command timeout; what could not be released ends with its TTL. The
  /// background is the io_context: an exception that leaves io_context::run() stops it, and nothing is released before
  /// run() is called again.
  ~client();

  /// Optional: fails early instead of at the first lock. Checks address, TLS, password, role, and every permission that
  /// a plain lock needs (not what a fenced or a simple one needs besides), by a no-op acquire, renew, release and
  /// publish on the name `__probe:<client uuid>` behind the key_prefix, which the ACL's patterns must cover. Tries for
  /// connect_timeout and command_timeout together, also where the connection is refused, and takes no longer. Of
  /// several primaries a majority with votes is enough (red_lock). The observer hears why another is away (outage), but
  /// nothing of a permission that only a minority withholds. Throws unreachable (quorum_failed, of several),
  /// auth_failed, no_permission, not_primary, tls_failed, invalid_config (a database that the server does not have),
  /// server_refused, protocol_error, overloaded, shutting_down. Cancelled: operation_aborted.
  asio::awaitable<void> connect();

  /// Refuses new work, fails waiters with shutting_down, and releases every lease in one pipeline. Waits for the
  /// releases under way for at most `grace` (0 to 24 h, else invalid_wait), then closes the connections. Idempotent.
  /// Afterwards nothing of ours is pending on the executor, except a name lookup under way, which the system does not
  /// let go.
  /// Cancelled: operation_aborted, the shutdown goes on.
  asio::awaitable<void> shutdown(milliseconds grace);

  /// For SIGTERM: lets those finish who have begun. From now on an owner that holds a lease of this client may still
  /// lock, wait for and re-enter any name, if it is bound (owner::bind, the body of with_lock) or was given to mutex().
  /// All others get shutting_down from lock(), try_lock() and try_lock_for(), also those that wait already, and owners
  /// that wait when their last lease ends. A caller without an owner is nobody's task: it is refused although it holds.
  /// Everything else works as before: leases are renewed, and may be unlocked. A task that awaits drain() and holds a
  /// lease itself waits for itself, until the grace is over.
  /// When the last lease has ended, or after `grace` (0 to 24 h, else invalid_wait), it does what shutdown() does, and
  /// gives those releases one command timeout of their own.
  /// Called again, it waits with the first; the grace that ends first counts. shutdown() meanwhile, or the end of the
  /// client, ends the leases at once, and the drain with it. After a shutdown() it is one more shutdown(), whose grace
  /// is the command timeout. Cancelled: operation_aborted, the drain goes on. Throws closed only if the client is gone.
  asio::awaitable<void> drain(milliseconds grace);

  /// A lock on `name`, 1 byte to 64 KiB, any bytes (checked when it is used): behind key_prefix it *is* the Redis key.
  holdfast::mutex mutex(std::string_view name) const;
  holdfast::mutex mutex(std::string_view name, holdfast::owner) const;
  /// The same lock, whose leases have a fencing token.
  holdfast::fenced_mutex fenced_mutex(std::string_view name) const;
  holdfast::fenced_mutex fenced_mutex(std::string_view name, holdfast::owner) const;
  /// A lock of one string key, which clients of other languages share.
  holdfast::simple_mutex simple_mutex(std::string_view name) const;
  holdfast::simple_mutex simple_mutex(std::string_view name, holdfast::owner) const;

  /// A lock that a majority of config::primaries grants.
  holdfast::red_lock red_lock(std::string_view name, reentrancy = reentrancy::reentrant) const;
  holdfast::red_lock red_lock(std::string_view name, holdfast::owner, reentrancy = reentrancy::reentrant) const;

  /// A uuid, made anew for each client. It begins every lease::id() of this client, and is in the name of its
  /// connections, so that CLIENT LIST says where the holder of a lock runs (see config::client_name). Empty for a
  /// moved-from client.
  const std::string& id() const noexcept;
  /// The one it was made with; empty for a moved-from client, and when the io_context has ended.
  asio::any_io_executor get_executor() const noexcept;

 private:
  friend detail::access;
  explicit client(std::shared_ptr<detail::core>) noexcept;

  std::shared_ptr<detail::core> core_;
};

}  // namespace holdfast
