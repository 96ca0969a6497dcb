// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/container/small_vector.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <map>
#include <optional>

#include <holdfast/config.hpp>

#include "base/assert.hpp"
#include "base/lease_clock.hpp"
#include "sync/claim/claim.hpp"
#include "sync/renewal/timing_wheel.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// The watchdog guards the claim: it has a holder, and an alarm waits for its end.
inline bool guarded(const claim& held) noexcept { return held.expiry.is_linked(); }
/// A renewal of the share waits for its answer.
inline bool in_flight(const share& part) noexcept {
  return part.stage == renewal_stage::in_flight || part.stage == renewal_stage::doubted_in_flight;
}

/// Decides when each share is renewed, and selects the shares of each script. Waits for nothing and sends nothing.
///
/// It promises:
/// - among the shares that are due at a server, the one that ends first goes first;
/// - servers do not wait for each other, and a server whose link is down gets nothing;
/// - a script renews shares whose kinds have one renewal step, and that can wait about equally long for the answer;
/// - a server has at most most_unanswered + batch_size - 1 shares to answer at a time.
///
/// Decision: a renewal has two orders. Most locks are released long before their first renewal, so a scheduled share
/// waits in a timing_wheel, where insertion and removal are cheap. Due shares are ordered by the end of their validity,
/// because more may be due than may be sent. The rest of a claim is fetched into the cache in time (base/prefetch.hpp).
///
/// Decision: few renewals at a time, the claim that ends soonest first. A million leases that were due together were
/// once all sent together. They timed out in our own queue, and were planned again one by one. So a server has at most
/// about 16 times 100 shares to answer. Shares are counted, not scripts: in a cluster most names have a slot of their
/// own, and so a script of their own.
///
/// Decision: a renewal goes where its key lives when it is due. A slot may have moved since the grant, or a replica was
/// promoted. So a share asks for its node each time its renewal is due, and not at each move. The topology redirects a
/// command that is under way. A move looks at the shares only while one is doubted or a node is down. Their keys may
/// live on a node that answers now (watchdog::keys_moved()).
///
/// The steps of a share, renewal_stage. Nothing else moves them:
///
///   step               linked in      guarded        denied        what moves it on
///   none               nothing        yes or no      yes or no     schedule()
///   scheduled          scheduled_     yes            see below     collect() → due, take() → in_flight,
///                                                                  unschedule() → none
///   due                queue::due     yes            see below     take() → in_flight, schedule() → scheduled,
///                                                                  unschedule() → none
///   in_flight          nothing        yes or no      yes or no     confirm_by() → doubted_in_flight, land() → none
///   doubted_in_flight  nothing        yes or no      yes or no     land() → none
///
/// forget() takes the shares of a claim out of both orders. A share in flight stays so until its answer.
/// A denied share is not scheduled. There is one exception: its denial came while a renewal was in flight, and that
/// renewal is not answered. `doubted` is possible with each step.
class renewals {
 public:
  using shares = boost::container::small_vector<share_ptr, 1>;

  static constexpr std::size_t batch_size = 100;
  /// More shares would wait in a queue of the server or of ours. A share that becomes urgent could not overtake them.
  static constexpr std::size_t most_unanswered = 16 * batch_size;
  /// Other handlers of the strand run before more is collected.
  static constexpr std::size_t collected_at_once = 1000;

  renewals(const topology& servers, const config& settings) noexcept : servers_(servers), settings_(settings) {}

  /// The share is renewed at `when` instead of any time that was planned before. It is not in flight.
  void schedule(share& part, time_point when) {
    HOLDFAST_ASSERT(guarded(part.of) && part.of.holder() && part.of.wanted.ttl > terms::duration::zero());
    HOLDFAST_ASSERT(!in_flight(part));
    unschedule(part);
    part.stage = renewal_stage::scheduled;
    part.renewal = when;
    scheduled_.insert(part);
  }
  /// Cancels the planned renewal. A share in flight stays so.
  void unschedule(share& part) {
    HOLDFAST_ASSERT(part.hook.is_linked() == waits(part));
    if (!part.hook.is_linked()) return;
    if (part.stage == renewal_stage::due) return leave_queue(part);
    scheduled_.erase(part);
    part.stage = renewal_stage::none;
  }
  /// Plans a renewal that is sent from now on, no later than `by`. The answer to a renewal in flight may be older than
  /// the doubt; land() reports that.
  void confirm_by(share& part, time_point by);
  /// A renewal that is sent from now on is planned by then.
  static bool confirms_by(const share& part, time_point by) noexcept {
    const bool planned = part.stage == renewal_stage::scheduled || part.stage == renewal_stage::doubted_in_flight;
    return part.stage == renewal_stage::due || (planned && part.renewal <= by);
  }
  /// An answer, or the lack of one, ends the flight. True: a doubt came meanwhile, and the share must be confirmed once
  /// more by share::renewal.
  static bool land(share& part) noexcept;
  /// There was no memory to send the renewal, or to read the answer. It is sent a little later.
  void put_off(share& part, time_point now) noexcept;
  void put_off(const shares& parts, time_point now) noexcept;

  /// Makes the shares due whose time has come, at most collected_at_once of them.
  void collect(time_point now);
  /// A server to which a script can be sent.
  std::optional<node_id> ready() const noexcept;
  /// The shares of the next script to the server. They are in flight, but not yet counted by sent().
  shares take(node_id node, time_point now);
  /// The server has this number of shares more to answer, or fewer.
  void sent(node_id node, std::size_t count) { queues_[node].unanswered += count; }
  void answered(node_id node, std::size_t count);

  void link_changed(node_id node, bool up);
  bool is_up(node_id node) const noexcept;
  /// The link of the server was up once.
  bool was_up(node_id node) const noexcept;
  bool any_down() const noexcept;
  /// Forgets servers that are down and have no shares: they may be gone for good.
  void forget_dead();

  /// With several primaries each one keeps its share. Otherwise the share moves with its key.
  node_id home_of(const share& part) const;
  static bool is_due_at(const share& part, node_id node) noexcept {
    return part.stage == renewal_stage::due && part.node == node;
  }
  /// The timeout of a renewal.
  nanoseconds timeout_of(const share& part, time_point now) const;

  /// No scheduled share is due before this instant.
  time_point earliest() const noexcept { return scheduled_.earliest(); }
  /// Shares that are scheduled or due.
  std::size_t size() const noexcept;

 private:
  /// Earliest first. At the same instant the oldest claim, not the lowest address, so that simulated runs repeat
  /// exactly.
  struct sooner {
    bool operator()(const share& one, const share& other) const noexcept {
      if (one.renewal != other.renewal) return one.renewal < other.renewal;
      return &one.of == &other.of ? one.node < other.node : one.of.field < other.of.field;
    }
  };
  using by_end = boost::intrusive::set<share, boost::intrusive::member_hook<share, order_hook, &share::hook>,
                                       boost::intrusive::compare<sooner>>;
  /// The renewals of one server.
  struct queue {
    by_end due;
    std::size_t unanswered = 0;  // shares in scripts that were sent
    bool up = true;
    bool was_up = false;
  };

  static bool waits(const share& part) noexcept {
    return part.stage == renewal_stage::scheduled || part.stage == renewal_stage::due;
  }
  void leave_queue(share& part);

  const topology& servers_;
  const config& settings_;
  timing_wheel<boost::intrusive::mhtraits<share, order_hook, &share::hook>, sooner> scheduled_;
  std::map<node_id, queue> queues_;
};

}  // namespace holdfast::detail
