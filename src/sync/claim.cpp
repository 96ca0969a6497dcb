// SPDX-License-Identifier: BSL-1.0
#include "sync/claim.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "base/assert.hpp"

namespace holdfast::detail {
namespace {

milliseconds left_until(time_point when, time_point now, double rho) noexcept {
  const std::chrono::duration<double, std::milli> left = std::max(when - now, nanoseconds::zero()) * (1 + rho);
  return std::chrono::ceil<milliseconds>(left);
}

}  // namespace

key_ttl share::ttl_to_send(milliseconds wanted, time_point now, double rho) noexcept {
  const auto ttl = std::max(wanted, left_until(valid_until_, now, rho));
  may_live_until_ = std::max(may_live_until_, now + ttl);
  return {ttl, may_live(now, rho)};
}

milliseconds share::may_live(time_point now, double rho) const noexcept {
  return std::max(left_until(valid_until_, now, rho), left_until(may_live_until_, now, 0));
}

void intrusive_ptr_add_ref(const share* s) noexcept { intrusive_ptr_add_ref(&s->of); }
void intrusive_ptr_release(const share* s) noexcept { intrusive_ptr_release(&s->of); }

claim::claim(std::shared_ptr<const client_state> of, shared_keys k, const owner_field& f,
             std::span<const node_id> nodes, std::size_t needed)
    : keys(std::move(k)), field(f), validity_(std::move(of)), needed_(static_cast<std::uint32_t>(needed)) {
  HOLDFAST_ASSERT(needed > 0 && needed <= nodes.size());
  shares_.reserve(nodes.size());
  for (const auto node : nodes) shares_.emplace_back(*this, node);
}

share& claim::sole_share() noexcept {
  HOLDFAST_ASSERT(shares_.size() == 1);
  return shares_.front();
}

bool claim::confirm(share& s, time_point until) noexcept {
  HOLDFAST_ASSERT(&s.of == this);
  s.valid_until_ = std::max(s.valid_until_, until);  // also where the claim is over: the key lives on, and is released
  if (shares_.size() == 1) return validity_.extend(until);
  boost::container::small_vector<time_point, 9> ends;
  for (const auto& each : shares_) ends.push_back(each.valid_until());
  const auto nth = ends.begin() + static_cast<std::ptrdiff_t>(needed_ - 1);
  std::nth_element(ends.begin(), nth, ends.end(), std::greater<>());
  return validity_.extend(*nth);
}

bool claim::set_doubted(share& s, bool doubted) noexcept {
  HOLDFAST_ASSERT(&s.of == this);
  if (std::exchange(s.doubted_, doubted) == doubted) return false;
  const auto trusted = std::count_if(shares_.begin(), shares_.end(), [](const share& each) { return !each.doubted_; });
  const bool suspended = static_cast<std::size_t>(trusted) < needed_;
  return suspended_.exchange(suspended, std::memory_order_acq_rel) != suspended;
}

milliseconds claim::may_live(time_point now, double rho) const noexcept {
  milliseconds longest{};
  for (const auto& each : shares_) longest = std::max(longest, each.may_live(now, rho));
  return longest;
}

}  // namespace holdfast::detail
