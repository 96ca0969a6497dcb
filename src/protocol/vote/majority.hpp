// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "protocol/kind.hpp"

/// Combines the votes of several independent primaries about a lock.
namespace holdfast::detail {

/// The answers of a majority. renew and release also go to one primary alone; their readers accept both.
namespace by_majority {

answer<acquire_answer> acquire(const redis::outcome& outcome);
answer<bool> set_hold_count(const redis::outcome& outcome);
answer<std::vector<renewal_answer>> renew(const redis::outcome& outcome, std::size_t sent);
answer<release_answer> release(const redis::outcome& outcome);
answer<unsigned> force_release(const redis::outcome& outcome);
answer<bool> exists(const redis::outcome& outcome);
answer<std::optional<milliseconds>> ttl(const redis::outcome& outcome);
answer<std::optional<holder_answer>> holder(const redis::outcome& outcome);
answer<unsigned> hash_count(const redis::outcome& outcome, const owner_field& field);
answer<unsigned> simple_count(const redis::outcome& outcome, const owner_field& field);

}  // namespace by_majority

/// The red_lock of a kind: its lock is held at a majority of several primaries. It has no fencing tokens, because the
/// counters of the primaries have no common order.
constexpr kind voted(kind kind, decltype(kind::count.read) count) {
  kind.name = "red_lock";
  kind.voted = true;
  kind.tokens = 0;
  kind.pushed.waits = true;
  kind.acquire.read = by_majority::acquire;
  kind.first_acquire = {};
  kind.acquire_any = {};
  kind.acquire_all = {};
  if (kind.set_hold_count.make) kind.set_hold_count.read = by_majority::set_hold_count;
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
