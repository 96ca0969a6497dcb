// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <string_view>

#include <holdfast/export.hpp>

#include "protocol/keys.hpp"

/// The names that are derived from a lock's key by the layout of its kind: its channel, the key of its fencing
/// tokens, and the key of its note.
namespace holdfast::detail {

// Redisson's scheme: stem:{N}, or stem:N if N has an opening brace. So all names are in the slot of N.
/// stem:{N}
HOLDFAST_EXPORT key_parts beside(std::string_view stem, std::string_view lock);
/// {N}:suffix, or N:suffix if N has an opening brace
HOLDFAST_EXPORT key_parts below(std::string_view lock, std::string_view suffix);
/// The text of a key, in one piece.
HOLDFAST_EXPORT std::string joined(const key_parts& all);
key_parts channel_parts(const lock_keys&);
key_parts token_parts(const lock_keys&);
key_parts note_parts(const lock_keys&);
/// Made for each use and never kept, because there may be a million names.
HOLDFAST_EXPORT std::string channel_of(const lock_keys&);
std::string token_key(const lock_keys&);
std::string note_key(const lock_keys&);

}  // namespace holdfast::detail
