// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../3_fencing/process.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"

/// A process that remembers what its client was told.
struct attentive_process : process {
  using kind = holdfast::event_kind;

  explicit attentive_process(holdfast::config settings)
      : attentive_process(std::move(settings), std::make_shared<listener>()) {}

  bool heard(kind what, const std::string& name) const {
    return std::any_of(memory->events.begin(), memory->events.end(),
                       [&](const auto& e) { return e.what == what && e.name == name; });
  }
  /// Runs until it was told that of the lock of this name.
  void run_until(kind what, const std::string& name) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    io.restart();
    while (!heard(what, name))
      if (io.run_one_until(deadline) == 0) throw std::runtime_error(name + ": waited in vain");
  }

 private:
  struct happening {
    kind what;
    std::string name;
  };
  struct listener final : holdfast::observer {
    void on(const holdfast::event& e) noexcept override { events.push_back({e.kind, std::string(e.name)}); }
    std::vector<happening> events;
  };

  attentive_process(holdfast::config settings, std::shared_ptr<listener> ear)
      : process(heard_by(ear, std::move(settings))), memory(std::move(ear)) {}
  static holdfast::config heard_by(std::shared_ptr<listener> ear, holdfast::config settings) {
    settings.observer = std::move(ear);
    return settings;
  }

  std::shared_ptr<listener> memory;
};

/// What its primary executes from now on does not reach this replica. Over a network replication is late by itself; on
/// one machine it has to be made so.
inline void fall_behind(const holdfast::test::real_redis& replica) {
  holdfast::test::raw_client{replica}("REPLICAOF", "127.0.0.1", 1);  // nobody is there
}
