// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/export.hpp>

#include "protocol/call.hpp"
#include "protocol/keys.hpp"
#include "protocol/owner_field.hpp"
#include "redis/outcome.hpp"

/// The note beside a lock: `<since> <owner field> <words>` at `holdfast_note:{N}`. It has the time of the grant and the
/// purpose. A release leaves it: the note counts only while the field has the lock, and ends with its TTL.
/// The operands of a call must live until its answer.
namespace holdfast::detail {

inline constexpr std::size_t longest_note = 200;  // bytes of the words

/// The text that write_note() sends for a hold of this age.
std::string text_of_note(milliseconds age, const owner_field& field, std::string_view words);
/// Writes the note in place of an older one. Only a primary answers.
call write_note(const lock_keys& keys, milliseconds ttl, const std::string& text);
/// Reads the note: a bounded number of bytes, since any program may write the key.
call read_note(const lock_keys& keys);

/// A note in Redis.
struct kept_note {
  std::chrono::sys_time<milliseconds> since;
  std::string_view field, words;

  /// Empty: the text is no note. It refers to `text`.
  HOLDFAST_EXPORT static std::optional<kept_note> parse(std::string_view text) noexcept;
};
/// The texts in the answer to read_note(): of one server, or of each primary that has answered. They may be no notes.
std::vector<std::string> texts_in(const redis::outcome& outcome);
/// The note of this field among the texts. Empty: there is none.
std::optional<kept_note> note_of(std::string_view field, std::span<const std::string> texts) noexcept;

}  // namespace holdfast::detail
