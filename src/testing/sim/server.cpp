// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/server.hpp"

#include <utility>

namespace holdfast::sim {
namespace {

/// Redis finds most expired keys after this time: its cycle runs ten times a second.
constexpr std::chrono::milliseconds expiry_cycle{50};

}  // namespace

std::int64_t wall_clock::now_us() const {
  return offset_us_ +
         static_cast<std::int64_t>(static_cast<double>(time_.now().time_since_epoch().count()) / 1000 * rate_);
}

time_point wall_clock::end_of(wall_ms ms) const {
  const auto us = static_cast<double>((ms + 1) * 1000 - offset_us_);
  return time_point(nanoseconds(static_cast<std::int64_t>(us / rate_ * 1000)));
}

server::server(scheduler& plan, double clock_rate, std::string name, unsigned number)
    : plan_(plan), name_(std::move(name)), at_{.host = "10.0.0." + std::to_string(number + 1), .unix_path = {}},
      clock_(plan.time(), clock_rate), node_([this] { return clock_.now_us(); },
                                             [this](node::session_id to, const reply& message) {
                                               const bool is_message = message.elements.at(0).text.ends_with("message");
                                               if (const auto connection = wire_of(to))
                                                 connection->send_down(message, is_message);
                                             },
                                             [this](node::session_id id) {
                                               if (const auto connection = wire_of(id)) connection->kill();
                                             },
                                             name_) {
  // Each look announces the next end. If an older announcement brought a look as well, there would be ever more looks.
  node_.on_tracked_end = [this](wall_ms end) {
    plan_.at(clock_.end_of(end) + expiry_cycle, [this, number = ++announced_ends_] {
      arrive([this, number] {
        if (number == announced_ends_) node_.end_expired();
      });
    });
  };
  node_.on_kill_refused = [this](node::session_id id) {
    if (const auto connection = wire_of(id)) connection->spare();
  };
}

std::shared_ptr<server_connection> server::wire_of(node::session_id id) const {
  const auto found = wires_.find(id);
  return found == wires_.end() ? nullptr : found->second.lock();
}

node::session_id server::accept(const std::shared_ptr<server_connection>& from) {
  std::erase_if(expected_, [&](const auto& each) { return each.lock() == from; });
  const auto id = node_.connect();
  wires_[id] = from;
  return id;
}

void server::arrive(std::function<void()> action) {
  if (down_) return;
  if (stopped_) {
    ++held_back_;
    return arrived_.push_back(std::move(action));
  }
  action();
}

void server::resume() {
  stopped_ = false;
  for (auto& action : std::exchange(arrived_, {})) action();
}

void server::shut_down() {
  down_ = true;
  stopped_ = false;
  arrived_.clear();
  for (const auto& [id, to] : std::exchange(wires_, {}))
    if (const auto connection = to.lock()) connection->end_from_server();
  for (const auto& each : std::exchange(expected_, {}))
    if (const auto connection = each.lock()) connection->end_from_server();
}

void server::cut_clients() {
  for (const auto id : node_.sessions()) {
    node_.disconnect(id);
    if (const auto connection = wire_of(id)) connection->end_from_server();
  }
}

void server::start(bool keep_data) {
  node_.restart(keep_data);
  down_ = false;
}

}  // namespace holdfast::sim
