// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "protocol/call.hpp"

/// Operands that several scripts share, and commands of Redis that are the same for each kind of lock.
namespace holdfast::detail::operands {

using writer = call::writer;
using made_of = call::operands;

inline bool differ(const key_ttl& ttl) { return ttl.if_none > ttl.ttl; }

/// (lock)
void key(writer& to, const made_of& operands);
/// (lock[, marker]; ttl, owner[, vote])
void acquire(writer& to, const made_of& operands);
/// (lock...; ttl, owner)
void acquire_any(writer& to, const made_of& operands);
/// (lock...; ttl, owner...)
void acquire_all(writer& to, const made_of& operands);
/// (lock...; ttl..., owner...[, if_none...])
void renewals(writer& to, const made_of& operands);
/// The same with one hold.
void renewal_of_one(writer& to, const made_of& operands);
/// (lock; word, channel, owner)
void release(writer& to, const made_of& operands);
/// (lock; word, channel)
void force_release(writer& to, const made_of& operands);

/// (lock; ttl, owner, count[, if_none])
void set_hold_count(writer& to, const made_of& operands);

/// EXISTS: true if the key exists.
call exists(const lock_keys& keys);
/// EXISTS: how many of the keys exist.
call count_keys(std::span<const renewal> holds);
/// PTTL: the TTL of the key.
call ttl(const lock_keys& keys);
/// HGET: how often the owner holds the lock.
call count(const lock_keys& keys, const owner_field& field);

}  // namespace holdfast::detail::operands
