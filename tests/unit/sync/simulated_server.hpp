// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "support/fake_topology.hpp"
#include "support/manual_clock.hpp"
#include "testing/sim/node.hpp"

namespace holdfast::test {

/// The simulator's node as the server of a test that plays the link: it runs the real scripts, on the test's clock.
class simulated_server {
 public:
  using message = std::pair<std::string, std::string>;  // channel, payload

  explicit simulated_server(const manual_clock& time)
      : time_(time), node_([this] { return wall_clock_us(time_.now()); }, {}, {}) {
    for (const auto& script : detail::lua::all_scripts)
      node_.execute({"SCRIPT", "LOAD", std::string(script.text.body)});
    node_.on_publish = [this](std::string_view channel, std::string_view payload) {
      published_.emplace_back(channel, payload);
    };
  }
  simulated_server(const simulated_server&) = delete;
  simulated_server& operator=(const simulated_server&) = delete;

  redis::reply run(const fake_topology::command& command) {
    published_.clear();
    return node_.execute(command.argv);
  }
  redis::reply command(const std::vector<std::string>& argv) { return node_.execute(argv); }
  /// By the command that was run last.
  const std::vector<message>& published() const noexcept { return published_; }

  /// Somebody else holds `key` once by `field`, alone.
  void hold(const std::string& key, const std::string& field, detail::time_point until) {
    auto& keys = node_.tamper();
    keys.erase(key);
    keys.to_write<sim::hash_value>(key)->set(field, "1");
    keys.find(key)->expires = wall_clock_us(until) / 1000;
  }
  void clear() { node_.tamper().clear(); }

  bool empty() { return node_.keys().all().empty(); }
  /// Of all keys, the fields that belong to this client.
  std::size_t fields_of(std::string_view uuid) {
    std::size_t count = 0;
    auto& keys = node_.tamper();
    for (const auto& [key, entry] : keys.all())
      if (const auto* hash = entry.hash(); hash && std::as_const(keys).find(key))
        for (const auto& [field, holds] : hash->fields()) count += field.starts_with(uuid);
    return count;
  }

 private:
  static std::int64_t wall_clock_us(detail::time_point when) {
    return std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch()).count();
  }

  const manual_clock& time_;
  sim::node node_;
  std::vector<message> published_;
};

}  // namespace holdfast::test
