// SPDX-License-Identifier: BSL-1.0
#include "protocol/keys.hpp"

#include <functional>

namespace holdfast::detail {
namespace {

name_fault fault_of(std::string_view name, std::string_view lock, const naming& by) noexcept {
  if (name.empty()) return name_fault::empty;
  if (name.size() > longest_name) return name_fault::too_long;
  if (!by.in_slots) return name_fault::none;
  if (by.bare && lock.find_first_of("{}") != lock.npos) return name_fault::has_a_brace;
  return fits_a_cluster(lock) ? name_fault::none : name_fault::splits_slots;
}

}  // namespace

std::string_view text_of(publish_word word) noexcept {
  switch (word) {
    case publish_word::publish: break;
    case publish_word::spublish: return "spublish";
    case publish_word::automatic: return "auto";
    case publish_word::both: return "both";
  }
  return "publish";
}

std::uint32_t hash_of(std::string_view name) noexcept {
  // Only this process compares the hash, so it may differ between builds.
  return static_cast<std::uint32_t>(std::hash<std::string_view>()(name));
}

lock_keys::lock_keys(const kind& kind, std::string_view text, const naming& by)
    : of(kind), name(text), lock(by.prefix.empty() ? name : *new std::string(by.prefix + name)), hash(hash_of(text)),
      word(by.word), fault(fault_of(name, lock, by)) {}

// A derived key puts the name into braces, and Redis hashes up to the first '}'. A '}' in the name would close them
// early.
bool fits_a_cluster(std::string_view lock) noexcept {
  const auto open = lock.find('{');
  if (open == lock.npos) return lock.find('}') == lock.npos;
  const auto close = lock.find('}', open + 1);
  return close != lock.npos && close > open + 1;
}

}  // namespace holdfast::detail
