// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "protocol/kind.hpp"

/// What the votes of several independent primaries say together about a lock.
namespace holdfast::detail {

/// What a majority says. renew and release are also answered by one primary alone, and read so.
namespace by_majority {

answer<acquire_answer> acquire(const redis::outcome& outcome);
answer<bool> set_hold_count(const redis::outcome& outcome);
answer<std::vector<renewal_answer>> renew(const redis::outcome& outcome, std::size_t sent);
answer<release_answer> release(const redis::outcome& outcome);
answer<bool> force_release(const redis::outcome& outcome);
answer<bool> exists(const redis::outcome& outcome);
answer<std::optional<milliseconds>> ttl(const redis::outcome& outcome);
answer<std::optional<holder_answer>> holder(const redis::outcome& outcome);
answer<unsigned> hash_count(const redis::outcome& outcome, const owner_field& field);
answer<unsigned> simple_count(const redis::outcome& outcome, const owner_field& field);

}  // namespace by_majority

/// The kind whose lock is one of `kind` at a majority of several primaries. It has no fencing token, because the
/// counters of the primaries have no common order.
constexpr kind voted(kind kind, decltype(kind::count.read) count) {
  kind.name = "red_lock";
  kind.voted = true;
  kind.tokens = 0;
  kind.acquire.read = by_majority::acquire;
  kind.first_acquire = {};
  kind.acquire_any = {};
  kind.acquire_all = {};
  if (kind.reentrant) kind.set_hold_count.read = by_majority::set_hold_count;
  kind.renew.read = by_majority::renew;
  kind.release.read = by_majority::release;
  kind.force_release.read = by_majority::force_release;
  kind.exists.read = by_majority::exists;
  kind.ttl.read = by_majority::ttl;
  kind.holder.read = by_majority::holder;
  kind.count.read = count;
  kind.last_token = {};
  return kind;
}

}  // namespace holdfast::detail
