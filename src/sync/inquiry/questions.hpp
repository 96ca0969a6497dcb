// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <holdfast/lock_holder.hpp>

#include "sync/command/ask_twice.hpp"
#include "sync/command/handlers.hpp"
#include "sync/hold/engine_parts.hpp"

namespace holdfast::detail {

/// The questions about a lock that Redis answers. They change nothing.
class questions {
 public:
  explicit questions(const engine_parts& parts) noexcept : parts_(parts) {}

  void is_locked(const shared_keys& keys, answer_handler<bool> done) const;
  /// The number of leases that Redis counts for this field.
  void count(const shared_keys& keys, const owner_field& field, answer_handler<unsigned> done) const;
  void holder(const shared_keys& keys, answer_handler<std::optional<lock_holder>> done) const;
  void remaining_ttl(const shared_keys& keys, answer_handler<std::optional<milliseconds>> done) const;
  /// Of a shared mutex: the number of its read holds.
  void read_holds(const shared_keys& keys, answer_handler<unsigned> done) const;
  /// Of a fair mutex: how many places stand, those of all clients.
  void waiters(const shared_keys& keys, answer_handler<unsigned> done) const;
  /// Of a semaphore.
  void semaphore(const shared_keys& keys, answer_handler<semaphore_state> done) const;
  /// Of an election: its leader.
  void leader(const shared_keys& keys, answer_handler<std::optional<leader_answer>> done) const;
  void last_token(const shared_keys& keys, answer_handler<std::optional<std::uint64_t>> done) const;

 private:
  template <class T, class Make, class Read>
  void ask(const shared_keys& keys, Make make, Read read, answer_handler<T> done) const;
  /// Asks for the note as well. Returns the handler for the holder alone.
  answer_handler<std::optional<lock_holder>> with_note(const shared_keys& keys,
                                                       answer_handler<std::optional<lock_holder>> done) const;

  const engine_parts& parts_;
};

}  // namespace holdfast::detail
