// SPDX-License-Identifier: BSL-1.0
#include "sync/claim/claim.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <chrono>
#include <functional>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/prefetch.hpp"

namespace holdfast::detail {
namespace {

milliseconds left_until(time_point when, time_point now, double rho) noexcept {
  // The clock of the server may run faster than ours. The key then needs a longer TTL for the same instant.
  const std::chrono::duration<double, std::milli> left = std::max(when - now, nanoseconds::zero()) * (1 + rho);
  return std::chrono::ceil<milliseconds>(left);
}

}  // namespace

// The steps of a claim, between two calls. Its validity and its holder decide the step.
//
//   step  holder  validity      guarded             what moves it on
//   new   no      none          no                  a hold is made on it and confirms it → held; only inside one call
//   held  yes     lasts         yes [1]             the clock → over; the end of its hold → left
//   over  yes     over          yes [1]             the watchdog's alarm, or the first call that notices it → left;
//                                                   a late vote that comes before that → held
//   left  no      lasts or over no                  hand_to() by a hand-over → held; the last reference → destroyed
//
//   [1] Not after the last unlock: the watchdog forgets the claim before the release or the hand-over is sent.
//
//   flag               new   held  over  left    moved by
//   suspended_         no    yes   old   old     doubt() and trust(), by the count of shares that are neither doubted
//                                                nor denied
//   in_doubt           no    yes   yes   old     set by hold::doubt() and by a pushed change; cleared by a renewal that
//                                                was sent afterwards. A claim in doubt is never handed on
//   open               any   any   any   any     set by the grant that makes the claim, never changed
//   counted.leases     1     any   any   any     each answer about the count; 0 when the count is unknown
//   counted.under_way  no    yes   yes   yes     set and cleared by set_hold_count(); the answer keeps the claim alive
//   counted.asked_again  no  yes   yes   yes     set by set_hold_count() while one is under way, cleared by its answer
//   counted.ever_sent  no    yes   yes   yes     set with the first count, never cleared
//
// The flags of one share. Its renewal_stage has a table of its own in renewals.hpp.
//
//   flag          new  held  left   moved by
//   doubted_      no   yes   old    doubt() and trust(), which the watchdog calls
//   denied_       yes  yes   old    set by begin_without() and deny(), cleared by confirm(). The denial of a sole share
//                                   ends its hold in the same call
//   valid_until_  none any   old    raised by confirm(), cleared by deny() where there are several shares

key_ttl share::ttl_to_send(milliseconds wanted, time_point now, double rho) noexcept {
  // PEXPIRE may shorten a TTL. A key that ends before its claim would let another client in.
  const auto ttl = std::max(wanted, left_until(valid_until_, now, rho));
  // The command may run and its answer be lost, so the TTL is noted when it is sent.
  may_live_until_ = std::max(may_live_until_, now + ttl);
  return {ttl, may_live(now, rho)};
}

milliseconds share::may_live(time_point now, double rho) const noexcept {
  // may_live_until_ is an upper bound by our own clock already. Drift is not added a second time.
  return std::max(left_until(valid_until_, now, rho), left_until(may_live_until_, now, 0));
}

void share::settle() const noexcept { prefetch(of); }

void intrusive_ptr_add_ref(const share* share) noexcept { intrusive_ptr_add_ref(&share->of); }
void intrusive_ptr_release(const share* share) noexcept { intrusive_ptr_release(&share->of); }

claim::claim(client_state_ptr of, shared_keys lock, const owner_field& owner_field, std::size_t shares,
             std::size_t needed)
    : share_count_(static_cast<std::uint8_t>(shares)), needed_(static_cast<std::uint8_t>(needed)),
      keys(std::move(lock)), field(owner_field), validity_(std::move(of)) {}

claim_ptr claim::make(client_state_ptr of, shared_keys keys, const owner_field& field, std::span<const node_id> nodes,
                      std::size_t needed) {
  // Claim and shares share one block: a client may hold a million locks, and an allocation each would show.
  static_assert(alignof(share) <= alignof(claim));
  HOLDFAST_ASSERT(needed > 0 && needed <= nodes.size());
  void* const block = of->blocks->take(size_with(nodes.size()));
  auto* const made = new (block) claim(std::move(of), std::move(keys), field, nodes.size(), needed);
  auto* place = reinterpret_cast<std::byte*>(made + 1);
  for (const auto node : nodes) place = reinterpret_cast<std::byte*>(new (place) share(*made, node) + 1);
  return claim_ptr(made);
}

void claim::operator delete(claim* ended, std::destroying_delete_t) noexcept {
  auto& pool = *ended->client().blocks;  // its block keeps it alive
  // The size is read before the destructor runs: the pool needs it afterwards.
  const auto size = size_with(ended->share_count_);
  for (auto& each : ended->shares()) each.~share();
  ended->~claim();
  pool.give_back(ended, size);
}

share& claim::sole_share() noexcept {
  HOLDFAST_ASSERT(shares().size() == 1);
  return shares().front();
}

bool claim::confirm(share& share, time_point until) noexcept {
  HOLDFAST_ASSERT(&share.of == this);
  // The share is raised even when the claim is over: the key lives that long, and its release must know it.
  share.valid_until_ = std::max(share.valid_until_, until);
  share.denied_ = false;
  return validity_.extend(end_of_needed());
}

bool claim::confirm(primary_set at, time_point until) noexcept {
  bool valid = true;
  for (std::size_t n = 0; n < shares().size(); ++n)
    if ((at & only(n)) != 0) valid = confirm(shares()[n], until);
  return valid;
}

bool claim::deny(share& part) noexcept {
  HOLDFAST_ASSERT(&part.of == this);
  part.denied_ = true;
  // A sole share keeps its validity: cause_of() needs to know whether the denial came before its end.
  if (shares().size() == 1) return false;
  part.valid_until_ = {};
  // Fewer confirmed shares than a majority can never be exclusive again by what was answered until now.
  if (!enough([](const share& each) { return each.confirmed(); })) return false;
  // The denied share may have been the needed-th largest, so the validity may end earlier now.
  validity_.limit(end_of_needed());
  return true;
}

void claim::begin_without(primary_set at) noexcept {
  for (std::size_t n = 0; n < shares().size(); ++n) shares()[n].denied_ = (at & only(n)) != 0;
}

// A primary that has not answered may have the field, so the release goes there too.
primary_set claim::may_be_at() const noexcept {
  primary_set at = 0;
  for (std::size_t n = 0; n < shares().size(); ++n)
    if (!shares()[n].denied_) at |= only(n);
  return at;
}

// A hand-over sends no command, so the next hold inherits only shares without a doubt.
primary_set claim::trusted_at() const noexcept {
  primary_set at = 0;
  for (std::size_t n = 0; n < shares().size(); ++n) {
    const auto& each = shares()[n];
    if (each.confirmed() && !each.doubted_ && !each.denied_) at |= only(n);
  }
  return at;
}

time_point claim::end_of_needed() const noexcept {
  // Nearly every claim has one share. It needs no list.
  if (shares().size() == 1) return shares().front().valid_until();
  boost::container::small_vector<time_point, 9> ends;
  for (const auto& each : shares()) ends.push_back(each.valid_until());
  // The claim is exclusive while a majority of the shares is valid: until the needed-th largest end.
  const auto nth = ends.begin() + static_cast<std::ptrdiff_t>(needed_ - 1);
  std::nth_element(ends.begin(), nth, ends.end(), std::greater<>());
  return *nth;
}

key_ttl claim::ttl_to_send(milliseconds wanted, time_point now, double rho) noexcept {
  key_ttl all{wanted};
  // One command text goes to all primaries, so its TTL must suit the share that needs the longest one.
  for (auto& each : shares()) {
    const auto ttl = each.ttl_to_send(wanted, now, rho);
    all = {std::max(all.ttl, ttl.ttl), std::max(all.if_none, ttl.if_none)};
  }
  return all;
}

bool claim::set_doubted(share& part, bool doubted) noexcept {
  HOLDFAST_ASSERT(&part.of == this);
  if (std::exchange(part.doubted_, doubted) == doubted) return false;
  // A denied share can confirm nothing, so it counts like a doubted one.
  const bool suspended = !enough([](const share& each) { return !each.doubted_ && !each.denied_; });
  return suspended_.exchange(suspended, std::memory_order_acq_rel) != suspended;
}

template <class Predicate>
bool claim::enough(Predicate matches) const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(shares(), matches)) >= needed_;
}

milliseconds claim::may_live(time_point now, double rho) const noexcept {
  milliseconds longest{};
  for (const auto& each : shares()) longest = std::max(longest, each.may_live(now, rho));
  return longest;
}

}  // namespace holdfast::detail
