// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <string_view>

namespace holdfast::detail {

/// Pure: the slots of a Redis Cluster. Each key is in one of them, and each slot is at one primary.
using slot_number = std::uint16_t;
inline constexpr slot_number slot_count = 16384;

/// CRC-16/XMODEM of the bytes between the first '{' and the next '}', or of the whole key if there are none.
slot_number slot_of(std::string_view key) noexcept;

}  // namespace holdfast::detail
