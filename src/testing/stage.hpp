// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <holdfast/client.hpp>

#include "api/make_client.hpp"
#include "sim/network.hpp"
#include "sim/scheduler.hpp"
#include "sim/seeded_random.hpp"
#include "sim/server.hpp"
#include "sim/trace.hpp"
#include "testing/held_leases.hpp"

namespace holdfast::testing {

/// All that the clients of a server share: time, the one machine, the ways to it, and the io_context of the test, on
/// which everything runs. Plain memory, which may outlive the io_context: clients and leases keep it.
class stage final : public std::enable_shared_from_this<stage> {
 public:
  /// The test's io_context.
  struct context {
    asio::any_io_executor executor;
    std::function<void()> poll;    // runs all that is ready
    std::function<bool()> inside;  // whether this thread runs it now
  };
  explicit stage(context where);
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;

  time_point now() const noexcept { return plan_.now(); }
  sim::scheduler& plan() noexcept { return plan_; }
  sim::server& machine() noexcept { return machine_; }
  const held_leases& held() const noexcept { return held_; }
  const asio::any_io_executor& executor() const noexcept { return context_.executor; }
  bool is_of(const asio::any_io_executor& other) const;
  bool ended() const noexcept { return ended_; }
  /// Throws std::logic_error inside of a handler of the io_context, where `what` cannot be done.
  void check_outside(const char* what) const;

  client make_client(const asio::any_io_executor& executor, config c);
  /// Null: it is no client of this stage.
  sim::route* way_of(const client& c);
  /// The server is gone, and clients are closed. From now on time goes on by itself as far as they need it to end.
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
    std::deque<sim::route> ways;  // one
  };
  class outside;
  class told;

  void hear_of(time_point something_new);
  void pump();

  const context context_;
  handlers handlers_{context_};
  sim::scheduler plan_;
  sim::trace log_{nullptr};
  sim::seeded_random random_;
  sim::server machine_{plan_, 1.0};
  held_leases held_;
  std::deque<member> members_;
  bool driving_ = false;  // somebody runs the plan
  bool pumping_ = false;  // a handler is on its way to do so
  bool ended_ = false;
};

}  // namespace holdfast::testing
