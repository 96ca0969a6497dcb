// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <span>
#include <string_view>

namespace holdfast::bench {

/// The program as one that only makes pairs, so that tools can count what it does:
/// holdfast|quiet|metrics|bare COUNT WIDTH SOCKET. Prints how often it asked for memory. False: these are no such
/// arguments.
bool make_pairs(std::span<char* const> arguments);

}  // namespace holdfast::bench
