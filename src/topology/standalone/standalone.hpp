// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <string_view>

#include "redis/connection.hpp"
#include "redis/endpoint.hpp"
#include "redis/io_services.hpp"
#include "topology/one_server.hpp"
#include "topology/replicas/acknowledger.hpp"

namespace holdfast::detail {

/// One server.
///
/// Decision: one connection for commands and one for messages. Redis runs commands one at a time: a second command
/// connection would add no speed, and would break the order that releases rely on. Messages need their own, because
/// RESP2 allows a subscribed connection no other commands. Callers that wait for replicas have one more (acknowledger).
class standalone final : public one_server {
 public:
  /// Throws holdfast::error(invalid_config) if the server needs TLS and a file for it cannot be used.
  /// `answer_timeout`: for acknowledgements of subscriptions. `events`: outage, connected, fencing_degraded.
  standalone(const redis::io_services& services, const redis::endpoint& server,
             std::chrono::milliseconds answer_timeout, redis::connection::event_sink events);
  ~standalone() override { standalone::close(); }

  void replicated(std::string_view key, const replica_demand& wanted, replicas_handler done) override;
  void close() override;

 private:
  void on_link(bool up);

  acknowledger replicas_;
};

}  // namespace holdfast::detail
