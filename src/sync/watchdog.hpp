// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "sync/hold.hpp"
#include "sync/surroundings.hpp"

namespace holdfast::detail {

/// Keeps holds alive and tells when one is over. Renews every TTL/3, many holds in one script and a few scripts at a
/// time: of what is due, the hold that ends soonest goes first. A failed renewal is repeated until the validity ends,
/// which it notices by the clock alone; while the link to a server is down nothing is sent there. Servers do not wait
/// for each other.
///
/// The servers call it back and do not keep it alive: their owner ends them before it.
class watchdog {
 public:
  /// Called once for each hold that is lost; the watchdog has forgotten it by then.
  using lose = function<void(hold&, error_code)>;

  watchdog(surroundings& around, lose on_lost);

  /// From now on: granted or extended by a command that was sent at `sent`.
  void guard(hold& h, time_point sent);
  void forget(hold& h);
  bool idle() const noexcept { return expiries_.empty(); }

  /// Confirms the hold within `patience`, unless it ends before.
  void confirm_soon(hold& h, nanoseconds patience);
  /// A lease of it was fed after max_hold had stopped its renewal.
  void fed(hold& h);
  void link_changed(node_id node, bool up);

 private:
  using place = std::pair<time_point, hold*>;
  /// Earliest first; of one instant the oldest hold, not the lowest address: a simulated run is the same each time.
  struct sooner {
    bool operator()(const place& a, const place& b) const noexcept;
  };
  using order = std::set<place, sooner>;
  using batch = std::vector<std::shared_ptr<hold>>;
  /// The renewals of one server.
  struct queue {
    order due;  // by when each hold ends
    std::size_t in_flight = 0;
    bool up = true;
  };

  void schedule_renewal(hold& h, time_point when);
  void unschedule_renewal(hold& h);
  void plan_next(hold& h, time_point sent);
  void renew_due();
  void collect_due(time_point now);
  /// How long an answer to a renewal is waited for.
  nanoseconds patience_of(const hold& h, time_point now) const;
  batch take_due(node_id node, time_point now);
  void send(node_id node, batch);
  void answered(node_id node, const batch&, const std::vector<milliseconds>& ttls, const outcome&);
  void send_alone(node_id node, const batch&);
  void on_late(const batch&, const error_code&, const std::string& detail);
  void on_confirmed(hold& h, time_point sent, milliseconds ttl);
  void on_unanswered(hold& h, const error_code&, const std::string& detail);
  void doubt(hold& h, const error_code&, const std::string& detail);
  void expire_due();
  void suspend(hold& h, const error_code&);
  void restore(hold& h);
  void rearm();
  node_id node_of(const hold& h) const { return around_.servers.node_of(h.keys->lock); }
  std::size_t due() const noexcept;

  surroundings& around_;
  lose on_lost_;
  order renewals_;  // by when each is due
  order expiries_;
  std::map<node_id, queue> queues_;
  timer renewal_alarm_, expiry_alarm_;
};

}  // namespace holdfast::detail
