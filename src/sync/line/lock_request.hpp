// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>

#include <holdfast/owner_id.hpp>

#include "base/lease_clock.hpp"
#include "base/shared_text.hpp"
#include "protocol/owner_field.hpp"
#include "protocol/replies.hpp"
#include "protocol/vote/vote_count.hpp"
#include "sync/claim/terms.hpp"

namespace holdfast::detail {

class all_or_none_part;

/// One call of lock, try_lock or try_lock_for.
struct lock_request {
  enum class wait_mode : std::uint8_t { forever, once, until_deadline };
  owner_id owner;
  bool bound = false;  // the caller gave the owner, or it is bound to the task
  wait_mode wait = wait_mode::forever;
  std::uint8_t amount = 1;  // of permits, together or not at all
  /// A part of an any_acquisition. It never re-enters, and the any_acquisition reports for all parts.
  bool one_of_several = false;
  /// Redis has just said busy. A waiter that is the first of its line begins with the subscription.
  bool found_taken = false;
  terms asked;
  std::uint32_t part = 0;                   // of `whole`
  time_point deadline = time_point::max();  // until_deadline only
  /// The calling coroutine, known by the bottom of its stack (api/coroutine_caller.hpp). Null: it is unknown. Only an
  /// event depends on it.
  const void* coroutine = nullptr;
  /// The call for several locks that this is a part of. The part sends nothing itself, and that call reports its
  /// failure. Null: it is no part.
  all_or_none_part* whole = nullptr;
  shared_text_ptr note{};  // null: none, or the client keeps no notes

  bool asks_once() const noexcept { return wait == wait_mode::once; }
};

/// The answer to one attempt to acquire, with the facts about its command.
struct attempt {
  answer<acquire_answer> reply;
  bool answered;  // by Redis; a refusal is an answer
  time_point sent;
  primary_set yes = only(0), may_have_run = only(0);  // as of redis::outcome
  std::uint64_t server = 0;                           // the same
  bool tracked = false;                               // the same
};

/// The attempts of one waiter until now. There may be a hundred thousand waiters, so it is small.
struct attempts {
  owner_field field;             // from the first attempt on; the same in each repetition
  std::uint16_t unanswered = 0;  // written and not answered: the field may have been granted, or may still be
  std::uint16_t splits = 0;      // in which the primaries were divided, since the last message
  bool first_try = false;        // the last attempt was the kind's first_acquire
  bool granted = false;          // Redis has granted the field, and replicas must confirm it
  bool stands = false;           // the field has closed a door, and it may still be closed
  standing place{};              // that the last attempt has asked for
};

}  // namespace holdfast::detail
