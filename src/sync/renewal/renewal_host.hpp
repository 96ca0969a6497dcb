// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

#include <holdfast/error.hpp>

#include "base/lease_clock.hpp"
#include "protocol/replies.hpp"
#include "sync/claim/claim.hpp"

namespace holdfast::detail {

/// The holders of all guarded claims, as renewal sees them: it asks them for the end of renewal, and notifies them.
///
/// One object stands for all of them, so that a hold pays no word for it. A claim that is renewed for good
/// (claim::wishes) needs no question. The end of renewal of the others is asked for here, and not kept in the claim:
/// any thread moves it when it feeds or releases a lease, and a copy would be stale.
class renewal_host {
 public:
  /// When the holder wants no renewal any more. Any thread may move it.
  virtual time_point renewed_until(const claim& held) const noexcept = 0;
  /// Renewal pauses if its end has come. True: it is paused now, until a lease is fed.
  virtual bool pause_if_unwanted(claim& held, time_point now) = 0;
  /// Too few servers confirm the claim at present.
  virtual void suspended(claim& held, const error_code& cause) = 0;
  /// Enough servers confirm it again.
  virtual void restored(claim& held) = 0;
  /// A renewal was not confirmed. Another one follows while the claim is valid.
  virtual void renewal_failed(claim& held, const error_code& cause, const std::string& detail) = 0;
  /// Redis has answered that the claim is not ours. Called once; the watchdog has forgotten the claim by then.
  virtual void denied(claim& held, renewal_answer cause) = 0;
  /// The validity is over. Called once; the watchdog has forgotten the claim by then.
  virtual void expired(claim& held) = 0;

  bool wants_renewal(const claim& held, time_point now) const noexcept {
    return held.wanted.for_good || now < renewed_until(held);
  }

 protected:
  ~renewal_host() = default;
};

}  // namespace holdfast::detail
