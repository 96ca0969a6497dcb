// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/lease_clock.hpp"
#include "protocol/keys.hpp"
#include "protocol/owner_field.hpp"

namespace holdfast::detail {

/// Pure: the latest releases that a server has answered. A server that takes the place of that one may not have them:
/// replication is asynchronous, a primary that was replaced goes on answering until its clients are told, and a server
/// that starts anew has only what is on its disk. Such a server keeps a lock that nobody holds until its TTL is over.
///
/// A release is kept until one that was answered ten seconds later comes, or 4096 have come. A planned failover by
/// Sentinel is announced after 1.2 to 1.4 s. A failover of a primary that only its clients still reach is announced
/// after down-after-milliseconds and 2 s. A server that was killed or stopped has answered nothing since: the age of a
/// release before the last one counts, not the length of the failover.
class answered_releases {
 public:
  using duration = lease_clock::duration;

  struct entry {
    shared_keys keys;
    owner_field field;
    std::uint64_t server = 0;  // outcome::server of the answer; 0: unknown
    time_point sent{};
    time_point gone_by{};                  // by then the key has expired at every server
    std::size_t primary = 0;               // of several
    std::optional<std::uint32_t> group{};  // topology::group_of() of its key, once somebody has asked
  };

  static constexpr std::size_t most = 4096;
  static constexpr duration kept_for = std::chrono::seconds(10);

  /// Without memory the oldest one is dropped, or this one.
  void note(entry&& release) noexcept;
  std::size_t size() const noexcept { return size_; }

  /// Hands over those for which `which(entry&)` is true, oldest first, and keeps the others. `use` notes nothing.
  template <class Which, class Use>
  void take(Which matches, Use use) {
    std::size_t n = 0;
    while (n < size_ && !matches(ring_[(first_ + n) & (ring_.size() - 1)])) ++n;
    if (n == size_) return;  // most often: none is moved within the ring
    for (auto left = size_; left > 0; --left) {
      auto release = std::move(oldest());
      drop_oldest();
      if (matches(release))
        use(std::move(release));
      else
        append(std::move(release));
    }
  }

 private:
  entry& oldest() noexcept { return ring_[first_]; }
  void drop_oldest() noexcept;
  void append(entry&& release) noexcept;
  bool grow() noexcept;

  std::vector<entry> ring_;  // its size is a power of two
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace holdfast::detail
