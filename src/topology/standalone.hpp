// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "redis/connection.hpp"
#include "redis/endpoint.hpp"
#include "redis/pubsub.hpp"
#include "redis/services.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// One server: one command connection and one pub/sub connection. Used, closed and destroyed on the strand or when
/// nobody runs it.
class standalone final : public topology {
 public:
  /// Throws holdfast::error(invalid_config) when the server is to be reached by TLS and a file for it cannot be used.
  /// `answer_timeout`: for acknowledgements of subscriptions. `events`: outage, connected, fencing_degraded.
  standalone(const redis::services& given, const redis::endpoint& server, std::chrono::milliseconds answer_timeout,
             redis::connection::event_sink events);
  standalone(const standalone&) = delete;
  standalone& operator=(const standalone&) = delete;
  ~standalone() { close(); }

  redis::ticket execute(std::string_view key, redis::request asked) override;
  bool withdraw(redis::ticket t) override;
  bool answering() override;
  bool answered_since(time_point when) override;
  redis::failure trouble() const override;
  subscription subscribe(std::string_view channel, subscriber& who) override;
  void keep_watch(bool on) override;
  void on_link_change(std::function<void(bool up)> listener) override;

  /// Closes both connections at once and drops what is pending. No handler, subscriber, listener or event sink is
  /// called any more.
  void close();

 private:
  std::shared_ptr<redis::connection> commands_;
  std::shared_ptr<redis::pubsub> channels_;
};

}  // namespace holdfast::detail
