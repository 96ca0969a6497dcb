// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "redis/connection.hpp"
#include "redis/endpoint.hpp"
#include "redis/io_services.hpp"
#include "redis/pubsub.hpp"
#include "redis/push_feed.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// One server at a time owns all keys: one connection for commands and one for messages.
class one_server : public topology {
 public:
  one_server(const one_server&) = delete;
  one_server& operator=(const one_server&) = delete;

  node_id node_of(std::string_view) const final { return the_only_node; }
  std::string run_of(std::string_view) const final { return commands_->run(); }
  std::uint64_t server_of(std::string_view) const final { return commands_->server_number(); }
  redis::ticket execute(std::string_view key, redis::request asked) override;
  bool withdraw(redis::ticket ticket) final { return commands_->withdraw(ticket); }
  bool answering(std::string_view) final { return commands_->answering(); }
  bool answered_since(std::string_view, time_point when) final { return commands_->answered_since(when); }
  redis::failure trouble(std::string_view key) const override;
  bool in_outage(std::string_view) const final { return commands_->in_outage(); }
  std::string where(std::string_view key) const override;
  subscription subscribe(std::string_view channel, subscriber& subscriber) override;
  void start_pushing(std::string_view key) override;
  void stop_pushing() final { pushes_->stop(); }
  bool pushes(std::string_view) const final { return pushes_->pushing(); }
  void on_key_changed(change_listener listener) final;
  void keep_watch(bool on) override;
  void on_link_change(link_listener listener) final { listener_ = std::move(listener); }
  void close() override;

 protected:
  one_server() = default;
  ~one_server() override = default;

  /// Makes both connections. Called once, by the constructor of the derived class.
  void make_connections(const redis::io_services& services, const redis::endpoint& server,
                        std::chrono::milliseconds answer_timeout, redis::connection::event_sink events);
  void tell_link(bool up) const;

  std::shared_ptr<redis::connection> commands_;
  std::shared_ptr<redis::pubsub> channels_;
  std::shared_ptr<redis::push_feed> pushes_;

 private:
  static constexpr node_id the_only_node = 0;

  link_listener listener_;
};

}  // namespace holdfast::detail
