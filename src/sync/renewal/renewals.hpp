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

/// The watchdog guards the claim: it has a holder, and an end that is waited for.
inline bool guarded(const claim& held) noexcept { return held.expiry.is_linked(); }
/// A renewal of the share waits for its answer.
inline bool in_flight(const share& part) noexcept {
  return part.stage == renewal_stage::in_flight || part.stage == renewal_stage::doubted_in_flight;
}

/// Decides when each share is renewed, and which shares go into one script. Waits for nothing and sends nothing.
///
/// It promises:
/// - of the shares that are due at a server, the one that ends first goes first;
/// - servers do not wait for each other, and a server whose link is down gets nothing;
/// - a script renews shares of one layout that can wait about equally long for the answer;
/// - a server has at most most_unanswered + batch_size - 1 shares to answer at a time.
///
/// Decision: a renewal has two orders. Most locks are released long before their first renewal, so a scheduled share
/// waits in a timing_wheel, where coming and going is cheap. A due share has its place by the end of its validity,
/// because more may be due than may be sent. It belongs to the server that owns its key at that moment: before it, keys
/// move. The rest of a claim is fetched into the cache while its neighbours are looked at (base/prefetch.hpp).
///
/// The steps of a share, renewal_stage. Nothing else moves them:
///
///   step               linked in      guarded        denied        what moves it on
///   none               nothing        yes or no      yes or no     schedule()
///   scheduled          scheduled_     yes            see below     collect() → due, take() → in_flight,
///                                                                  unschedule() → none
///   due                queue::due     yes            see below     take() → in_flight, schedule(), unschedule()
///   in_flight          nothing        yes or no      yes or no     confirm_by() → doubted_in_flight, land() → none
///   doubted_in_flight  nothing        yes or no      yes or no     land() → none
///
/// A claim that is forgotten takes its shares out of both orders; what is in flight stays there until its answer.
/// A denied share is not scheduled. One whose denial came while it was in flight may be, if that renewal is not
/// answered. `doubted` is possible with each step.
class renewals {
 public:
  using shares = boost::container::small_vector<share_ptr, 1>;

  static constexpr std::size_t batch_size = 100;
  /// More would wait in the server's queue or in ours, where they cannot be overtaken by a share that has become more
  /// urgent.
  static constexpr std::size_t most_unanswered = 16 * batch_size;
  /// Others have their turn on the strand before more is collected.
  static constexpr std::size_t collected_at_once = 1000;

  renewals(const topology& servers, const config& settings) noexcept : servers_(servers), settings_(settings) {}

  /// The share is renewed at `when`, and not at any other time that was planned. It is not in flight.
  void schedule(share& part, time_point when) {
    HOLDFAST_ASSERT(guarded(part.of) && part.of.holder() && part.of.wanted.ttl > terms::duration::zero());
    HOLDFAST_ASSERT(!in_flight(part));
    unschedule(part);
    part.stage = renewal_stage::scheduled;
    part.renewal = when;
    scheduled_.insert(part);
  }
  /// The share is not renewed. One that is in flight stays so.
  void unschedule(share& part) {
    HOLDFAST_ASSERT(part.hook.is_linked() == waits(part));
    if (!part.hook.is_linked()) return;
    if (part.stage == renewal_stage::due) return leave_queue(part);
    scheduled_.erase(part);
    part.stage = renewal_stage::none;
  }
  /// A renewal that is sent from now on confirms the share by then. One that is in flight may have been answered before
  /// there was a doubt: land() says so.
  void confirm_by(share& part, time_point by);
  /// An answer, or the lack of one, ends the flight. True: a doubt came meanwhile, and share::renewal says by when the
  /// share is confirmed once more.
  static bool land(share& part) noexcept;
  /// There was no memory to send the renewal, or to read the answer: it is sent a little later.
  void put_off(share& part, time_point now) noexcept;
  void put_off(const shares& parts, time_point now) noexcept;

  /// Makes those due whose time has come: of very many, a part.
  void collect(time_point now);
  /// A server to which a script can be sent.
  std::optional<node_id> ready() const noexcept;
  /// The shares of the next script to it. They are in flight, but not yet sent().
  shares take(node_id node, time_point now);
  /// The server has so many shares more to answer, or fewer.
  void sent(node_id node, std::size_t count) { queues_[node].unanswered += count; }
  void answered(node_id node, std::size_t count);

  void link_changed(node_id node, bool up);
  bool is_up(node_id node) const noexcept;
  /// Its link was up once.
  bool was_up(node_id node) const noexcept;
  bool any_down() const noexcept;
  /// Forgets servers that are down and have nothing to do: they may be gone for good.
  void forget_dead();

  /// Each of several primaries has its share for good; else the share goes with its key.
  node_id home_of(const share& part) const;
  static bool is_due_at(const share& part, node_id node) noexcept {
    return part.stage == renewal_stage::due && part.node == node;
  }
  /// How long a renewal waits for its answer.
  nanoseconds timeout_of(const share& part, time_point now) const;

  /// No scheduled share is renewed before that.
  time_point earliest() const noexcept { return scheduled_.earliest(); }
  /// Shares that are scheduled or due.
  std::size_t size() const noexcept;

 private:
  /// Earliest first; of one instant the oldest claim, not the lowest address: a simulated run is the same each time.
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
    std::size_t unanswered = 0;  // shares, in scripts that were sent
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
