// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>
#include <holdfast/observer.hpp>

// A loss is explained by a cause, which programs count, and by a text, which people read. Both follow from the same few
// facts, so they are decided here and tested without a hold.
//
// If the validity is over, that is the cause, whatever Redis has answered. The validity may have ended long before the
// answer. Nothing that happened after its end took the lock from its holder.

namespace holdfast::detail {

/// The state of a hold at the moment of its loss.
struct loss_facts {
  errc reason;             // closed, corrupt_lock, or lost
  bool expired;            // its validity was over
  bool shared;             // its key has the fields of others as well
  bool forced;             // force_unlock() of this client has broken a hold of the name
  bool renewal_paused;     // its max_hold was over
  bool half_done = false;  // Redis has not confirmed a downgrade that may have run
};

/// The cause of a loss that Redis reported within the validity.
loss_cause cause_of_denial(bool shared, bool forced) noexcept;
loss_cause cause_of(const loss_facts& loss) noexcept;

/// The text of a release that finds the key gone after force_unlock() by this client.
const std::string& by_force();
/// The text of a validity that ended because nothing extended it.
std::string_view text_of_expiry(bool renewal_paused) noexcept;
/// Whether the text needs the trouble of the server. A silent server explains a loss only if a renewal was wanted.
bool tells_trouble(const loss_facts& loss) noexcept;
/// `trouble`: why the server does not answer. Empty: it answers, or tells_trouble() is false.
std::string text_of_loss(const loss_facts& loss, const std::optional<std::string>& trouble);

}  // namespace holdfast::detail
