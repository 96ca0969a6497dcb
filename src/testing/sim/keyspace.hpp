// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::sim {

/// Milliseconds since 1970, as the node's wall clock shows them.
using wall_ms = std::int64_t;

/// A Redis hash as a small one is kept: in the order of insertion.
class hash_value {
 public:
  using field = std::pair<std::string, std::string>;

  const std::string* find(std::string_view name) const;
  /// True when the field is new.
  bool set(std::string_view name, std::string value);
  bool erase(std::string_view name);
  const std::vector<field>& fields() const noexcept { return fields_; }
  bool operator==(const hash_value&) const = default;

 private:
  std::vector<field> fields_;
};

/// A Redis sorted set. Members of equal scores are in the order of their bytes.
class sorted_set {
 public:
  using member = std::pair<double, std::string>;

  std::optional<double> score_of(std::string_view name) const;
  /// True when the member is new.
  bool set(std::string_view name, double score);
  bool erase(std::string_view name);
  /// From the lowest score to the highest.
  const std::set<member>& members() const noexcept { return members_; }
  bool operator==(const sorted_set&) const = default;

 private:
  std::set<member> members_;
  std::map<std::string, double, std::less<>> scores_;
};

using list_value = std::deque<std::string>;

/// The data of a Redis server: strings, hashes, sorted sets and lists, each perhaps with an end.
class keyspace {
 public:
  struct entry {
    std::variant<std::string, hash_value, sorted_set, list_value> value;
    std::optional<wall_ms> expires;
    const hash_value* hash() const noexcept { return std::get_if<hash_value>(&value); }
    const std::string* text() const noexcept { return std::get_if<std::string>(&value); }
    const sorted_set* sorted() const noexcept { return std::get_if<sorted_set>(&value); }
    const list_value* list() const noexcept { return std::get_if<list_value>(&value); }
    bool operator==(const entry&) const = default;
  };
  using entries = std::map<std::string, entry, std::less<>>;

  /// Time goes on for all that follows. A key is gone once `now` is behind its end, Redis' rule.
  void at(wall_ms now) noexcept { now_ = now; }
  wall_ms now() const noexcept { return now_; }

  entry* find(std::string_view key);
  const entry* find(std::string_view key) const;
  /// The hash, sorted set or list at `key`, made when there is nothing; null for a value of another type.
  template <class Value>
  Value* to_write(std::string_view key) {
    if (auto* found = find(key)) return std::get_if<Value>(&found->value);
    return &std::get<Value>(entries_.emplace(key, entry{Value(), {}}).first->second.value);
  }
  entry& put(std::string_view key, std::string value);
  void restore(std::string_view key, entry entry) { entries_.insert_or_assign(std::string(key), std::move(entry)); }
  bool erase(std::string_view key);
  void clear() noexcept { entries_.clear(); }
  void replace(entries all) { entries_ = std::move(all); }
  const entries& all() const noexcept { return entries_; }

 private:
  bool over(const entry& entry) const noexcept { return entry.expires && now_ > *entry.expires; }

  entries entries_;
  wall_ms now_ = 0;
};

}  // namespace holdfast::sim
