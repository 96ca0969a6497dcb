// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/export.hpp>

#include "protocol/call.hpp"
#include "protocol/keys.hpp"
#include "protocol/replies.hpp"
#include "redis/outcome.hpp"

namespace holdfast::detail {

/// A kind of lock: what is sent for each step, what the answer says, and what may be done with it. How callers wait,
/// hold and lose is the same for all kinds; the rules say where one differs.
///
/// Each step except first_acquire and acquire_any can be sent twice: acquire knows its own field again, a count is
/// absolute, and a release that comes too late finds nothing.
struct kind {
  template <class T, class... Of>
  struct step {
    call (*make)(const lock_keys&, Of...);
    answer<T> (*read)(const redis::outcome&);
  };

  /// Of the class that users know it by.
  std::string_view name;
  const key_layout& layout;

  // Its rules.
  /// True: an owner that holds the lock gets one more lease of its hold. False: it gets already_held.
  bool reentrant;
  /// So many fencing tokens come with a grant at most: for its hold, and for those that it is passed on to. 0: its
  /// holds have none.
  std::int64_t tokens;
  constexpr bool fenced() const noexcept { return tokens > 0; }
  /// It is held at a majority of several independent primaries; every other kind is held at one server.
  bool voted;
  /// Somebody may take it who does not listen, and release it without a message: a waiter looks again after `first`,
  /// then later and later, at the latest after `longest`; and clients that pass it on leave it for `first` now and
  /// then. Zero: nobody does.
  struct {
    milliseconds first, longest;
  } polls;

  // Its steps.
  step<acquire_answer, milliseconds, const owner_field&> acquire;
  /// What a waiter sends with a field that was never sent, where that is cheaper; null where it is not. It tells no TTL
  /// of a busy lock, and does not know its own field again.
  step<acquire_answer, milliseconds, const owner_field&> first_acquire;
  /// Takes the first that is free of several of this kind, all of one server, with a field that was never sent: it does
  /// not know its own field again.
  struct {
    call (*make)(const std::vector<shared_keys>&, milliseconds, const owner_field&);
    answer<acquire_any_answer> (*read)(const redis::outcome&, std::size_t sent);
  } acquire_any;
  /// Takes several of this kind, all of one server, each with a field of its own, or none of them.
  struct {
    call (*make)(const std::vector<shared_keys>&, milliseconds, std::span<const owner_field>);
    answer<acquire_all_answer> (*read)(const redis::outcome&, std::size_t sent);
  } acquire_all;
  /// Of one that is reentrant: so many leases has the hold. False: the field does not hold.
  step<bool, key_ttl, const owner_field&, unsigned> set_hold_count;
  /// Confirms holds, one or more, each with its TTL; all of one server and of one layout.
  struct {
    call (*make)(std::span<const renewal>);
    call (*make_one)(const lock_keys&, key_ttl, const owner_field&);
    answer<std::vector<renewal_answer>> (*read)(const redis::outcome&, std::size_t sent);
  } renew;
  step<release_answer, const owner_field&> release;
  /// True: there was a hold.
  step<bool> force_release;

  // What is asked of it, which changes nothing.
  step<bool> exists;
  step<std::optional<milliseconds>> ttl;
  step<std::optional<holder_answer>> holder;
  struct {
    call (*make)(const lock_keys&, const owner_field&);
    answer<unsigned> (*read)(const redis::outcome&, const owner_field&);
  } count;
  step<std::optional<std::uint64_t>> last_token;  // of a fenced one
};

/// Redisson's RLock.
HOLDFAST_EXPORT extern const kind plain_lock;
/// Redisson's RFencedLock: the same keys, and a counter. In turns: of a client that passes its locks on.
extern const kind fenced_lock;
extern const kind fenced_lock_in_turns;
/// One string key, SET NX PX.
HOLDFAST_EXPORT extern const kind simple_lock;
/// Redlock: a plain lock, or a simple one, at a majority of several primaries.
extern const kind red_plain_lock;
extern const kind red_simple_lock;

/// Why it was not done, whatever it was.
std::optional<failure> refusal_in(const redis::outcome& outcome);
/// Why the server has refused the message of a release, or of a forced one, that has freed the lock. Empty: it has not.
std::optional<failure> withheld_message(const redis::outcome& outcome);

/// Reads an answer. Without memory for it there is none, and the command may have run.
template <class Read>
auto read_if_memory(Read read) -> decltype(read()) try {
  return read();
} catch (const std::bad_alloc&) {
  auto why = redis::without_memory();
  why.may_have_run = true;
  return {std::move(why), {}};
}

/// Reads an outcome by what reads a reply.
template <auto Read, class... With>
auto read_outcome(const redis::outcome& outcome, With... with) -> decltype(Read(outcome.reply, with...)) {
  using read = decltype(Read(outcome.reply, with...));
  return read_if_memory([&]() -> read {
    if (outcome.error) return {redis::failure_of(outcome), {}};
    return Read(outcome.reply, with...);
  });
}

}  // namespace holdfast::detail
