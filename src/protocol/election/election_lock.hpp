// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/kind.hpp"

namespace holdfast::detail {

/// The lock of an election: Redisson's RFencedLock, with two more fields in its hash. Its names are election_keys.
HOLDFAST_EXPORT extern const kind election_lock;

inline constexpr std::size_t longest_value = 64 * 1024;

/// The names of an election, and the value of one candidate. The value rides in each campaign.
struct HOLDFAST_EXPORT election_keys : lock_keys {
  explicit election_keys(std::string_view name, const naming& by = {}) : lock_keys(election_lock, name, by) {}
  /// The same election, with another value.
  election_keys(const lock_keys& of, std::string value);

  const std::string value{};
};

/// The steps that only an election has.
namespace election_steps {

/// The value of the keys becomes the leader's. Empty: the owner does not lead.
HOLDFAST_EXPORT call proclaim(const election_keys&, const owner_field&);
HOLDFAST_EXPORT answer<release_answer> read_proclaim(const redis::outcome&);
/// Empty: nobody leads.
HOLDFAST_EXPORT call observe(const lock_keys&);
HOLDFAST_EXPORT answer<std::optional<leader_answer>> read_leader(const redis::outcome&);
/// The channel of all changes.
HOLDFAST_EXPORT std::string observers_channel(const lock_keys&);

}  // namespace election_steps
}  // namespace holdfast::detail
