// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/config.hpp>
#include <holdfast/observer.hpp>

#include "api/make_topology.hpp"
#include "sim/coverage.hpp"
#include "sim/deployment.hpp"
#include "sim/process.hpp"
#include "support/seeded_random.hpp"
#include "sync/engine.hpp"
#include "testing/sim/network.hpp"
#include "testing/sim/virtual_transport.hpp"

namespace holdfast::sim {

/// One client of the library: its engine and its connections, in a process of its own, on ways of its own to each node.
class sim_client {
 public:
  sim_client(scheduler& plan, deployment& to, trace& log, coverage& met, config settings, std::uint64_t seed,
             std::size_t number);
  ~sim_client();
  sim_client(const sim_client&) = delete;
  sim_client& operator=(const sim_client&) = delete;

  detail::engine& locks() noexcept { return *engine_; }
  sim::process& process() noexcept { return process_; }
  /// One for each machine.
  std::deque<sim::route>& ways() noexcept { return ways_; }
  const config& settings() const noexcept { return settings_; }
  const std::string& name() const noexcept { return name_; }
  const detail::uuid& id() const noexcept { return id_; }
  /// What its owner fields begin with.
  const std::string& uuid() const noexcept { return uuid_; }
  /// A field or a permit of it. The ids of its permits begin with half of its uuid.
  bool owns(std::string_view field) const noexcept {
    return field.starts_with(uuid_) || field.starts_with(half_of_uuid_);
  }

  /// As client::shutdown(): `done` when releases and connections are over.
  void close(nanoseconds grace, std::function<void()> done);
  bool closing() const noexcept { return closing_; }
  /// When it is closed: which hold did not begin and end by one event each; empty: none.
  std::string miscounted() const { return holds_.wrong_at_the_end(); }

 private:
  class event_log;
  /// What an observer knows to be held.
  class hold_count {
   public:
    void hear(const event& e);
    std::string wrong_at_the_end() const;

   private:
    std::set<std::string> held_;
    std::string wrong_;
  };

  scheduler& plan_;
  const std::string name_;
  hold_count holds_;
  config settings_;
  test::seeded_random random_, weather_random_, order_random_;
  const detail::uuid id_;
  std::string uuid_, half_of_uuid_;
  sim::process process_;
  std::deque<sim::route> ways_;
  const home_ptr home_ = std::make_shared<home>(process_.strand());
  sim::transport network_{ways_, home_};
  std::unique_ptr<detail::topology> servers_;
  std::optional<detail::engine> engine_;
  bool closing_ = false;
};

}  // namespace holdfast::sim
