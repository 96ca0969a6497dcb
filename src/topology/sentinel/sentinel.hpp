// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/config.hpp>

#include "base/timers.hpp"
#include "redis/connection.hpp"
#include "redis/endpoint.hpp"
#include "redis/io_services.hpp"
#include "topology/one_server.hpp"
#include "topology/replicas/acknowledger.hpp"
#include "topology/sentinel/connect_gate.hpp"
#include "topology/sentinel/sentinel_resolver.hpp"
#include "topology/sentinel/sentinel_watch.hpp"
#include "topology/server_list.hpp"

namespace holdfast::detail {

/// The server that the sentinels call the primary: one command connection and one pub/sub connection.
///
/// Decision: a change of the primary is an outage that ends at another server. Both connections move as soon as one
/// sentinel names another address with a newer epoch, even if the old server still answers (link::retarget). Commands
/// that were written there are `unconfirmed`. Leases see a link that goes down and comes up, and nothing in `sync`
/// knows of sentinels. ROLE is asked at the new address; its answer never leads back to the old one.
///
/// The sentinels are asked and listened to while the primary is needed. After a pause commands wait until the sentinels
/// have been heard again, at most a quarter of a second if some are silent.
class sentinel final : public one_server, private sentinel_watch::listener {
 public:
  /// Throws holdfast::error(invalid_config) when TLS is to be used and a file for it cannot be used.
  /// `events`: outage, connected, fencing_degraded; primary_changed, sentinels_unreachable, ttl_shorter_than_failover.
  sentinel(const redis::io_services& services, const server_list& servers, const config& behaviour,
           redis::connection::event_sink events);
  ~sentinel() override { sentinel::close(); }

  redis::ticket execute(std::string_view key, redis::request asked) override;
  redis::failure trouble(std::string_view key) const override;
  std::string where(std::string_view key) const override;
  void replicated(std::string_view key, const replica_demand& wanted, replicas_handler done) override;
  subscription subscribe(std::string_view channel, subscriber& subscriber) override;
  void start_pushing(std::string_view key) override;
  void keep_watch(bool on) override;
  void close() override;

 private:
  void on_news(sentinel_watch::sentinel_id id) override;
  void on_answer(sentinel_watch::sentinel_id id, const sentinel_answer& answer) override;
  void on_failed(sentinel_watch::sentinel_id id, const redis::failure& why) override;
  void on_down(sentinel_watch::sentinel_id id, const redis::failure& why) override;
  void on_identified(sentinel_watch::sentinel_id id, const std::string& run) override;
  void on_listed(const std::vector<listed_sentinel>& others) override;

  void wake();
  void sleep_soon();
  void sleep_if_idle();
  void pump();
  void pump_soon();
  void ask();
  void attend_to_known();
  void follow();
  void move_to(const redis::address& to);
  void send_both(const redis::address& to, const std::string& cause);
  void report_trust(time_point now);
  void on_link(bool up);
  void hear(const event& event);
  bool tolerate(const redis::failure& why);
  void report(event_kind kind, errc reason, const std::string& detail) const;

  redis::io_services services_;
  const redis::endpoint any_sentinel_;  // how to introduce ourselves to each
  const std::string primary_name_;
  const bool strict_;
  const std::chrono::milliseconds ttl_;             // compared with the duration of a failover
  const std::chrono::milliseconds answer_timeout_;  // of a question, and for acknowledgements of subscriptions
  redis::connection::event_sink events_;
  sentinel_resolver resolver_;
  connect_gate gate_;
  std::optional<acknowledger> replicas_;
  std::vector<std::unique_ptr<sentinel_watch>> watches_;
  timer look_;    // at the resolver's next instant
  timer linger_;  // until it is certain that nobody needs the primary
  bool awake_ = false;
  bool known_address_ = false;  // both connections lead to a primary
  bool pumping_ = false, pump_again_ = false;
  bool reported_unreachable_ = false, reported_short_ttl_ = false;
};

}  // namespace holdfast::detail
