// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>

namespace holdfast::bench {

/// How often this thread has asked the allocator for memory, by whichever of its functions.
std::uint64_t allocations() noexcept;

}  // namespace holdfast::bench
