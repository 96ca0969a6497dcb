// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <span>
#include <string>

#include "protocol/kind.hpp"

namespace holdfast::detail {

/// Redisson's RFairLock: the hash of an RLock, and one queue of all that wait. See docs/internals/fair_lock.md.
HOLDFAST_EXPORT extern const kind fair_lock;

/// The steps that only a fair mutex has.
namespace fair_steps {

call acquire(const lock_keys&, milliseconds ttl, const owner_field&, const std::string& suspect);
/// At least one place.
call stand(const lock_keys&, std::span<const owner_field> places);
call leave(const lock_keys&, const owner_field&);
call release(const lock_keys&, const owner_field&, const renewal& next);
call waiters(const lock_keys&);
/// The channel on which a place hears that its turn has come.
std::string channel_of_place(const lock_keys&, const owner_field& place);

}  // namespace fair_steps
}  // namespace holdfast::detail
