// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/container/small_vector.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "sync/claim/claim.hpp"
#include "sync/command/surroundings.hpp"
#include "sync/renewal/agenda.hpp"

namespace holdfast::detail {

/// Keeps claims alive for their holders, and tells when one is over. Renews every TTL/3, many shares in one script and
/// a few scripts at a time: of what is due, the share that ends soonest goes first. Where there are many, the first
/// renewal of each comes at any time of its period, so that what was taken together is not renewed together for ever;
/// likewise the first after an outage. A failed renewal is repeated until the validity ends, which it notices by the
/// clock alone; while the link to a server is down nothing is sent there. Servers do not wait for each other. Where
/// keys move from one to another, a share is renewed at the server that owns its key when the renewal is due; one
/// script renews shares of one group.
///
/// The servers call it back and do not keep it alive: their owner ends them before it.
class watchdog {
 public:
  /// Called once for each claim that is lost; the watchdog has forgotten it by then.
  using lose = function<void(claim&)>;

  watchdog(surroundings& around, lose on_lost);

  /// Guards the claim from now on: a command that was sent at `sent` has granted or extended it at these servers. It
  /// must have a holder until forget().
  void guard(claim& c, time_point sent, time_point now, primary_set at = only(0));
  /// Guards one that was forgotten when its hold ended, for the next hold: nothing was sent for that.
  void guard_on(claim& c, time_point now);
  void forget(claim& c);
  /// The share is not ours, by the answer to another command: it is renewed no more.
  void denied(share& s);
  bool idle() const noexcept { return expiries_.empty(); }

  /// Confirms the claim within `patience`, unless it ends before.
  void confirm_soon(claim& c, nanoseconds patience);
  void link_changed(node_id node, bool up);
  /// Keys have another node than before. A share that waits for a node that is down, or could not be confirmed, is
  /// renewed at once where its key lives now.
  void keys_moved();

 private:
  /// Whether a renewal keeps its distance to the last one, or is the first of its share.
  enum class rhythm { kept, begun };
  /// Earliest first; of one instant the oldest claim, not the lowest address: a simulated run is the same each time.
  struct sooner {
    bool operator()(const share& a, const share& b) const noexcept {
      return a.renewal != b.renewal ? a.renewal < b.renewal : older(a, b);
    }
    bool operator()(const claim& a, const claim& b) const noexcept {
      return a.expires_at != b.expires_at ? a.expires_at < b.expires_at : older(a, b);
    }
  };
  using order = boost::intrusive::set<share, boost::intrusive::member_hook<share, order_hook, &share::hook>,
                                      boost::intrusive::compare<sooner>>;
  template <class T, class Hook, Hook T::*Place>
  using agenda_of = agenda<boost::intrusive::mhtraits<T, Hook, Place>, sooner>;
  using shares = boost::container::small_vector<share_ptr, 1>;
  class batch;
  using stage = renewal_stage;
  /// The renewals of one server.
  struct queue {
    order due;
    std::size_t in_flight = 0;  // shares
    bool up = true;
    bool known = false;  // it was up once
  };

  static bool older(const claim& a, const claim& b) noexcept;
  static bool older(const share& a, const share& b) noexcept;

  /// Of a share that is guarded.
  hold& holder_of(const share& s) const;
  static bool guarded(const claim& c) noexcept { return c.expiry.is_linked(); }
  static bool in_flight(const share& s) noexcept {
    return s.stage == stage::in_flight || s.stage == stage::doubted_in_flight;
  }
  /// Each of several primaries has its share for good; else the share goes with its key.
  node_id home_of(const share& s) const;
  bool is_up(node_id node) const;
  bool wanted(const share& s, time_point now) const;
  static bool is_due_at(const share& s, node_id node) noexcept { return s.stage == stage::due && s.node == node; }
  void schedule_renewal(share& s, time_point when);
  void unschedule_renewal(share& s);
  void confirm_soon(share& s, time_point by);
  void guard(claim& c, time_point sent, time_point now, primary_set at, rhythm how);
  void plan_next(share& s, time_point sent, time_point now, rhythm how);
  void renew_due();
  void collect_due(time_point now);
  /// How long an answer to a renewal is waited for.
  nanoseconds patience_of(const share& s, time_point now) const;
  shares take_due(node_id node, time_point now);
  key_group group_of(const share& s) const;
  void send_by_group(node_id node, shares&& which);
  void send(node_id node, shares&& which);
  void put_off(const shares& which, time_point now) noexcept;
  void put_off(share& s, time_point now) noexcept;
  void answered(const batch&, const outcome&);
  void wait_for_replicas(const batch&, std::vector<std::size_t> which, const outcome&);
  void on_replicas(const batch&, const std::vector<std::size_t>& which, time_point sent,
                   const std::optional<failure>& failed, unsigned had);
  bool send_apart(const batch&, const outcome&, const failure&);
  void on_late(const batch&, const error_code&, const std::string& detail);
  void on_confirmed(share& s, time_point sent, milliseconds ttl, bool doubted);
  void count_renewal(const share& s, nanoseconds left) const;
  void on_denied(share& s, renewal_answer why);
  void on_unanswered(share& s, const error_code&, const std::string& detail);
  void doubt(share& s, const error_code&, const std::string& detail);
  void expire_at(claim& c, time_point when);
  void expire_due();
  void tell_loss(claim& c);
  void suspend(share& s, const error_code&);
  /// True: it was doubted until now.
  bool restore(share& s);
  void rearm();
  std::size_t due() const noexcept;

  surroundings& around_;
  lose on_lost_;
  agenda_of<share, order_hook, &share::hook> renewals_;  // those that are scheduled
  agenda_of<claim, agenda_hook, &claim::expiry> expiries_;
  std::size_t guarded_shares_ = 0;
  bool any_doubted_ = false;  // perhaps; false: no share is
  bool by_slot_ = false;      // what looks like one server has a cluster behind it
  std::map<node_id, queue> queues_;
  timer renewal_alarm_, expiry_alarm_;
};

}  // namespace holdfast::detail
