// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/client.hpp>

#include "api/make_client.hpp"
#include "config/settings.hpp"
#include "testing/held_leases.hpp"
#include "testing/sim/network.hpp"
#include "testing/sim/scheduler.hpp"
#include "testing/sim/seeded_random.hpp"
#include "testing/sim/server.hpp"
#include "testing/sim/trace.hpp"

namespace holdfast::testing {

/// The longest that anything in a test may last.
inline constexpr auto longest = std::chrono::hours(24 * 365 * 10);

inline std::string error_text(const std::string& text) { return "holdfast::testing: " + text; }

/// The shared world of a test's clients: time, the machines, the ways to them, and the io_context of the test, on which
/// everything runs.
///
/// Decision: the test kit is the simulator's world with the user's io_context in it. `sim` is a Redis in memory: keys,
/// commands, Lua, sessions, wires and virtual time. The simulator puts engines into it, the kit puts clients. There is
/// no Sentinel and no Cluster in the kit, although the simulator has both: there a seed decides what a failover loses
/// and whom it elects, and in a user's test nothing could state that.
///
/// Decision: time stands still unless the test moves it. A clock that jumps to the next timer whenever the io_context
/// is idle would save a line in each test. But a lease would be renewed or lost before the test has looked. So an
/// instant and an advance are two things. Within an instant all that can happen does, by whatever runs the io_context:
/// bytes at a wire or a due timer post one handler, pump(), which runs the scheduler. advance() goes from one event to
/// the next, and polls the io_context between two of them. A command takes no time, unless a test sets a latency for
/// its client.
///
/// Decision: a test is one thread. A second one would bring back an order that differs each time. So nothing here is
/// guarded by a lock. A call that would have to run the io_context inside one of its handlers is refused: a nested
/// poll() runs the rest of the test in the middle of a handler.
///
/// Decision: the stage outlives everything. Leases read the clock, and events on their way hold wires. So clock, server
/// and wires are plain memory that clients and leases share. A client's `home` has its strand and is left when the
/// client or its context ends, so nothing touches an io_context that is gone. When the `server` ends first, its clients
/// are closed. From then on time goes on by itself as far as they ask for it, so that shutdown() returns. The
/// destructor neither runs the io_context nor reports leases: handlers would meet objects of the test that are gone
/// already. check() does both, while everything still lives.
class stage final : public std::enable_shared_from_this<stage> {
 public:
  /// The test's io_context.
  struct context {
    asio::any_io_executor executor;
    std::function<void()> poll;    // runs all ready handlers
    std::function<bool()> inside;  // true: this thread runs it now
  };
  stage(context where, std::size_t machines);
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;

  time_point now() const noexcept { return plan_.now(); }
  sim::scheduler& plan() noexcept { return plan_; }
  std::deque<sim::server>& machines() noexcept { return machines_; }
  const held_leases& held() const noexcept { return held_; }
  const asio::any_io_executor& executor() const noexcept { return context_.executor; }
  bool ended() const noexcept { return ended_; }
  /// Throws std::logic_error inside of a handler of the io_context, where `act` cannot be done.
  void check_outside(const char* act) const;

  // Throw std::invalid_argument for an executor of another context.
  client make_client(const asio::any_io_executor& executor, config config, sim::server& machine);
  /// Of all machines.
  client make_client(const asio::any_io_executor& executor, config config);
  /// Null: the client is none of this machine.
  sim::route* way_of(const client& client, const sim::server& machine);
  /// Ends the servers and closes the clients. From now on time goes on by itself as far as they need it to end.
  /// Idempotent.
  void end();

  /// Until `when`, the servers and the bytes on their way go on without the io_context.
  void pause_until(time_point when);

  // Not inside of a handler of the io_context.
  void run_until(time_point when);
  void run_due();
  /// Goes to the next instant at which something happens.
  void step();

 private:
  /// The io_context as a participant. It comes last: due timers have handed their actions to it before.
  class handlers final : public sim::participant {
   public:
    explicit handlers(const context& where) : where_(where) {}
    void run() override {
      if (!where_.inside()) where_.poll();
    }
    std::optional<time_point> next() const override { return std::nullopt; }

   private:
    const context& where_;
  };
  struct member {
    std::string id;  // of the client
    std::weak_ptr<detail::core> core;
    std::deque<sim::route> ways;  // to each of its machines
  };
  class virtual_environment;
  class stage_observer;

  void check_is_here(const asio::any_io_executor& other) const;
  client connect(const asio::any_io_executor& executor, detail::settings settings, const std::vector<sim::server*>& to);
  void hear_of(time_point something_new);
  void pump();

  const context context_;
  handlers handlers_{context_};
  sim::scheduler plan_;
  sim::trace log_{nullptr};
  sim::seeded_random random_;
  std::deque<sim::server> machines_;
  held_leases held_;
  std::deque<member> members_;
  bool driving_ = false;  // a function runs the plan
  bool pumping_ = false;  // a handler is on its way to run it
  bool ended_ = false;
};

}  // namespace holdfast::testing
