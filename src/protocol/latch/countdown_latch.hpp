// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <string_view>

#include "protocol/kind.hpp"

namespace holdfast::detail {

/// Redisson's RCountDownLatch. Nobody holds it: of the steps of a lock it has only `release`, which counts down. The
/// keys of that call are latch_call_keys.
HOLDFAST_EXPORT extern const kind countdown_latch;

/// The names of a latch. In a cluster it may have no brace, because its channel has braces around any name.
HOLDFAST_EXPORT shared_keys latch_keys(std::string_view name, naming by = {});

/// The names of a latch, with the operands of one call that changes it.
struct HOLDFAST_EXPORT latch_call_keys : lock_keys {
  latch_call_keys(const lock_keys& latch, std::uint32_t count, milliseconds mark_ttl, const owner_field& field);

  const std::uint32_t count;
  const milliseconds mark_ttl;
  const owner_field field;  // of the mark
};

/// The steps that only a latch has.
namespace latch_steps {

/// Sets the count. False: it was set before, by another call.
HOLDFAST_EXPORT call try_set(const latch_call_keys&);
HOLDFAST_EXPORT answer<bool> read_set(const redis::outcome&);
/// The count. 0: the latch is open.
HOLDFAST_EXPORT call count(const lock_keys&);
HOLDFAST_EXPORT answer<std::uint32_t> read_count(const redis::outcome&);

}  // namespace latch_steps
}  // namespace holdfast::detail
