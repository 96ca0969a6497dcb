// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/claim_holders.hpp"

#include "base/assert.hpp"
#include "sync/hold/hold.hpp"

namespace holdfast::detail {
namespace {

hold& holder_of(const claim& held) {
  // A hold makes the watchdog forget its claim before it ends. A claim that is guarded always has a holder.
  HOLDFAST_ASSERT(held.holder());
  return *held.holder();
}

}  // namespace

time_point claim_holders::renewed_until(const claim& held) const noexcept { return holder_of(held).renewed_until(); }

bool claim_holders::pause_if_unwanted(claim& held, time_point now) {
  auto& holder = holder_of(held);
  // Another thread may feed a lease meanwhile, so the hold asks twice.
  return holder.pause_renewal_unless([&] { return holder.wants_renewal(now); });
}

void claim_holders::suspended(claim& held, const error_code& cause) {
  holder_of(held).report(event_kind::suspended, cause);
}

void claim_holders::restored(claim& held) { holder_of(held).report(event_kind::restored); }

void claim_holders::renewal_failed(claim& held, const error_code& cause, const std::string& detail) {
  holder_of(held).report(event_kind::renewal_failed, cause, detail);
}

void claim_holders::denied(claim& held, renewal_answer cause) {
  auto& holder = holder_of(held);
  // The cause first: lose() explains the loss by it.
  holder.denied(cause);
  holder.lose(errc::lost);
}

void claim_holders::expired(claim& held) { holder_of(held).lose(errc::lost); }

}  // namespace holdfast::detail
