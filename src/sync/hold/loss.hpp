// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>
#include <holdfast/observer.hpp>

// A loss is explained twice: by a cause, which programs count, and by a text, which people read. Both follow from the
// same facts, and nothing else, so they are decided here and tested without a hold.
//
// The end of the validity comes before anything that Redis has answered. It may have passed long before the answer
// came, and nothing that happened after it has taken the lock from its holder.

namespace holdfast::detail {

/// The state of a hold in the moment of its loss.
struct loss_facts {
  errc reason;          // closed, corrupt_lock, or lost
  bool expired;         // its validity was over
  bool shared;          // its key has other fields, too
  bool forced;          // force_unlock() of this client has broken a hold of the name
  bool renewal_paused;  // nobody wanted it to be renewed
};

/// The cause of a loss that Redis has told within the validity.
loss_cause cause_of_denial(bool shared, bool forced) noexcept;
loss_cause cause_of(const loss_facts& loss) noexcept;

/// The text of a release that finds the key gone after force_unlock() by this client.
const std::string& by_force();
/// Why a validity has ended that nobody has extended.
std::string_view text_of_expiry(bool renewal_paused) noexcept;
/// Whether the trouble of the server belongs to the text: only a renewal that was wanted can fail by it.
bool tells_trouble(const loss_facts& loss) noexcept;
/// `trouble`: why the server does not answer. Empty: it answers, or that is not told.
std::string text_of_loss(const loss_facts& loss, const std::optional<std::string>& trouble);

}  // namespace holdfast::detail
