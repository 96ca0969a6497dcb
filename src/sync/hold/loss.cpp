// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/loss.hpp"

#include "sync/release/releases.hpp"

namespace holdfast::detail {
namespace {

constexpr const char* with_others = "its key has other fields besides: another kind of lock, or data, has its name";

/// The text of a loss within the validity.
const char* text_of_denial(bool shared, bool forced) {
  // Other fields explain more than force_unlock(): a broken lock alone leaves no other field.
  if (shared) return with_others;
  return forced ? by_force().c_str() : not_ours;
}

}  // namespace

loss_cause cause_of_denial(bool shared, bool forced) noexcept {
  if (shared) return loss_cause::corrupt;
  return forced ? loss_cause::forced : loss_cause::denied;
}

loss_cause cause_of(const loss_facts& loss) noexcept {
  // The user has closed the client. That is no failure to count.
  if (loss.reason == errc::closed) return loss_cause::none;
  if (loss.reason == errc::corrupt_lock) return loss_cause::corrupt;
  if (!loss.expired && loss.half_done) return loss_cause::unconfirmed;
  if (!loss.expired) return cause_of_denial(loss.shared, loss.forced);
  return loss.renewal_paused ? loss_cause::not_renewed : loss_cause::unconfirmed;
}

const std::string& by_force() {
  // Built once: a release that finds the key gone passes it on by reference.
  static const std::string text =
      "Redis answered that its key is gone or another's, after force_unlock() by this client";
  return text;
}

std::string_view text_of_expiry(bool renewal_paused) noexcept {
  return renewal_paused ? "its TTL was over, and nobody wanted it to be renewed"
                        : "its validity was over, and Redis had not confirmed it again";
}

bool tells_trouble(const loss_facts& loss) noexcept {
  return loss.reason != errc::closed && loss.reason != errc::corrupt_lock && loss.expired && !loss.renewal_paused;
}

std::string text_of_loss(const loss_facts& loss, const std::optional<std::string>& trouble) {
  if (loss.reason == errc::closed) return "the client was closed";
  if (loss.reason == errc::corrupt_lock) return "found while it was held";
  if (!loss.expired && loss.half_done) return "Redis has not confirmed its downgrade, which may have run";
  if (!loss.expired) return text_of_denial(loss.shared, loss.forced);
  std::string text(text_of_expiry(loss.renewal_paused));
  // The reason of the server's silence helps an operator most.
  if (trouble) text.append(": ").append(*trouble);
  return text;
}

}  // namespace holdfast::detail
