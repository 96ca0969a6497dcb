// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "base/lease_clock.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// Pure: the node of a cluster at which one channel is subscribed, and the next step.
///
///   wanted ── its slot has an owner ──> asked(node) ── acknowledged ──> live(node)
///     ^                                    │     └─ refused ──> refused(node) │
///     └── moved, node gone, another owner ─┴───────────────────────┴──────────┘
///
/// A node that says "elsewhere" while it is still the known owner is asked again after a pause. So is any owner after
/// the second such answer in a row. The pauses double, because a cluster may be down for long.
class shard_route {
 public:
  static constexpr node_id nobody = 0;

  struct step {
    enum class kind {
      stay,
      ask,    // leave, and subscribe at `node`
      leave,  // its slot has no owner, so no node is asked until the map changes
      wait    // leave, and look again at `until`
    } type = kind::stay;
    node_id node = nobody;
    time_point until{};
  };
  /// `owner`: the known owner of its slot. The step that is returned counts as done.
  step look(node_id owner, time_point now);

  void acknowledged() noexcept;
  void refused() noexcept;
  /// The node says that the channel is elsewhere, or that it cannot tell at present.
  void moved(time_point now) noexcept;
  /// The node is gone, and its subscription with it.
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
