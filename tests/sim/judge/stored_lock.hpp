// SPDX-License-Identifier: BSL-1.0
#pragma once
// Each kind of lock has one view, which alone knows the keys and fields of that kind. A view is found by the type of
// the stored value, not by the lock's name: a fault may have put a value of another type there, and the value names
// the holder then. A new kind is one more view here, in `lock_view` and in view_of().
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "protocol/derived_keys.hpp"
#include "sim/deployment.hpp"

namespace holdfast::sim {

/// A lock that is a hash: one field for each owner, with the count of its leases. The newest fencing token of the name
/// has a key of its own.
class hash_view {
 public:
  static bool reads(const keyspace::entry& e) { return e.hash() != nullptr; }
  explicit hash_view(const keyspace::entry& e) : owners_(*e.hash()) {}

  /// The value that is stored for this owner.
  std::optional<std::string_view> stored(std::string_view owner) const {
    const auto* value = owners_.find(owner);
    return value ? std::optional<std::string_view>(*value) : std::nullopt;
  }
  std::size_t count_of(std::string_view owner) const {
    const auto value = stored(owner);
    return value ? std::stoull(std::string(*value)) : 0;
  }
  /// `use(owner)`
  template <class Use>
  void each_owner(Use&& use) const {
    for (const auto& [owner, count] : owners_.fields()) use(owner);
  }

  static bool is_token_key(std::string_view key) { return key.starts_with(token_keys); }
  static std::string token_key(const std::string& name) {
    return std::string(token_keys) + (name.find('{') == name.npos ? '{' + name + '}' : name);
  }

 private:
  static constexpr std::string_view token_keys = "redisson_lock_token:";

  const hash_value& owners_;
};

/// A lock of readers or of one writer: a hash with the field `mode`, and one field for each hold.
class shared_view : public hash_view {
 public:
  static bool reads(const keyspace::entry& e) { return hash_view::reads(e) && e.hash()->find(mode); }
  using hash_view::hash_view;

  template <class Use>
  void each_owner(Use&& use) const {
    hash_view::each_owner([&](const std::string& owner) {
      if (owner != mode) use(owner);
    });
  }

 private:
  static constexpr std::string_view mode = "mode";
};

/// The lock of an election that has a leader: a hash with the fields `leader` and `term`, and that of its owner.
class election_view : public hash_view {
 public:
  static bool reads(const keyspace::entry& e) {
    return hash_view::reads(e) && e.hash()->find(value_field) && e.hash()->find(term_field);
  }
  using hash_view::hash_view;

  std::string_view value() const { return *stored(value_field); }
  std::string_view term() const { return *stored(term_field); }
  template <class Use>
  void each_owner(Use&& use) const {
    hash_view::each_owner([&](const std::string& owner) {
      if (owner != value_field && owner != term_field) use(owner);
    });
  }

 private:
  static constexpr std::string_view value_field = "leader", term_field = "term";
};

/// A simple lock: a string, which is the field of its only owner.
class simple_view {
 public:
  static bool reads(const keyspace::entry& e) { return e.text() != nullptr; }
  explicit simple_view(const keyspace::entry& e) : owner_(*e.text()) {}

  std::optional<std::string_view> stored(std::string_view owner) const {
    return owner == owner_ ? std::optional<std::string_view>(owner_) : std::nullopt;
  }
  std::size_t count_of(std::string_view owner) const { return owner == owner_ ? 1 : 0; }
  template <class Use>
  void each_owner(Use&& use) const {
    use(owner_);
  }

 private:
  const std::string& owner_;
};

/// The permits of a semaphore that are out, by their ends.
class permits_view {
 public:
  static bool reads(const keyspace::entry& e) { return e.sorted() != nullptr; }
  explicit permits_view(const keyspace::entry& e) : out_(*e.sorted()) {}

  std::optional<std::string_view> stored(std::string_view id) const {
    return out_.score_of(id) ? std::optional(id) : std::nullopt;
  }
  std::size_t count_of(std::string_view id) const { return out_.score_of(id) ? 1 : 0; }
  template <class Use>
  void each_owner(Use&& use) const {
    for (const auto& [end, id] : out_.members()) use(id);
  }

 private:
  const sorted_set& out_;
};

/// The keys of a semaphore. The counter of the permits that are left is at `name`.
struct semaphore {
  explicit semaphore(const detail::permit_keys& keys)
      : name(keys.lock), permits(detail::joined(detail::below(name, "timeout"))),
        door(detail::joined(detail::beside("holdfast_turn", name))), total(keys.total) {}

  const std::string name, permits, door;
  const std::uint32_t total;
};

/// The keys of a shared mutex. `queue` and `readers` have the clients that wait, and `turn` the client that comes next.
struct shared_names {
  explicit shared_names(const detail::lock_keys& keys)
      : name(keys.lock), queue(detail::joined(detail::beside("holdfast_queue", name))),
        readers(detail::joined(detail::beside("holdfast_readers", name))),
        turn(detail::joined(detail::beside("holdfast_turn", name))), below(detail::joined(detail::below(name, {}))) {}

  static bool writes(std::string_view field) { return field.ends_with(":write"); }
  /// The key whose TTL is that of a read hold.
  std::string deadline_of(std::string_view field) const {
    return std::string(below).append(field).append(deadline) + '1';
  }
  /// The field of a reader whose deadline this is.
  std::string_view reader_of(std::string_view key) const {
    return key.substr(below.size(), key.find(deadline) - below.size());
  }
  /// A field has one colon. {a}:2:client:3 is no field of {a}, but one of {a}:2.
  bool is_deadline(std::string_view key) const {
    if (!key.starts_with(below) || key.find(deadline) == key.npos) return false;
    return std::ranges::count(reader_of(key), ':') == 1;
  }

  const std::string name, queue, readers, turn;

 private:
  static constexpr std::string_view deadline = ":rwlock_timeout:";

  const std::string below;
};

/// The keys of a fair mutex. `queue` has the places of all that wait, and `deadlines` when each of them ends.
struct fair_names {
  explicit fair_names(const detail::lock_keys& keys)
      : name(keys.lock), queue(detail::joined(detail::beside("redisson_lock_queue", name))),
        deadlines(detail::joined(detail::beside("redisson_lock_timeout", name))) {}

  const std::string name, queue, deadlines;
};

using lock_view = std::variant<shared_view, election_view, hash_view, simple_view, permits_view>;

/// Where a node keeps its vote.
constexpr std::string_view vote_key = "holdfast:redlock";

/// The beginning of the keys of marks, which calls of a latch leave.
constexpr std::string_view mark_stem = "holdfast_done";

/// Where the note of a lock is.
constexpr std::string_view note_keys = "holdfast_note:";

/// A key that is no lock: a counter of tokens, the node's vote, or a note. It outlives the locks.
inline bool is_side_key(std::string_view key) {
  return hash_view::is_token_key(key) || key == vote_key || key.starts_with(note_keys);
}

/// The one place that chooses between the views; nothing: no kind stores such a value.
inline std::optional<lock_view> view_of(const keyspace::entry& e) {
  if (shared_view::reads(e)) return shared_view(e);
  if (election_view::reads(e)) return election_view(e);
  if (hash_view::reads(e)) return hash_view(e);
  if (simple_view::reads(e)) return simple_view(e);
  if (permits_view::reads(e)) return permits_view(e);
  return std::nullopt;
}

inline std::size_t count_of(const keyspace::entry& e, std::string_view owner) {
  const auto view = view_of(e);
  return view ? std::visit([&](const auto& lock) { return lock.count_of(owner); }, *view) : 0;
}

inline std::optional<std::string_view> stored(const keyspace::entry* e, std::string_view owner) {
  const auto view = e ? view_of(*e) : std::nullopt;
  return view ? std::visit([&](const auto& lock) { return lock.stored(owner); }, *view) : std::nullopt;
}

/// `use(owner)` for each owner of the lock at this key.
template <class Use>
void each_owner(std::string_view key, const keyspace::entry& e, Use&& use) {
  if (is_side_key(key)) return;
  if (const auto view = view_of(e)) std::visit([&](const auto& lock) { lock.each_owner(use); }, *view);
}

/// The newest token of a name, as a keyspace has it: null where there is none.
inline const keyspace::entry* token_entry(const keyspace& keys, const std::string& name) {
  return keys.find(hash_view::token_key(name));
}

}  // namespace holdfast::sim
