// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "redis/connection.hpp"
#include "redis/endpoint.hpp"
#include "redis/io_services.hpp"
#include "redis/pubsub.hpp"
#include "topology/replicas/acknowledger.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// One server.
///
/// Decision: one connection for commands and one for messages. Redis runs commands one at a time: a second command
/// connection would add no speed, and would break the order that releases rely on. Messages need their own, because
/// RESP2 allows a subscribed connection no other commands. Callers that wait for replicas have one more (acknowledger).
class standalone final : public topology {
 public:
  /// Throws holdfast::error(invalid_config) if the server needs TLS and a file for it cannot be used.
  /// `answer_timeout`: for acknowledgements of subscriptions. `events`: outage, connected, fencing_degraded.
  standalone(const redis::io_services& services, const redis::endpoint& server,
             std::chrono::milliseconds answer_timeout, redis::connection::event_sink events);
  standalone(const standalone&) = delete;
  standalone& operator=(const standalone&) = delete;
  ~standalone() override { standalone::close(); }

  node_id node_of(std::string_view) const override { return the_only_node; }
  std::string run_of(std::string_view) const override { return commands_->run(); }
  std::uint64_t server_of(std::string_view) const override { return commands_->server_number(); }
  redis::ticket execute(std::string_view key, redis::request asked) override;
  bool withdraw(redis::ticket ticket) override;
  bool answering(std::string_view key) override;
  bool answered_since(std::string_view key, time_point when) override;
  redis::failure trouble(std::string_view key) const override;
  bool in_outage(std::string_view) const override { return commands_->in_outage(); }
  std::string where(std::string_view key) const override;
  void replicated(std::string_view key, const copies& wanted, copies_handler done) override;
  subscription subscribe(std::string_view channel, subscriber& subscriber) override;
  void keep_watch(bool on) override;
  void on_link_change(link_listener listener) override { listener_ = std::move(listener); }
  void close() override;

 private:
  static constexpr node_id the_only_node = 0;

  void on_link(bool up);

  link_listener listener_;
  std::shared_ptr<redis::connection> commands_;
  std::shared_ptr<redis::pubsub> channels_;
  acknowledger replicas_;
};

}  // namespace holdfast::detail
