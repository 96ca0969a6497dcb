// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "sync/claim.hpp"
#include "sync/surroundings.hpp"

namespace holdfast::detail {

/// Keeps claims alive for their holders, and tells when one is over. Renews every TTL/3, many shares in one script and
/// a few scripts at a time: of what is due, the share that ends soonest goes first. A failed renewal is repeated until
/// the validity ends, which it notices by the clock alone; while the link to a server is down nothing is sent there.
/// Servers do not wait for each other.
///
/// The servers call it back and do not keep it alive: their owner ends them before it.
class watchdog {
 public:
  /// Called once for each claim that is lost; the watchdog has forgotten it by then.
  using lose = function<void(claim&, error_code)>;

  watchdog(surroundings& around, lose on_lost);

  /// From now on: granted or extended by a command that was sent at `sent`. It has a holder until forget().
  void guard(claim& c, time_point sent);
  void forget(claim& c);
  bool idle() const noexcept { return expiries_.empty(); }

  /// Confirms the claim within `patience`, unless it ends before.
  void confirm_soon(claim& c, nanoseconds patience);
  void link_changed(node_id node, bool up);

 private:
  template <class Of>
  using place = std::pair<time_point, Of*>;
  /// Earliest first; of one instant the oldest claim, not the lowest address: a simulated run is the same each time.
  struct sooner {
    template <class Of>
    bool operator()(const place<Of>& a, const place<Of>& b) const noexcept {
      return a.first != b.first ? a.first < b.first : older(*a.second, *b.second);
    }
  };
  using order = std::set<place<share>, sooner>;
  using batch = std::vector<std::shared_ptr<share>>;  // each keeps its claim
  /// The renewals of one server.
  struct queue {
    order due;  // by when each share ends
    std::size_t in_flight = 0;
    bool up = true;
  };

  static bool older(const claim& a, const claim& b) noexcept;
  static bool older(const share& a, const share& b) noexcept;

  /// Of a share that is guarded.
  hold& holder_of(const share& s) const;
  bool guarded(const claim& c) const noexcept { return c.expires_at.has_value(); }
  void schedule_renewal(share& s, time_point when);
  void unschedule_renewal(share& s);
  void confirm_soon(share& s, time_point by);
  void plan_next(share& s, time_point sent);
  void renew_due();
  void collect_due(time_point now);
  /// How long an answer to a renewal is waited for.
  nanoseconds patience_of(const share& s, time_point now) const;
  batch take_due(node_id node, time_point now);
  void send(node_id node, batch);
  void answered(node_id node, const batch&, const std::vector<milliseconds>& ttls, const outcome&);
  void send_alone(node_id node, const batch&);
  void on_late(const batch&, const error_code&, const std::string& detail);
  void on_confirmed(share& s, time_point sent, milliseconds ttl);
  void on_unanswered(share& s, const error_code&, const std::string& detail);
  void doubt(share& s, const error_code&, const std::string& detail);
  void expire_due();
  void tell_loss(claim& c);
  void suspend(share& s, const error_code&);
  void restore(share& s);
  void rearm();
  std::size_t due() const noexcept;

  surroundings& around_;
  lose on_lost_;
  order renewals_;  // by when each is due
  std::set<place<claim>, sooner> expiries_;
  std::size_t guarded_shares_ = 0;
  std::map<node_id, queue> queues_;
  timer renewal_alarm_, expiry_alarm_;
};

}  // namespace holdfast::detail
