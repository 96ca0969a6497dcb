// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/client.hpp>
#include <holdfast/config.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_holder.hpp>
#include <holdfast/testing/link.hpp>
#include <holdfast/testing/world.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sim {
class server;
}  // namespace holdfast::sim

namespace holdfast::testing {

/// Why a server refuses commands: server::refuse().
enum class refusal {
  none,
  out_of_memory,     ///< OOM: what grows is refused, renewals and releases are not
  disk_failed,       ///< MISCONF: every write is refused
  too_few_replicas,  ///< NOREPLICAS: every write is refused
  read_only,         ///< READONLY: it is a replica by now
  loading,           ///< LOADING: every command about data is refused
};

/// How a lock is stored.
enum class format {
  hash,    ///< as mutex, fenced_mutex and Redisson have it
  string,  ///< as simple_mutex and `SET NX PX` have it
};

/// A key that is a lock, as the server has it.
struct stored_lock {
  std::string name;  ///< the key: with key_prefix
  lock_holder holder;
};

/// A Redis server in the memory of a test, which runs the scripts of the library themselves, on a clock that the test
/// moves. Real clients work with it, and the test makes go wrong what goes wrong in production.
///
/// Clients, coroutines and the service that is tested run on the test's own io_context, in the virtual time of
/// testing::world. Server, clients, leases and the io_context may be destroyed in any order. Only the destructor may be
/// called when the io_context is gone.
class server : public world {
 public:
  /// `io`: an io_context, where everything runs. Empty, up and ready to be connected to.
  template <runnable_context Context>
  explicit server(Context& io) : server(context_of(io)) {}
  /// Clients that are left are closed: held() of their leases is false when it returns, and calls throw
  /// shutting_down; a call about a lease throws closed. It runs nothing of the io_context and reports no forgotten
  /// leases: check() does.
  ~server();

  // Clients.

  /// A client of this server alone, as `client(io, config)` makes it. Everything in `config` counts and is checked as
  /// in production, except what it connects to: address, user, password, database and TLS go unused.
  /// Throws invalid_config and invalid_ttl as client(); invalid_config besides for sentinels, a cluster, `primaries`
  /// and `min_replicas`: there is one server. A client of red_locks is made by testing::primaries.
  client make_client(config = {});
  /// The same, for an executor of the io_context: a strand, or one with an owner. Throws std::invalid_argument for one
  /// of another context.
  client make_client(asio::any_io_executor, config = {});

  /// The way to one of its clients, for what shall go wrong there alone. Throws std::invalid_argument for a client of
  /// somebody else.
  link link_of(const client&) const;

  // Leases for functions that take one, of a client of the server's own; not inside of a handler, as run().

  /// A renewed one with a fencing token, of a lock that is free: else std::logic_error says who has it.
  lease held_lease(std::string_view name);
  /// The same, lost in the meantime: held() is false, and unlock() throws lost.
  lease lost_lease(std::string_view name);

  // Locks, by the key as Redis has it: with key_prefix. Any time, also inside of a handler.

  /// Every lock that is held, by whom ever; sorted by name.
  std::vector<stored_lock> locks() const;
  /// Its holder; empty: it is free.
  std::optional<lock_holder> holder(std::string_view key) const;

  /// The key is gone, as after DEL, an eviction or a lost write, and nobody is told: whoever holds it finds out by its
  /// next renewal or unlock. Throws std::logic_error where nothing is held.
  void lose(std::string_view key);

  /// Another client has it from now on, for `ttl` unless it is given back: 1 ms to ten years, else
  /// std::invalid_argument. The client that had it is not told, and finds out as by lose(). A lock that is held keeps
  /// its format; another gets `as`.
  void take_over(std::string_view key, milliseconds ttl = std::chrono::seconds(30), format as = format::hash);
  /// That other client releases it, and waiters are told. Throws std::logic_error where it has not got the lock.
  void give_back(std::string_view key);

  // The server. Any time, also inside of a handler.

  /// As by SIGSTOP: it keeps its connections and its data, and does nothing, until it answers again. What it was sent
  /// meanwhile it does then. Its clock goes on. Both are idempotent.
  void stop_answering();
  void answer_again();

  /// Connections end, and new ones are refused, until start(). What it was sent and has not done is lost. Idempotent.
  void shut_down();
  /// With all the data that it had. Nothing, where it is up.
  void start();
  /// A restart or a FLUSHALL: all connections end, and the data are kept or gone.
  void restart();
  void restart_empty();

  /// It refuses what `why` says from now on, until refuse(refusal::none) or a restart.
  void refuse(refusal why);
  /// Sets its wall clock, by which it ends TTLs: forward, or back by a negative time; up to ten years.
  void step_clock(milliseconds by);

 private:
  friend class primaries;
  explicit server(context);
  server(std::shared_ptr<stage>, sim::server& machine);

  sim::server* machine_;       // of the stage
  std::optional<client> own_;  // of held_lease() and lost_lease()
};

}  // namespace holdfast::testing
