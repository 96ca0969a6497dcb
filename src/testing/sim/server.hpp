// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "redis/endpoint.hpp"
#include "testing/sim/node.hpp"
#include "testing/sim/scheduler.hpp"

namespace holdfast::sim {

/// The server's view of a connection.
class server_connection {
 public:
  /// `message`: of a channel, not an answer.
  virtual void send_down(const reply& sent, bool message) = 0;
  /// CLIENT KILL.
  virtual void kill() = 0;
  /// CLIENT KILL was refused.
  virtual void spare() noexcept = 0;
  /// The server ends it.
  virtual void end_from_server() = 0;

 protected:
  ~server_connection() = default;
};

/// The node's wall clock: runs at its own rate, and may be stepped.
class wall_clock {
 public:
  wall_clock(const virtual_clock& time, double rate) : time_(time), rate_(rate) {}

  std::int64_t now_us() const;
  /// When the clock will have left this millisecond behind, if it is not stepped.
  time_point end_of(wall_ms ms) const;
  void step(std::chrono::milliseconds by) { offset_us_ += std::chrono::microseconds(by).count(); }

 private:
  const virtual_clock& time_;
  double rate_;
  std::int64_t offset_us_ = 1'700'000'000'000'000;
};

/// The machine that the node runs on: it can be stopped as by SIGSTOP, shut down, and started again.
class server {
 public:
  /// `name`: see node. `number`: where it is to be found.
  server(scheduler& plan, double clock_rate, std::string name = {}, unsigned number = 0);

  /// Something arrives: done now, after the stop, or never if the server is down or goes down before.
  void arrive(std::function<void()> action);
  bool down() const noexcept { return down_; }
  bool running() const noexcept { return !down_ && !stopped_; }
  /// A connection is made, which the node has not accepted yet. It ends with the others if the server goes down before.
  void expect(const std::shared_ptr<server_connection>& from) { expected_.push_back(from); }
  /// Binds a new session of the node to its connection.
  node::session_id accept(const std::shared_ptr<server_connection>& from);

  void stop() { stopped_ = true; }
  /// How many arrivals a stop has delayed.
  const std::uint64_t& held_back() const noexcept { return held_back_; }
  void resume();
  /// Every connection ends.
  void shut_down();
  /// CLIENT KILL of all, as a sentinel does it.
  void cut_clients();
  void start(bool keep_data);

  node& program() noexcept { return node_; }
  const std::string& name() const noexcept { return name_; }
  const redis::address& at() const noexcept { return at_; }
  bool is_at(const redis::address& where) const { return at_.host == where.host && at_.port == where.port; }
  node::peer as_peer() const { return {at_.host, at_.port}; }
  wall_clock& clock() noexcept { return clock_; }

 private:
  std::shared_ptr<server_connection> wire_of(node::session_id) const;

  scheduler& plan_;
  const std::string name_;
  const redis::address at_;
  wall_clock clock_;
  node node_;
  std::map<node::session_id, std::weak_ptr<server_connection>> wires_;
  std::vector<std::weak_ptr<server_connection>> expected_;
  std::deque<std::function<void()>> arrived_;  // while stopped
  std::uint64_t held_back_ = 0;
  std::uint64_t announced_ends_ = 0;  // of tracked keys
  bool stopped_ = false, down_ = false;
};

}  // namespace holdfast::sim
