// SPDX-License-Identifier: BSL-1.0
#include "cli/server/lock_facts.hpp"

#include <algorithm>

#include "config/numbers.hpp"
#include "protocol/note/note.hpp"
#include "protocol/owner_field.hpp"

namespace holdfast::cli {
namespace {

constexpr std::size_t longest_value = 256;  // of a simple lock, as force_unlock() has it

bool is_uuid(std::string_view text) noexcept {
  if (text.size() != detail::uuid::text_size) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool hex =
        detail::is_digit(text[i]) || (text[i] >= 'a' && text[i] <= 'f') || (text[i] >= 'A' && text[i] <= 'F');
    if (dash ? text[i] != '-' : !hex) return false;
  }
  return true;
}

/// The next part of `text` up to the separator, which is taken away as well.
std::string_view take(std::string_view& text, char separator) {
  const auto part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

}  // namespace

bool is_owner_field(std::string_view text) noexcept {
  if (text.size() < detail::uuid::text_size + 2 || text[detail::uuid::text_size] != ':') return false;
  return is_uuid(text.substr(0, detail::uuid::text_size)) &&
         detail::parse_number(text.substr(detail::uuid::text_size + 1)).has_value();
}

std::optional<lock_facts> lock_of_hash(const redis::reply& fields) {
  if (fields.elements.size() != 2 || fields.elements[1].elements.size() != 2) return std::nullopt;
  const auto& pair = fields.elements[1].elements;
  const auto count = detail::parse_number(pair[1].text);
  if (!is_owner_field(pair[0].text) || !count || *count < 1) return std::nullopt;
  lock_facts lock;
  lock.kind = "mutex";
  lock.holder = pair[0].text;
  lock.count = *count;
  return lock;
}

std::optional<lock_facts> lock_of_string(const redis::reply& text, long long ttl, bool of_any_program) {
  if (text.type != redis::reply::kind::string || text.text.size() > longest_value) return std::nullopt;
  if (!is_owner_field(text.text) && (!of_any_program || ttl < 0)) return std::nullopt;
  lock_facts lock;
  lock.kind = "simple_mutex";
  lock.holder = text.text;
  return lock;
}

void add_note(lock_facts& lock, const redis::reply& text) {
  if (text.type != redis::reply::kind::string) return;
  const auto note = detail::kept_note::parse(text.text);
  if (!note || note->field != lock.holder) return;
  lock.since = note->since.time_since_epoch().count();
  if (!note->words.empty()) lock.note = note->words;
}

void process_table::add(std::string_view client_list) {
  while (!client_list.empty()) {
    auto line = take(client_list, '\n');
    const auto at = line.find(" name=");
    if (at == line.npos) continue;
    line.remove_prefix(at + 6);
    auto name = take(line, ' ');
    const auto client = take(name, ':'), uuid = take(name, ':'), pid = take(name, '@');
    if (is_uuid(uuid) && detail::parse_number(pid) && !name.empty())
      entries_.push_back({std::string(uuid), {std::string(client), std::string(pid), std::string(name)}});
  }
  const auto by_uuid = [](const entry& left, const entry& right) { return left.uuid < right.uuid; };
  std::sort(entries_.begin(), entries_.end(), by_uuid);
}

std::optional<process_facts> process_table::find(std::string_view holder) const {
  const auto uuid = holder.substr(0, std::min(holder.size(), detail::uuid::text_size));
  const auto before = [](const entry& left, std::string_view right) { return left.uuid < right; };
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), uuid, before);
  if (found == entries_.end() || found->uuid != uuid) return std::nullopt;
  return found->process;
}

std::string literal_pattern(std::string_view bytes) {
  std::string pattern;
  for (const char byte : bytes) {
    if (std::string_view("*?[]^-\\").find(byte) != std::string_view::npos) pattern += '\\';
    pattern += byte;
  }
  return pattern;
}

}  // namespace holdfast::cli
