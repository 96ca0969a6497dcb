// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>

/// The limit of a host's name, for a configuration and for the addresses that servers report.
namespace holdfast::detail {

/// A host of more bytes is none (RFC 1035).
inline constexpr std::size_t longest_host = 253;

}  // namespace holdfast::detail
