// SPDX-License-Identifier: BSL-1.0
#include "sync/release/answered_releases.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace holdfast::detail {
namespace {

constexpr std::size_t first_size = 16;

}  // namespace

void answered_releases::note(entry&& release) noexcept {
  while (size_ > 0 && oldest().sent + kept_for < release.sent) drop_oldest();
  if (size_ == ring_.size() && (size_ == most || !grow())) {
    // Without memory the oldest release gives its place: the latest ones are the likeliest to be missing elsewhere.
    if (size_ == 0) return;
    drop_oldest();
  }
  append(std::move(release));
}

void answered_releases::drop_oldest() noexcept {
  // The keys of a name are shared, and should not live for the sake of an empty place.
  oldest().keys.reset();
  first_ = (first_ + 1) & (ring_.size() - 1);
  --size_;
}

void answered_releases::append(entry&& release) noexcept {
  ring_[(first_ + size_) & (ring_.size() - 1)] = std::move(release);
  ++size_;
}

bool answered_releases::grow() noexcept try {
  // A power of two, so that a place is found by a mask.
  std::vector<entry> larger(std::max(first_size, 2 * ring_.size()));
  for (std::size_t n = 0; n < size_; ++n) larger[n] = std::move(ring_[(first_ + n) & (ring_.size() - 1)]);
  ring_.swap(larger);
  first_ = 0;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace holdfast::detail
