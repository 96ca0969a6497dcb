// SPDX-License-Identifier: BSL-1.0
#include "protocol/note/note.hpp"

#include <algorithm>
#include <charconv>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "protocol/vote_of.hpp"

namespace holdfast::detail {
namespace {

using recipe = call::recipe;
using writer = call::writer;
using made_of = call::operands;

/// Longer than any note that this library writes.
constexpr std::int64_t last_byte_read = 511;
/// Until the year 5138. An instant beyond would overflow the calendars of readers.
constexpr std::size_t most_digits = 14;

std::string_view take_word(std::string_view& text) noexcept {
  const auto word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

void add_text(std::vector<std::string>& texts, const redis::outcome& outcome) {
  if (!outcome.error && outcome.reply.type == redis::reply::kind::string) texts.push_back(outcome.reply.text);
}

}  // namespace

std::string text_of_note(milliseconds age, const owner_field& field, std::string_view words) {
  auto text = std::to_string(age.count()) + ' ';
  text.append(field.to_text()).append(" ").append(words);
  return text;
}

call write_note(const lock_keys& keys, milliseconds ttl, const std::string& text) {
  static constexpr recipe form{lua::write_note.evalsha, lua::write_note.body,
                               [](writer& to, const made_of& operands) {
                                 to.begin(1, 2);
                                 to.add(note_parts(*operands.at));
                                 to.add(operands.ttl.ttl);
                                 to.add(std::string_view(*operands.word));
                               },
                               vote_of::flag, call::effect::writes};
  return {form, {.at = &keys, .ttl = {ttl}, .word = &text}};
}

call read_note(const lock_keys& keys) {
  static constexpr recipe form{{},
                               "GETRANGE",
                               [](writer& to, const made_of& operands) {
                                 to.begin(1, 2);
                                 to.add(note_parts(*operands.at));
                                 to.add(std::int64_t{0});
                                 to.add(last_byte_read);
                               },
                               vote_of::something,
                               call::effect::asks};
  return {form, {.at = &keys}};
}

std::optional<kept_note> kept_note::parse(std::string_view text) noexcept {
  const auto digits = take_word(text), field = take_word(text);
  milliseconds::rep since = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), since);
  const bool number = failed == std::errc() && end == digits.data() + digits.size() && digits.size() <= most_digits;
  if (!number || since < 0 || field.empty()) return std::nullopt;
  return kept_note{std::chrono::sys_time<milliseconds>(milliseconds(since)), field, text.substr(0, longest_note)};
}

std::vector<std::string> texts_in(const redis::outcome& outcome) {
  std::vector<std::string> texts;
  if (!outcome.of_each) {
    add_text(texts, outcome);
  } else {
    for (const auto& each : outcome.of_each->outcomes)
      if (each) add_text(texts, *each);
  }
  return texts;
}

// Each primary has the same note, so one that has it is enough.
std::optional<kept_note> note_of(std::string_view field, std::span<const std::string> texts) noexcept {
  for (const auto& text : texts)
    if (const auto note = kept_note::parse(text); note && note->field == field) return note;
  return std::nullopt;
}

}  // namespace holdfast::detail
