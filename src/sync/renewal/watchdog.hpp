// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <string>

#include "sync/claim/claim.hpp"
#include "sync/command/environment.hpp"
#include "sync/renewal/key_tracker.hpp"
#include "sync/renewal/renewal_host.hpp"
#include "sync/renewal/renewal_sender.hpp"
#include "sync/renewal/renewals.hpp"
#include "sync/renewal/timing_wheel.hpp"

namespace holdfast::detail {

/// Keeps claims alive for their holders, and notifies a holder whose claim is suspended, restored or lost.
///
/// It promises:
/// - a claim is renewed every third of its TTL while its holder wants that;
/// - a renewal that failed is repeated until the validity ends;
/// - a holder learns of a loss no later than the end of the validity, by the clock alone, and exactly once;
/// - what Redis confirms after that end brings no claim back.
///
/// Decision: a suspended lease still holds. Many clients treat a failed renewal as the loss of the lock, and stop work
/// that was safe. The validity is known here, and nothing is lost before it ends.
///
/// Decision: a renewal looks at the claim alone. With ten thousand locks each is touched once in a period, and is not
/// in the cache. The first touch then takes longer than a hundred instructions. So the wishes of the leases are in
/// their claim (claim::wishes), and their hold writes them when its leases change. Only a claim with max_hold makes the
/// watchdog ask the hold, through renewal_host.
///
/// Decision: the watchdog finds the claims in danger, and decides when a share is renewed next. `renewals` selects the
/// shares of a script, and `renewal_sender` waits for the answer. Two alarms wake the watchdog; it waits for nothing
/// else.
///
/// Decision: with many claims, the first renewal of each comes at a random time of its period. So does the first one
/// after an outage. Thus claims that were taken together are not renewed together indefinitely.
///
/// The states of a claim. The steps of its shares are in renewals.hpp, the steps of the claim itself in claim.cpp.
///
///   state       in expiries_  its shares                 what moves it
///   not guarded no            none or in flight          guard() → guarded
///   guarded     yes           any step                   forget() → not guarded; suspend() → suspended;
///                                                        denial, end of validity → lost
///   suspended   yes           too many doubted or denied restore() by a confirmation → guarded; else as guarded
///   in doubt    yes           renewed within the delay   a confirmation sent after the doubt → not in doubt
///   lost        no            none or in flight          nothing: it is forgotten, then its holder is notified
///
/// Suspended and in doubt are independent of each other. A claim of several shares stays in doubt, because one share
/// alone does not settle it. A claim whose validity is over is not suspended any more: it is lost when its alarm comes.
///
/// Decision: the links are watched while a claim is guarded, and the first claim begins the watch. Its end waits until
/// the release of the last hold is written. A connection without a watch and without a command stops reading, and would
/// begin again for that release. So the end of a hold calls end_watch_if_idle().
///
/// The servers call the watchdog back and do not keep it alive. Their owner ends them first.
class watchdog final : private renewal_results, private key_tracker::host {
 public:
  watchdog(environment& env, renewal_host& holders);

  /// Guards the claim from now on. A command that was sent at `sent` has granted or extended it at these servers. The
  /// claim must have a holder until forget().
  void guard(claim& held, time_point sent, time_point now, primary_set at = only(0));
  /// Guards a claim for the next hold, after the last unlock of the hold before made the watchdog forget it.
  void guard_on(claim& held, time_point now);
  void forget(claim& held);
  /// The answer to another command has denied the share. It is renewed no more.
  void denied(share& part);
  bool idle() const noexcept { return expiries_.empty(); }
  /// To be called after the end of a hold, when its release was sent or its claim was passed on.
  void end_watch_if_idle() {
    if (!idle()) return;
    env_.servers.keep_watch(false);
    tracker_.end();
  }

  /// Renews the claim within `delay`, unless it ends before.
  void confirm_soon(claim& held, nanoseconds delay);
  /// The server `node` has pushed a change of the claim's key by another client. The claim is confirmed at once, or
  /// when the budget allows it.
  void key_changed(claim& held, node_id node);
  /// The server begins to push changes, or any of its keys may have changed. It is asked which keys are there.
  void keys_in_question(node_id node);
  void link_changed(node_id node, bool up);
  /// Keys have moved to another node. A share is renewed there at once if it was due at the old node, or could not be
  /// confirmed.
  void keys_moved();

 private:
  /// kept: a renewal keeps its distance to the last one. begun: it is the first one of its share, or after an outage.
  enum class rhythm { kept, begun };
  /// Earliest first. At the same instant the oldest claim, not the lowest address, so that simulated runs repeat
  /// exactly.
  struct sooner {
    bool operator()(const claim& one, const claim& other) const noexcept {
      return one.expires_at != other.expires_at ? one.expires_at < other.expires_at : one.field < other.field;
    }
  };

  void confirmed(share& part, time_point sent, milliseconds ttl, bool doubted) override;
  void denied(share& part, renewal_answer cause) override;
  void unanswered(share& part, const error_code& cause, const std::string& detail) override;
  void late(share& part, const error_code& cause, const std::string& detail) override;
  void renewed(node_id node, const renewals::shares& parts) override;
  void missing(const renewals::shares& parts) override;
  void results_end() override { renew_due(); }

  void guard(claim& held, time_point sent, time_point now, primary_set at, rhythm pace);
  void plan_next(share& part, time_point sent, time_point now, rhythm pace);
  void renew_due();
  void count_renewal(const share& part, nanoseconds left) const;
  void doubt(share& part, const error_code& cause, const std::string& detail);
  void suspend(share& part, const error_code& cause);
  void confirm_by_budget(share& part);
  /// True: the share was doubted until now.
  bool restore(share& part);
  void expire_at(claim& held, time_point when);
  void expire_due();
  void rearm();

  environment& env_;
  renewal_host& holders_;
  renewals renewals_;
  renewal_sender sender_;
  key_tracker tracker_;
  timing_wheel<boost::intrusive::mhtraits<claim, timing_wheel_hook, &claim::expiry>, sooner> expiries_;
  std::size_t guarded_shares_ = 0;
  bool any_doubted_ = false;  // false: no share is doubted; true: perhaps one is
  timer renewal_alarm_, expiry_alarm_;
};

}  // namespace holdfast::detail
