// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <string>

namespace holdfast::bench {

/// Redlock 5 itself, in node (redlock/hold.js).
namespace redlock_node {

using milliseconds = std::chrono::milliseconds;

/// Fetches it with npm. Why it cannot be had here; empty if it is there.
std::string missing();

/// The seconds of CPU that a process needs to renew so many locks every third of their TTL, from `before` after it has
/// them all and for so long. Throws not_finished, also if it lost one.
double renewals(const std::string& socket, long count, milliseconds ttl, milliseconds before, milliseconds measured);

}  // namespace redlock_node

}  // namespace holdfast::bench
