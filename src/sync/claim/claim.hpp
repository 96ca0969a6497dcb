// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/options.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "protocol/call.hpp"
#include "protocol/keys.hpp"
#include "protocol/owner_field.hpp"
#include "protocol/vote/vote_count.hpp"
#include "sync/claim/terms.hpp"
#include "sync/claim/validity.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

class claim;
class hold;

/// A place in one of the watchdog's orders. There are as many as there are held locks, so each word counts.
using order_hook = boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>;
using timing_wheel_hook = boost::intrusive::list_member_hook<>;

/// The next renewal of a share: not planned, planned, due, sent, or sent before a doubt came. The table of these steps
/// is in renewals.hpp.
enum class renewal_stage : std::uint8_t { none, scheduled, due, in_flight, doubted_in_flight };

/// The part of a claim at one server.
class share {
 public:
  share(claim& whole, node_id at) : of(whole), node(at) {}

  /// The end of the validity by the answers of this server.
  time_point valid_until() const noexcept { return valid_until_; }
  /// The TTL to send if `wanted` would do. Never shorter than the claim already needs. If the key has lost its TTL,
  /// long enough for renewals in flight as well. The TTL is noted, because the key may get it without an answer. `rho`:
  /// the possible drift of the server's clock.
  key_ttl ttl_to_send(milliseconds wanted, time_point now, double rho) noexcept;
  /// The longest time that the key may still live, if every command arrived when it was sent.
  milliseconds may_live(time_point now, double rho) const noexcept;

  /// The share cannot be confirmed at present.
  bool doubted() const noexcept { return doubted_; }
  /// The server has confirmed the share once, and not denied it since.
  bool confirmed() const noexcept { return valid_until_ != time_point(); }
  /// The server has denied the share, or was never asked for it.
  bool denied() const noexcept { return denied_; }

  /// A reference to a share keeps its claim alive.
  friend void intrusive_ptr_add_ref(const share* share) noexcept;
  friend void intrusive_ptr_release(const share* share) noexcept;

  claim& of;
  node_id node;  // the server when the last renewal was due; renewals asks for it again each time
  renewal_stage stage = renewal_stage::none;  // only the watchdog uses it, and the public fields below
  bool planned_by_push : 1 = false;           // a push has asked for the next renewal
  bool sent_by_push : 1 = false;              // the same of the renewal that was sent last

 private:
  friend class claim;

  bool doubted_ = false, denied_ = false;  // at this place, where they fill a gap
  time_point valid_until_{}, may_live_until_{};

 public:
  time_point renewal{};  // scheduled: its time; due: the end of the share; doubted_in_flight: the time of one more
  order_hook hook;       // while it is scheduled or due
  time_point when() const noexcept { return renewal; }
  /// Its renewal is due soon, so the rest of its claim is fetched into the cache.
  void settle() const noexcept;
};
using share_ptr = boost::intrusive_ptr<share>;

/// A possession in Redis: one owner field of one name, at one or more servers. `needed` of them must confirm it.
///
/// Decision: a claim is apart from the hold. The claim is the state in Redis: an owner field, the TTLs of its keys, and
/// the validity that follows. The hold is the state of this process: an owner, its leases and their count. So a claim
/// can pass from one hold to the next without a command. A claim can also be at several servers: it has a share at
/// each, and is valid while enough shares are. The watchdog guards claims, and asks their holders for their wishes.
///
/// Other threads read one instant of a claim, its validity, and two flags. The table of its steps is in claim.cpp.
class claim final : public boost::intrusive_ref_counter<claim> {
  // At this place, where they fill a gap: there are as many claims as held locks.
  const std::uint8_t share_count_, needed_;
  std::atomic<bool> suspended_{false};

 public:
  /// A message said that the lock was freed, or its server pushed a change of the key, and no later renewal has
  /// confirmed the claim. The client's strand.
  bool in_doubt : 1 = false;
  /// Callers of this client may join its hold for a while (kind::joins).
  bool open : 1 = false;

  /// Makes a claim in the pool of its client.
  static boost::intrusive_ptr<claim> make(client_state_ptr of, shared_keys keys, const owner_field& field,
                                          std::span<const node_id> nodes, std::size_t needed);
  claim(const claim&) = delete;
  claim& operator=(const claim&) = delete;
  static void operator delete(claim* ended, std::destroying_delete_t) noexcept;

  const shared_keys keys;
  const owner_field field;

  // Any thread.
  /// The rest of the validity, which ends with the needed-th latest share. 0 if it is over or the client is closed.
  nanoseconds left() const noexcept { return validity_.left(); }
  time_point valid_until() const noexcept { return validity_.until(); }
  /// The claim cannot be confirmed at present: too many shares are doubted or denied.
  bool suspended() const noexcept { return suspended_.load(std::memory_order_acquire); }
  const client_state& client() const noexcept { return validity_.client(); }
  const clock& time() const noexcept { return validity_.time(); }

  // The client's strand.
  std::span<share> shares() noexcept { return {first_share(), share_count_}; }
  std::span<const share> shares() const noexcept { return {const_cast<claim*>(this)->first_share(), share_count_}; }
  /// The share of a claim that has only one.
  share& sole_share() noexcept;
  /// The server has confirmed the share until then. False: the validity was over before.
  bool confirm(share& share, time_point until) noexcept;
  /// The same for the shares at these servers, by their order.
  bool confirm(primary_set at, time_point until) noexcept;
  /// The server has denied the share, and its validity counts no more. False: too few shares of the claim are left.
  bool deny(share& share) noexcept;
  /// Denies the shares at these servers before anything is claimed.
  void begin_without(primary_set at) noexcept;
  /// The servers that may have the field: all that have not denied it.
  primary_set may_be_at() const noexcept;
  /// The servers that have confirmed the field, and that nothing has put in doubt since.
  primary_set trusted_at() const noexcept;
  /// share::ttl_to_send() for one command to all servers.
  key_ttl ttl_to_send(milliseconds wanted, time_point now, double rho) noexcept;
  /// The share cannot be confirmed at present, or can be again. True: that has suspended the claim, or restored it.
  bool doubt(share& share) noexcept { return set_doubted(share, true); }
  bool trust(share& share) noexcept { return set_doubted(share, false); }
  /// The longest time that the key may still live at any server.
  milliseconds may_live(time_point now, double rho) const noexcept;

  /// The hold that has the claim; null when that hold has ended. A guarded claim always has a holder.
  hold* holder() const noexcept { return holder_; }
  void hand_to(hold* next) noexcept { holder_ = next; }

  // The count at the server. set_hold_count() and a re-entry that asks Redis keep it.
  struct count_at_server {
    std::uint32_t leases = 1;  // by its last answer; 0: unknown
    bool under_way = false;    // set_hold_count() waits for an answer
    bool asked_again = false;  // meanwhile the claim came into question
    bool ever_sent = false;    // false: the count is 1 at every server that has the claim
  } counted;

  /// The wishes of the leases, for the watchdog. A renewal reads them here, and touches neither the hold nor its
  /// leases. Memory that is touched once in a period is not in the cache.
  struct wishes {
    terms::duration ttl{};          // the longest
    std::uint8_t min_replicas = 0;  // the most
    bool for_good = false;          // one lease is renewed until its unlock; else the hold knows the end of renewal
  } wanted;

  // Only the watchdog uses these: the place in the order of expiries, which lags behind valid_until().
  time_point expires_at{};
  timing_wheel_hook expiry;
  time_point when() const noexcept { return expires_at; }
  void settle() noexcept { expires_at = valid_until(); }

 private:
  claim(client_state_ptr of, shared_keys keys, const owner_field& field, std::size_t shares, std::size_t needed);

  // The shares follow in the same block, and never move: the watchdog points to them.
  static constexpr std::size_t size_with(std::size_t shares) noexcept { return sizeof(claim) + shares * sizeof(share); }
  share* first_share() noexcept { return std::launder(reinterpret_cast<share*>(this + 1)); }
  bool set_doubted(share& share, bool doubted) noexcept;
  template <class Predicate>
  bool enough(Predicate matches) const noexcept;
  time_point end_of_needed() const noexcept;

  validity validity_;
  hold* holder_ = nullptr;
};
using claim_ptr = boost::intrusive_ptr<claim>;
// Both share a block of the pool, whose sizes are 16 bytes apart.
static_assert(sizeof(claim) + sizeof(share) <= 21 * sizeof(void*), "there are as many as held locks");

}  // namespace holdfast::detail
