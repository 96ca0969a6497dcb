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
#include <cstdint>
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

/// The reason a server refuses commands: server::refuse().
enum class refusal {
  none,
  out_of_memory,     ///< OOM: refuses commands that need memory; renewals and releases work
  disk_failed,       ///< MISCONF: refuses every write
  too_few_replicas,  ///< NOREPLICAS: refuses every write
  read_only,         ///< READONLY: refuses as a replica
  loading,           ///< LOADING: refuses every command about data
};

/// The format of a stored lock.
enum class format {
  hash,     ///< as for mutex, fenced_mutex, fair_mutex, election and Redisson
  string,   ///< as for simple_mutex and `SET NX PX`
  permits,  ///< as for expirable_semaphore
  shared,   ///< as for shared_mutex, to write
  reader,   ///< as for shared_mutex, to read
};

/// A lock as the server stores it, or one read hold of a shared_mutex.
struct stored_lock {
  std::string name;  ///< the key, including key_prefix
  lock_holder holder;
  bool reads = false;  ///< a read hold of a shared_mutex
};

/// A semaphore as the server stores it.
struct stored_semaphore {
  std::string name;                   ///< the key of its counter, including key_prefix
  std::optional<unsigned> permits{};  ///< all, free or out; empty: the counter is gone, and the next acquire makes it
  std::vector<lock_holder> out{};     ///< a holder for each permit that is out; the permit that ends next is the first
};

/// A Redis server in the memory of a test. It runs the library's own scripts, on a clock that the test moves. Real
/// clients work with it, and the test triggers the failures of production.
///
/// Clients, coroutines and the tested service run on the test's own io_context, in the virtual time of testing::world.
/// Server, clients, leases and the io_context may be destroyed in any order. After the io_context only the destructor
/// may be called.
class server : public world {
 public:
  /// `io`: an io_context, where everything runs. The server is empty, up and ready for connections.
  template <runnable_context Context>
  explicit server(Context& io) : server(context_of(io)) {}
  /// Closes clients that are left: held() of their leases is false when it returns. Their calls throw shutting_down; a
  /// call about a lease throws closed. It runs nothing of the io_context and does not report forgotten leases: check()
  /// does.
  ~server();

  // Clients.

  /// A client of this server alone, made as by `client(io, config)`. `config` counts and is checked as in production,
  /// except for what it connects to. Address, user, password, database and TLS go unused.
  /// Throws invalid_config and invalid_ttl as client(). Also throws invalid_config for sentinels, a cluster,
  /// `red_lock.primaries` and `min_replicas`: there is one server. testing::primaries makes clients of red_locks.
  client make_client(config = {});
  /// The same, for an executor of the io_context: a strand, or one with an owner. Throws std::invalid_argument for an
  /// executor of another context.
  client make_client(asio::any_io_executor, config = {});

  /// The path to one of its clients, for failures of that path alone. Throws std::invalid_argument for a client of
  /// another server.
  link link_of(const client&) const;

  // Leases for functions that take one, from a client of the server's own. As run(), not inside of a handler.

  /// A renewed lease with a fencing token. The lock must be free: else std::logic_error names its holder.
  lease held_lease(std::string_view name);
  /// The same, already lost: held() is false, and unlock() throws lost.
  lease lost_lease(std::string_view name);

  // Locks, by their Redis keys, including key_prefix. Any time, also inside of a handler.

  /// Every lock that any client holds, sorted by name. Of a shared_mutex the writer, or each read hold. Readers of one
  /// client may share a hold.
  std::vector<stored_lock> locks() const;
  /// The holder of a lock; empty: it is free. Of a shared_mutex the writer, or the first that reads.
  std::optional<lock_holder> holder(std::string_view key) const;

  /// Every semaphore that has its counter, sorted by name. A latch that is set looks the same, and is among them.
  std::vector<stored_semaphore> semaphores() const;
  /// The semaphore at this key; empty: there is none.
  std::optional<stored_semaphore> semaphore(std::string_view key) const;

  /// The count of a latch; 0: it is open, or not set.
  std::uint32_t latch_count(std::string_view key) const;
  /// Another client counts a latch down by n. Waiters are notified when it opens. Throws std::logic_error if it is
  /// open.
  void count_down(std::string_view key, std::uint32_t n = 1);

  /// Removes the key, as DEL, an eviction or a lost write do. No client is notified: the holder learns of it at its
  /// next renewal or unlock. Of a semaphore: removes all permits that are out, and the counter. Throws std::logic_error
  /// if nothing is held.
  void lose(std::string_view key);

  /// Gives the lock to another client, for `ttl` unless it is given back. `ttl`: 1 ms to ten years, else
  /// std::invalid_argument. The client that had it is not notified, and learns of it as after lose(). A lock that is
  /// held keeps its format; a free one gets `as`.
  /// Of a shared_mutex: that client writes, and nobody else holds it. With format::reader it reads, beside other
  /// readers and in place of a writer.
  /// Of a semaphore: takes one permit. If none is free, the permit that ends next is taken from its holder.
  void take_over(std::string_view key, milliseconds ttl = std::chrono::seconds(30), format as = format::hash);
  /// That other client releases the lock, or one permit, and waiters are notified. Throws std::logic_error if it does
  /// not have the lock or a permit.
  void give_back(std::string_view key);

  // The server. Any time, also inside of a handler.

  /// Stops the server as SIGSTOP does: it keeps its connections and its data, and does nothing, until answer_again().
  /// Then it executes what it was sent meanwhile. Its clock goes on. Both are idempotent.
  void stop_answering();
  void answer_again();

  /// Connections end, and new ones are refused, until start(). Commands that were sent and not executed are lost.
  /// Idempotent.
  void shut_down();
  /// Starts it with all the data that it had. Does nothing if it is up.
  void start();
  /// A restart or a FLUSHALL: all connections end. restart() keeps the data, restart_empty() does not.
  void restart();
  void restart_empty();

  /// Refuses commands as `why` says, until refuse(refusal::none) or a restart.
  void refuse(refusal why);
  /// Moves its wall clock, by which it ends TTLs: forward, or back by a negative time; up to ten years.
  void step_clock(milliseconds by);

 private:
  friend class primaries;
  explicit server(context);
  server(std::shared_ptr<stage>, sim::server& machine);

  sim::server* machine_;       // of the stage
  std::optional<client> own_;  // of held_lease() and lost_lease()
};

}  // namespace holdfast::testing
