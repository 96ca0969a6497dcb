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

/// All that the clients of a test share: time, the machines, the ways to them, and the io_context of the test, on which
/// everything runs. Plain memory, which may outlive the io_context: clients and leases keep it.
class stage final : public std::enable_shared_from_this<stage> {
 public:
  /// The test's io_context.
  struct context {
    asio::any_io_executor executor;
    std::function<void()> poll;    // runs all that is ready
    std::function<bool()> inside;  // whether this thread runs it now
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
  void check_outside(const char* text) const;

  // Throw std::invalid_argument for an executor of another context.
  client make_client(const asio::any_io_executor& executor, config config, sim::server& machine);
  /// Of all machines.
  client make_client(const asio::any_io_executor& executor, config config);
  /// Null: it is no client of this machine.
  sim::route* way_of(const client& client, const sim::server& machine);
  /// The servers are gone, and clients are closed. From now on time goes on by itself as far as they need it to end.
  /// Idempotent.
  void end();

  /// Until `when`, the server and what is on its way go on without the io_context.
  void pause_until(time_point when);

  // Not inside of a handler of the io_context.
  void run_until(time_point when);
  void run_due();
  /// Goes to the next instant at which something happens.
  void step();

 private:
  /// The io_context, as it takes part: last, when timers that are due have handed their actions to it.
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
    std::deque<sim::route> ways;  // to each machine that it knows
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
  bool driving_ = false;  // somebody runs the plan
  bool pumping_ = false;  // a handler is on its way to do so
  bool ended_ = false;
};

}  // namespace holdfast::testing
