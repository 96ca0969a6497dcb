// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "base/lease_clock.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// Pure: at which node of a cluster one channel is subscribed, and what is to be done about that.
///
///   wanted ── its slot has an owner ──> asked(node) ── acknowledged ──> live(node)
///     ^                                    │     └─ refused ──> refused(node) │
///     └── moved, node gone, another owner ─┴───────────────────────┴──────────┘
///
/// A node that says "elsewhere" and is still the owner, as far as is known, is asked again after a pause; so is whoever
/// is the owner after the second such answer in a row. The pauses double, because a cluster may be down for long.
class shard_route {
 public:
  static constexpr node_id nobody = 0;

  struct step {
    enum class kind {
      stay,
      ask,    // leave, and subscribe at `node`
      leave,  // its slot has no owner: there is nobody to ask until the map changes
      wait    // leave, and look again at `until`
    } type = kind::stay;
    node_id node = nobody;
    time_point until{};
  };
  /// `owner`: who has its slot, as far as is known. What the step says is taken for done.
  step look(node_id owner, time_point now);

  void acknowledged() noexcept;
  void refused() noexcept;
  /// The node says that it is elsewhere, or that it cannot say at present.
  void moved(time_point now) noexcept;
  /// The node, and what was subscribed there, is no more.
  void gone() noexcept;

  node_id node() const noexcept { return node_; }
  bool live() const noexcept { return state_ == state::live; }
  bool is_refused() const noexcept { return state_ == state::refused; }

 private:
  enum class state { wanted, asked, live, refused };

  state state_ = state::wanted;
  node_id node_ = nobody;  // unless wanted
  node_id sent_away_by_ = nobody;
  unsigned sent_away_ = 0;  // in a row
  time_point not_before_{};
};

}  // namespace holdfast::detail
