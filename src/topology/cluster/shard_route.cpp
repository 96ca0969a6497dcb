// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/shard_route.hpp"

#include <algorithm>
#include <chrono>

#include "base/assert.hpp"

namespace holdfast::detail {
namespace {

constexpr lease_clock::duration first_route_pause = std::chrono::milliseconds(20);
constexpr unsigned most_route_doublings = 4;

}  // namespace

shard_route::step shard_route::look(node_id owner, time_point now) {
  if (owner == nobody) {
    gone();
    return {step::kind::leave};
  }
  if (state_ != state::wanted && owner == node_) return {};
  const bool again = owner == sent_away_by_ || sent_away_ > 1;
  if (again && now < not_before_) {
    state_ = state::wanted;
    node_ = nobody;
    return {step::kind::wait, nobody, not_before_};
  }
  state_ = state::asked;
  node_ = owner;
  return {step::kind::ask, owner};
}

void shard_route::acknowledged() noexcept {
  HOLDFAST_ASSERT(state_ != state::wanted);
  state_ = state::live;
  sent_away_ = 0;
  sent_away_by_ = nobody;
}

void shard_route::refused() noexcept {
  HOLDFAST_ASSERT(state_ != state::wanted);
  state_ = state::refused;
}

void shard_route::moved(time_point now) noexcept {
  HOLDFAST_ASSERT(state_ != state::wanted);
  not_before_ = now + first_route_pause * (1U << std::min(sent_away_, most_route_doublings));
  sent_away_by_ = node_;
  ++sent_away_;
  gone();
}

void shard_route::gone() noexcept {
  state_ = state::wanted;
  node_ = nobody;
}

}  // namespace holdfast::detail
