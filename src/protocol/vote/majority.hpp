// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "protocol/kind.hpp"

/// What the votes of several independent primaries say together about a lock.
namespace holdfast::detail {

/// What a majority says. renew and release are also answered by one primary alone, and read so.
namespace by_majority {

answer<acquire_answer> acquire(const redis::outcome& o);
answer<bool> set_hold_count(const redis::outcome& o);
answer<std::vector<renewal_answer>> renew(const redis::outcome& o, std::size_t sent);
answer<release_answer> release(const redis::outcome& o);
answer<bool> force_release(const redis::outcome& o);
answer<bool> exists(const redis::outcome& o);
answer<std::optional<milliseconds>> ttl(const redis::outcome& o);
answer<std::optional<holder_answer>> holder(const redis::outcome& o);
answer<unsigned> hash_count(const redis::outcome& o, const owner_field& field);
answer<unsigned> simple_count(const redis::outcome& o, const owner_field& field);

}  // namespace by_majority

/// The kind whose lock is one of `k` at a majority of several primaries. It has no fencing token, because what each of
/// them counts has no order.
constexpr kind voted(kind k, decltype(kind::count.read) count) {
  k.name = "red_lock";
  k.voted = true;
  k.tokens = 0;
  k.acquire.read = by_majority::acquire;
  k.first_acquire = {};
  k.acquire_any = {};
  k.acquire_all = {};
  if (k.reentrant) k.set_hold_count.read = by_majority::set_hold_count;
  k.renew.read = by_majority::renew;
  k.release.read = by_majority::release;
  k.force_release.read = by_majority::force_release;
  k.exists.read = by_majority::exists;
  k.ttl.read = by_majority::ttl;
  k.holder.read = by_majority::holder;
  k.count.read = count;
  k.last_token = {};
  return k;
}

}  // namespace holdfast::detail
