// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "protocol/call.hpp"

/// Reads the vote of one of several independent primaries: its reply to a command about a lock is a yes, a no, or
/// neither.
namespace holdfast::detail::vote_of {
vote acquire(const redis::reply& reply);
vote flag(const redis::reply& reply);           // 1 or 0
vote sole_renewal(const redis::reply& reply);   // one flag
vote release(const redis::reply& reply);        // yes: the lock was this owner's
vote force_release(const redis::reply& reply);  // yes: the command was done
vote ttl(const redis::reply& reply);            // yes: the key exists
vote something(const redis::reply& reply);      // no: nil

/// The primaries that name a holder may name different ones. True: the missing answers cannot change the result, which
/// is the owner that a majority names, or that there is none. Also true without memory to compare.
bool settles_holder(const redis::votes& of) noexcept;

}  // namespace holdfast::detail::vote_of
