// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "protocol/call.hpp"

/// How one of several independent primaries votes: its reply to a command about a lock is a yes, a no, or neither.
namespace holdfast::detail::ballots {
ballot acquire(const redis::reply& r);
ballot flag(const redis::reply& r);           // 1 or 0
ballot sole_renewal(const redis::reply& r);   // one flag
ballot release(const redis::reply& r);        // yes: it was this owner's
ballot force_release(const redis::reply& r);  // yes: it was done
ballot ttl(const redis::reply& r);            // yes: there is a key
ballot something(const redis::reply& r);      // no: nil

}  // namespace holdfast::detail::ballots
