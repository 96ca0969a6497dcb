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

/// The next renewal of a share: not planned; or in the order of renewals; or among those that are due; or sent; or
/// sent, and a doubt came meanwhile.
enum class renewal_stage : std::uint8_t { none, scheduled, due, in_flight, doubted_in_flight };

/// What a claim has at one server.
class share {
 public:
  share(claim& whose, node_id at) : of(whose), node(at) {}

  /// Until when it is ours by the word of this server.
  time_point valid_until() const noexcept { return valid_until_; }
  /// What to send where a TTL of `wanted` would do: what is claimed already must stay covered, and where the key has no
  /// TTL any more, also what is still in flight and may be claimed with its answer. It is noted: the key may get it
  /// without an answer. `rho`: by how much the server's clock may be faster.
  key_ttl ttl_to_send(milliseconds wanted, time_point now, double rho) noexcept;
  /// For how long the key may live by all that was sent, if that arrived at once.
  milliseconds may_live(time_point now, double rho) const noexcept;

  /// It cannot be confirmed at present.
  bool doubted() const noexcept { return doubted_; }
  /// Its server has confirmed it once, and not denied it since.
  bool confirmed() const noexcept { return valid_until_ != time_point(); }
  /// Its server has said that it is not ours, or was not asked for it.
  bool denied() const noexcept { return denied_; }

  /// A reference to a share keeps its claim alive.
  friend void intrusive_ptr_add_ref(const share* share) noexcept;
  friend void intrusive_ptr_release(const share* share) noexcept;

  claim& of;
  node_id node;  // where it was when its renewal was due last; the watchdog asks again then
  renewal_stage stage = renewal_stage::none;  // the watchdog's alone, as all that is public below

 private:
  friend class claim;

  bool doubted_ = false, denied_ = false;  // here, where they fill a gap
  time_point valid_until_{}, may_live_until_{};

 public:
  time_point renewal{};  // scheduled: when; due: its end, by which these are ordered; doubted: when once more
  order_hook hook;       // scheduled, due
  time_point when() const noexcept { return renewal; }
  /// Its renewal comes soon: the rest of its claim is on its way from far memory meanwhile.
  void settle() const noexcept;
};
using share_ptr = boost::intrusive_ptr<share>;

/// A possession on the wire: one owner field of one name, at one or more servers, of which `needed` must confirm it.
/// It may be handed from one hold to the next. Plain memory.
class claim final : public boost::intrusive_ref_counter<claim> {
  // Here, where they fill a gap: there are as many claims as held locks.
  const std::uint8_t share_count_, needed_;
  std::atomic<bool> suspended_{false};

 public:
  /// A message said that the lock was freed, and nobody has confirmed it since. The client's strand.
  bool in_doubt = false;

  /// In the pool of its client.
  static boost::intrusive_ptr<claim> make(client_state_ptr of, shared_keys keys, const owner_field& field,
                                          std::span<const node_id> nodes, std::size_t needed);
  claim(const claim&) = delete;
  claim& operator=(const claim&) = delete;
  static void operator delete(claim* ended, std::destroying_delete_t) noexcept;

  const shared_keys keys;
  const owner_field field;

  // Any thread.
  /// Of the validity, which is the needed-th largest of the shares'; 0 once it is over or the client was closed.
  nanoseconds left() const noexcept { return validity_.left(); }
  time_point valid_until() const noexcept { return validity_.until(); }
  /// It cannot be confirmed at present: too many shares are doubted.
  bool suspended() const noexcept { return suspended_.load(std::memory_order_acquire); }
  const client_state& client() const noexcept { return validity_.client(); }
  const clock& time() const noexcept { return validity_.time(); }

  // The client's strand.
  std::span<share> shares() noexcept { return {first_share(), share_count_}; }
  std::span<const share> shares() const noexcept { return {const_cast<claim*>(this)->first_share(), share_count_}; }
  /// The share of a claim that has one.
  share& sole_share() noexcept;
  /// The server has confirmed the share until then. False: the validity was over before.
  bool confirm(share& share, time_point until) noexcept;
  /// The same with the shares at these servers, by their order.
  bool confirm(primary_set at, time_point until) noexcept;
  /// The share is not ours: what it was valid for counts no more. False: what is left of the claim is too little.
  bool deny(share& share) noexcept;
  /// The same with the shares at these servers, before anything is claimed.
  void begin_without(primary_set at) noexcept;
  /// Where it may be: all but what was denied.
  primary_set may_be_at() const noexcept;
  /// Where it is, by a word that nothing has put in doubt since.
  primary_set trusted_at() const noexcept;
  /// share::ttl_to_send() of one command to all of them.
  key_ttl ttl_to_send(milliseconds wanted, time_point now, double rho) noexcept;
  /// The share cannot be confirmed at present, or can again. True: that has suspended the claim, or restored it.
  bool doubt(share& share) noexcept { return set_doubted(share, true); }
  bool trust(share& share) noexcept { return set_doubted(share, false); }
  /// For how long a key of it may live anywhere.
  milliseconds may_live(time_point now, double rho) const noexcept;

  /// Whose it is now; null when its hold has ended. One that the watchdog guards has a holder.
  hold* holder() const noexcept { return holder_; }
  void hand_to(hold* next) noexcept { holder_ = next; }

  // The count at the server, which set_hold_count() and a re-entry that asks for itself keep.
  struct count_at_server {
    std::uint32_t leases = 1;  // as it has said last; 0: nobody knows
    bool under_way = false;    // set_hold_count() has sent one that is not answered
    bool asked_again = false;  // and the claim was in question after that
    bool ever_sent = false;    // else it is 1 at every server that has the claim
  } counted;

  /// What the leases of its holder ask of the watchdog. A renewal looks here, and touches neither the hold nor its
  /// leases: what is touched once in a period is far away.
  struct wishes {
    terms::duration ttl{};          // the longest
    std::uint8_t min_replicas = 0;  // the most
    bool for_good = false;  // one of them asks for renewal as long as it is there; else the hold knows until when
  } wanted;

  // The watchdog's alone: its place in the order of expiries, which lags behind valid_until().
  time_point expires_at{};
  timing_wheel_hook expiry;
  time_point when() const noexcept { return expires_at; }
  void settle() noexcept { expires_at = valid_until(); }

 private:
  claim(client_state_ptr of, shared_keys keys, const owner_field& field, std::size_t shares, std::size_t needed);

  // They follow in the same block, and are never moved: the watchdog points to them.
  static constexpr std::size_t size_with(std::size_t shares) noexcept { return sizeof(claim) + shares * sizeof(share); }
  share* first_share() noexcept { return std::launder(reinterpret_cast<share*>(this + 1)); }
  bool set_doubted(share& share, bool doubted) noexcept;
  template <class Which>
  bool enough(Which matches) const noexcept;
  time_point end_of_needed() const noexcept;

  validity validity_;
  hold* holder_ = nullptr;
};
using claim_ptr = boost::intrusive_ptr<claim>;

}  // namespace holdfast::detail
