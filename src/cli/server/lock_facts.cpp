// SPDX-License-Identifier: BSL-1.0
#include "cli/server/lock_facts.hpp"

#include <algorithm>
#include <charconv>

#include "config/numbers.hpp"
#include "protocol/note/note.hpp"
#include "protocol/owner_field.hpp"

namespace holdfast::cli {
namespace {

constexpr std::size_t longest_value = 256;  // of a simple lock, as force_unlock() has it
constexpr std::size_t half_of_uuid = 18;    // "535b0cc8-ab8d-8f7a"
constexpr long long largest_counter = 1LL << 53;
constexpr double never = 100.0 * 366 * 24 * 3600 * 1000;  // milliseconds

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
  if (fields.elements.size() != 2 || fields.elements[0].text != "0") return std::nullopt;
  if (fields.elements[1].elements.size() != 2) return std::nullopt;
  const auto& pair = fields.elements[1].elements;
  const auto count = detail::parse_number(pair[1].text);
  if (!is_owner_field(pair[0].text) || !count || *count < 1) return std::nullopt;
  lock_facts lock;
  lock.kind = "mutex";
  lock.holds.push_back({pair[0].text});
  lock.count = *count;
  return lock;
}

void add_queue(lock_facts& lock, const redis::reply& places) {
  if (places.type != redis::reply::kind::integer || places.integer == 0) return;
  lock.kind = "fair_mutex";
  lock.is_fair = true;
  lock.waiters = places.integer;
}

std::string_view without_place(std::string_view key) noexcept {
  const auto number = key.rfind(':');
  const auto place = number == key.npos || number == 0 ? key.npos : key.rfind(':', number - 1);
  return place != key.npos && is_owner_field(key.substr(place + 1)) ? key.substr(0, place) : key;
}

std::optional<lock_facts> shared_lock_of(const redis::reply& mode, const redis::reply& size,
                                         const redis::reply& fields) {
  constexpr std::string_view suffix = ":write";
  const bool writes = mode.text == "write";
  if ((!writes && mode.text != "read") || size.integer < 2 || fields.elements.size() != 2) return std::nullopt;
  lock_facts lock;
  lock.kind = "shared_mutex";
  lock.is_shared = true;
  lock.is_read = !writes;
  if (lock.is_read) lock.count = size.integer - 1;
  const auto& pairs = fields.elements[1].elements;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    std::string_view owner = pairs[i].text;
    const auto count = detail::parse_number(pairs[i + 1].text);
    const bool of_writer = owner.ends_with(suffix);
    if (of_writer) owner.remove_suffix(suffix.size());
    if (owner == "mode") continue;
    if (!is_owner_field(owner) || !count || *count < 1 || (of_writer && !writes)) return std::nullopt;
    if (of_writer != writes) continue;  // a writer of Redisson that reads as well
    if (writes) lock.count = *count;
    const auto is_same = [&](const hold_facts& hold) { return hold.holder == owner; };
    if (std::ranges::any_of(lock.holds, is_same)) continue;  // HSCAN may repeat a field
    if (lock.holds.size() < most_holds) lock.holds.push_back({std::string(owner)});
  }
  if (lock.holds.empty()) return std::nullopt;
  return lock;
}

std::optional<lock_facts> election_of(const redis::reply& size, const redis::reply& fields) {
  if (size.integer != 3 || fields.elements.size() != 2) return std::nullopt;
  lock_facts lock;
  lock.kind = "election";
  const auto& pairs = fields.elements[1].elements;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const auto& field = pairs[i].text;
    const auto number = detail::parse_number(pairs[i + 1].text);
    if (field == "leader")
      lock.leader = pairs[i + 1].text;
    else if (field == "term" && number)
      lock.token = static_cast<std::uint64_t>(*number);
    else if (is_owner_field(field) && number)
      lock.holds.assign(1, {field});
  }
  if (!lock.leader || !lock.token || lock.holds.empty()) return std::nullopt;
  return lock;
}

std::optional<lock_facts> lock_of_string(const redis::reply& text, long long ttl, bool of_any_program) {
  if (text.type != redis::reply::kind::string || text.text.size() > longest_value) return std::nullopt;
  if (!is_owner_field(text.text) && (!of_any_program || ttl < 0)) return std::nullopt;
  lock_facts lock;
  lock.kind = "simple_mutex";
  lock.holds.push_back({text.text});
  return lock;
}

std::optional<long long> counter_of_string(const redis::reply& text) {
  if (text.type != redis::reply::kind::string) return std::nullopt;
  const std::string_view bytes = text.text;
  const bool negative = bytes.starts_with('-');
  const auto number = detail::parse_number(bytes.substr(negative ? 1 : 0));
  if (!number || *number > largest_counter) return std::nullopt;
  return negative ? -*number : *number;
}

std::optional<lock_facts> semaphore_of(std::optional<long long> counter, const redis::reply& all,
                                       const redis::reply& out, const redis::reply& first, long long now) {
  const auto is_number = [](const redis::reply& reply) { return reply.type == redis::reply::kind::integer; };
  if (!is_number(all) || !is_number(out) || out.integer == 0) return std::nullopt;
  lock_facts semaphore;
  semaphore.kind = "expirable_semaphore";
  semaphore.count = out.integer;
  semaphore.permits = permit_facts{out.integer};
  if (counter) semaphore.permits->left = *counter + all.integer - out.integer;
  for (std::size_t i = 0; i + 1 < first.elements.size(); i += 2) {
    double end = 0;  // a score; Redisson's permit without a lease time has one of 15 digits or more
    const auto& score = first.elements[i + 1].text;
    std::from_chars(score.data(), score.data() + score.size(), end);
    const auto left = std::min(end - static_cast<double>(now), 2 * never);
    semaphore.holds.push_back(
        {permit_holder(first.elements[i].text), left < never ? static_cast<long long>(left) : -1});
  }
  if (semaphore.holds.empty()) return std::nullopt;
  return semaphore;
}

std::string permit_holder(std::string_view id) {
  id = id.substr(0, longest_value);
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : id) {
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  // Our uuids have version 8, and our numbers have less than 57 bits. Of 4,096 random ids one looks like ours.
  if (id.size() != 16 || hex[12] != '8' || id[8] != 0) return hex;
  std::uint64_t number = 0;
  for (const unsigned char byte : id.substr(8)) number = number << 8 | byte;
  return hex.substr(0, 8) + '-' + hex.substr(8, 4) + '-' + hex.substr(12, 4) + ':' + std::to_string(number);
}

void add_note(lock_facts& lock, const redis::reply& text) {
  if (text.type != redis::reply::kind::string) return;
  const auto note = detail::kept_note::parse(text.text);
  if (!note || note->field != lock.first().holder) return;
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
  const auto uuid = holder.substr(0, holder.find(':'));
  if (uuid.size() != detail::uuid::text_size && uuid.size() != half_of_uuid) return std::nullopt;
  const auto before = [](const entry& left, std::string_view right) { return left.uuid < right; };
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), uuid, before);
  if (found == entries_.end() || !found->uuid.starts_with(uuid)) return std::nullopt;
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
