// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

#include "sync/renewal/renewal_host.hpp"

namespace holdfast::detail {

/// Passes the questions and notifications of the watchdog to the holder of the claim. One object serves all holds.
class claim_holders final : public renewal_host {
 public:
  time_point renewed_until(const claim& held) const noexcept override;
  bool pause_if_unwanted(claim& held, time_point now) override;
  void suspended(claim& held, const error_code& cause) override;
  void restored(claim& held) override;
  void renewal_failed(claim& held, const error_code& cause, const std::string& detail) override;
  void denied(claim& held, renewal_answer cause) override;
  void expired(claim& held) override;
};

}  // namespace holdfast::detail
