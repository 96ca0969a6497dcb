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

/// Pure: the latest releases that a server has answered.
///
/// Decision: an answered release is repeated at another server. In a planned failover the old primary answers for about
/// one second after the promotion. No answer proves that a server is the primary at that instant. An old primary still
/// says `master`, and the sentinels learn of a promotion later. Replication is asynchronous, and a server that restarts
/// has only the data of its disk. So the next server may lack a release, and keeps the lock until its TTL is over.
///
/// The client therefore keeps each answered release with the run of the server that answered. When a link comes up or
/// keys move, it repeats the releases that another run has answered. An owner field is never used again, so a
/// repetition is safe however late it comes. There are two alternatives. A log of names, with a script that frees all
/// unknown fields of this client, must know each field in flight. A proof of the primary's role costs a command per
/// release.
///
/// A release is kept until one is answered ten seconds after it, or until 4096 later ones. Sentinel announces a planned
/// failover after about 1.3 s. It announces the failover of a primary that only its clients still reach 2 s after
/// down-after-milliseconds. A server that was killed has answered nothing since. So the time between releases counts,
/// not the length of the failover.
class answered_releases {
 public:
  using duration = lease_clock::duration;

  struct entry {
    shared_keys keys;
    owner_field field;
    std::uint64_t server = 0;  // outcome::server of the answer; 0: unknown
    time_point sent{};
    time_point gone_by{};                  // the key has expired at every server by then
    std::size_t primary = 0;               // its number, if there are several primaries
    std::optional<std::uint32_t> group{};  // topology::group_of() of its key, computed at the first question
  };

  static constexpr std::size_t most = 4096;
  static constexpr duration kept_for = std::chrono::seconds(10);

  /// Without memory the oldest release is dropped, or else this one.
  void note(entry&& release) noexcept;
  std::size_t size() const noexcept { return size_; }

  /// Takes out the entries for which `matches(entry&)` is true, oldest first, and passes each to `use`. Keeps the
  /// others. `use` must not call note().
  template <class Predicate, class Use>
  void take(Predicate matches, Use use) {
    std::size_t n = 0;
    while (n < size_ && !matches(ring_[(first_ + n) & (ring_.size() - 1)])) ++n;
    if (n == size_) return;  // the usual case: no entry moves within the ring
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
