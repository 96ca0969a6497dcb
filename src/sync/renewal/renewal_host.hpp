// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

#include <holdfast/error.hpp>

#include "base/lease_clock.hpp"
#include "protocol/replies.hpp"
#include "sync/claim/claim.hpp"

namespace holdfast::detail {

/// The holders of all guarded claims, for the watchdog. It asks them for the end of renewal, and notifies them.
///
/// One object stands for all holders, so that a hold pays no word for it. A claim that is renewed until its unlock
/// (claim::wishes) needs no question. For every other claim the holder is asked. A copy in the claim would be stale:
/// any thread moves the end of renewal when it feeds or releases a lease.
class renewal_host {
 public:
  /// The end of renewal by the wish of the holder. Any thread may move it.
  virtual time_point renewed_until(const claim& held) const noexcept = 0;
  /// Pauses renewal if its end has come. True: it is paused now, until a lease is fed.
  virtual bool pause_if_unwanted(claim& held, time_point now) = 0;
  /// Too few servers can confirm the claim at present.
  virtual void suspended(claim& held, const error_code& cause) = 0;
  /// Enough servers can confirm the claim again.
  virtual void restored(claim& held) = 0;
  /// A renewal was not confirmed. Another one follows while the claim is valid.
  virtual void renewal_failed(claim& held, const error_code& cause, const std::string& detail) = 0;
  /// Redis has denied the claim. Called once; the watchdog has forgotten the claim by then.
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
