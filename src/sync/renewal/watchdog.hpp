// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <string>

#include "sync/claim/claim.hpp"
#include "sync/command/environment.hpp"
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
/// Decision: a renewal looks at the claim alone. With ten thousand locks each is touched once in a period, and a first
/// touch of memory that is not in the cache takes longer than a hundred instructions. So the wishes of the leases are
/// in their claim (claim::wishes), and their hold writes them when its leases change. Only where renewal ends some day
/// (max_hold) the hold is asked, through renewal_host: holds are another room.
///
/// Decision: the watchdog decides which claims are in danger, and when a share is renewed next. `renewals` decides what
/// goes into a script, and `renewal_sender` waits for the answer. Two alarms wake it; it waits for nothing else.
///
/// Decision: where there are many, the first renewal of each comes at any time of its period, and so does the first
/// after an outage. So claims that were taken together are not renewed together for ever.
///
/// The states of a claim. Steps of its shares: renewals.hpp.
///
///   state       in expiries_  its shares                 what moves it
///   not guarded no            none or in flight          guard() → guarded
///   guarded     yes           any step                   forget() → not guarded; suspend() → suspended;
///                                                        denial, end of validity → lost
///   suspended   yes           too many are doubted       restore() by a confirmation → guarded; as guarded
///   in doubt    yes           one is sent once more      a confirmation sent after the doubt → not in doubt
///   lost        no            none or in flight          nothing: its host is notified and it is forgotten
///
/// Suspended and in doubt are independent of each other. A claim of several shares stays in doubt: one share alone does
/// not settle it. A claim whose validity is over is not suspended any more, but lost when its alarm comes.
///
/// The servers call it back and do not keep it alive: their owner ends them before it.
class watchdog final : private renewal_results {
 public:
  watchdog(environment& env, renewal_host& holders);

  /// Guards the claim from now on: a command that was sent at `sent` has granted or extended it at these servers. It
  /// must have a holder until forget().
  void guard(claim& held, time_point sent, time_point now, primary_set at = only(0));
  /// Guards one that was forgotten when its hold ended, for the next hold: nothing was sent for that.
  void guard_on(claim& held, time_point now);
  void forget(claim& held);
  /// The share is not ours, by the answer to another command: it is renewed no more.
  void denied(share& part);
  bool idle() const noexcept { return expiries_.empty(); }

  /// Confirms the claim within `delay`, unless it ends before.
  void confirm_soon(claim& held, nanoseconds delay);
  void link_changed(node_id node, bool up);
  /// Keys have another node than before. A share that waits for a node that is down, or could not be confirmed, is
  /// renewed at once where its key lives now.
  void keys_moved();

 private:
  /// Whether a renewal keeps its distance to the last one, or is the first of its share.
  enum class rhythm { kept, begun };
  /// Earliest first; of one instant the oldest claim, not the lowest address: a simulated run is the same each time.
  struct sooner {
    bool operator()(const claim& one, const claim& other) const noexcept {
      return one.expires_at != other.expires_at ? one.expires_at < other.expires_at : one.field < other.field;
    }
  };

  void confirmed(share& part, time_point sent, milliseconds ttl, bool doubted) override;
  void denied(share& part, renewal_answer cause) override;
  void unanswered(share& part, const error_code& cause, const std::string& detail) override;
  void late(share& part, const error_code& cause, const std::string& detail) override;
  void results_end() override { renew_due(); }

  void guard(claim& held, time_point sent, time_point now, primary_set at, rhythm pace);
  void plan_next(share& part, time_point sent, time_point now, rhythm pace);
  void renew_due();
  void count_renewal(const share& part, nanoseconds left) const;
  void doubt(share& part, const error_code& cause, const std::string& detail);
  void suspend(share& part, const error_code& cause);
  /// True: it was doubted until now.
  bool restore(share& part);
  void expire_at(claim& held, time_point when);
  void expire_due();
  void rearm();

  environment& env_;
  renewal_host& holders_;
  renewals renewals_;
  renewal_sender sender_;
  timing_wheel<boost::intrusive::mhtraits<claim, timing_wheel_hook, &claim::expiry>, sooner> expiries_;
  std::size_t guarded_shares_ = 0;
  bool any_doubted_ = false;  // perhaps; false: no share is
  timer renewal_alarm_, expiry_alarm_;
};

}  // namespace holdfast::detail
