// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <boost/container/small_vector.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "protocol/protocol.hpp"
#include "sync/terms.hpp"
#include "sync/validity.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

class claim;
class hold;

/// When the watchdog renews a share: the watchdog's alone.
struct renewal_plan {
  /// Not planned; or in the order of renewals; or among those whose renewal is due; or sent.
  enum class stage { none, scheduled, due, in_flight } now = stage::none;
  time_point when{};                     // scheduled: its renewal; due: its end, by which these are ordered
  std::optional<time_point> confirm_by;  // in flight: a doubt came meanwhile, it is confirmed once more, by then
};

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

  claim& of;
  const node_id node;
  renewal_plan plan;
  boost::intrusive::set_member_hook<> hook;  // scheduled, due: the watchdog's alone

 private:
  friend class claim;

  time_point valid_until_{}, may_live_until_{};
  bool doubted_ = false;
};

/// A possession on the wire: one owner field of one name, at one or more servers, of which `needed` must confirm it.
/// It may be handed from one hold to the next. Plain memory.
class claim : public std::enable_shared_from_this<claim> {
 public:
  claim(const clock& time, std::shared_ptr<const std::atomic<bool>> client_closed, shared_keys keys, owner_field field,
        std::span<const node_id> nodes, std::size_t needed);

  const shared_keys keys;
  const owner_field field;

  // Any thread.
  /// Of the validity, which is the needed-th largest of the shares'; 0 once it is over or the client was closed.
  nanoseconds left() const noexcept { return validity_.left(); }
  time_point valid_until() const noexcept { return validity_.until(); }
  /// It cannot be confirmed at present: too many shares are doubted.
  bool suspended() const noexcept { return suspended_.load(std::memory_order_acquire); }
  const clock& time() const noexcept { return validity_.time(); }

  // The client's strand.
  std::span<share> shares() noexcept { return {shares_.data(), shares_.size()}; }
  /// The share of a claim that has one.
  share& sole_share() noexcept;
  /// The server has confirmed the share until then. False: the validity was over before.
  bool confirm(share& s, time_point until) noexcept;
  /// The share cannot be confirmed at present, or can again. True: that has suspended the claim, or restored it.
  bool doubt(share& s) noexcept { return set_doubted(s, true); }
  bool trust(share& s) noexcept { return set_doubted(s, false); }
  /// For how long a key of it may live anywhere.
  milliseconds may_live(time_point now, double rho) const noexcept;

  /// Whose it is now; null when its hold has ended. One that the watchdog guards has a holder.
  hold* holder() const noexcept { return holder_; }
  void hand_to(hold* next) noexcept { holder_ = next; }

  // The watchdog's alone: its place in the order of expiries, which lags behind valid_until().
  std::optional<time_point> expires_at;
  boost::intrusive::set_member_hook<> expiry;

 private:
  bool set_doubted(share& s, bool doubted) noexcept;

  validity validity_;
  boost::container::small_vector<share, 1> shares_;  // never moved: the watchdog points to them
  const std::size_t needed_;
  std::atomic<bool> suspended_{false};
  hold* holder_ = nullptr;
};

}  // namespace holdfast::detail
