// SPDX-License-Identifier: BSL-1.0
// Redisson's RFairLock. The lock is the hash of an RLock, so re-entry, renewal and questions are those of a plain lock.
// Beside it Redis has the list of all waiting places, and their deadlines in a sorted set.
//
// Decision: the hash alone decides about the lock. Queue and deadlines decide about the order. Their loss costs order
// and never exclusion.
//
// Decision: a place is not an owner. It stands in the queue, and the lock is taken under a fresh field. Redisson
// compares the head of the queue only with itself. So a client has few places, which live as long as it does, and few
// subscriptions.
//
// Decision: an acquire takes the turn of any place of its client. Only the first waiter of a client asks, so the place
// that is nearest to the head is its own. A client cannot be wrong about which one that is.
//
// Decision: who hears the message lives. A client subscribes before it stands, so the number of receivers tells inside
// the same script. A peer stands first, so it also lives until its deadline.
//
// Decision: a script makes the names of the channels itself, because each argument costs the server half as much as a
// command of the script.
#include "protocol/fair/fair_lock.hpp"

#include <span>
#include <string>
#include <string_view>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "protocol/operands.hpp"
#include "protocol/script_steps.hpp"

namespace holdfast::detail {
namespace fair_steps {
namespace {

using made_of = call::operands;
using recipe = call::recipe;
using writer = call::writer;

/// The pause between two looks of a client with places. Its deadlines end ten times later.
constexpr milliseconds looks{500};

constexpr key_layout layout{.channel = "redisson_lock__channel", .token = {}};

key_parts queue_of(const lock_keys& at) { return beside("redisson_lock_queue", at.lock); }

void begin(writer& to, const lock_keys& at, std::size_t arguments) {
  to.begin(3, arguments);
  to.add(at.lock);
  to.add(queue_of(at));
  to.add(beside("redisson_lock_timeout", at.lock));
}

/// (lock, queue, deadlines; ttl, owner, word[, suspect])
void write_acquire(writer& to, const made_of& operands) {
  const bool suspects = operands.word && !operands.word->empty();
  begin(to, *operands.at, suspects ? 4 : 3);
  to.add(operands.ttl.ttl);
  to.add(*operands.field);
  to.add(text_of(operands.at->word));
  if (suspects) to.add(*operands.word);
}

/// (lock, queue, deadlines; word, client, number...)
void write_stand(writer& to, const made_of& operands) {
  const std::span places(operands.field, operands.count);
  begin(to, *operands.at, 2 + places.size());
  to.add(text_of(operands.at->word));
  to.add(operands.field->client());
  for (const auto& place : places) to.add(static_cast<std::int64_t>(place.number()));
}

/// (lock, queue, deadlines; word, owner[, next, ttl])
void write_release(writer& to, const made_of& operands) {
  begin(to, *operands.at, operands.holds.empty() ? 2 : 4);
  to.add(text_of(operands.at->word));
  to.add(*operands.field);
  for (const auto& next : operands.holds) {
    to.add(next.field);
    to.add(next.wanted.ttl);
  }
}

call ask(const lock_keys& keys, milliseconds ttl, const owner_field& field, const std::string* suspect) {
  static constexpr recipe form{lua::fair_acquire.evalsha, lua::fair_acquire.body, write_acquire, nullptr,
                               call::effect::takes};
  return {form, {.at = &keys, .field = &field, .ttl = {ttl}, .word = suspect}};
}

call set_places(const lock_keys& keys, const owner_field* first, std::size_t count) {
  static constexpr recipe form{lua::fair_stand.evalsha, lua::fair_stand.body, write_stand};
  return {form, {.at = &keys, .field = first, .count = static_cast<unsigned>(count)}};
}

call end(const lock_keys& keys, const owner_field& field, std::span<const renewal> next) {
  static constexpr recipe form{lua::fair_release.evalsha, lua::fair_release.body, write_release, nullptr,
                               call::effect::writes};
  return {form, {.at = &keys, .field = &field, .holds = next}};
}

call acquire_unsuspected(const lock_keys& keys, milliseconds ttl, const owner_field& field) {
  return ask(keys, ttl, field, nullptr);
}
call release_alone(const lock_keys& keys, const owner_field& field) { return end(keys, field, {}); }

call force_release(const lock_keys& keys) {
  static constexpr recipe form{lua::fair_force.evalsha, lua::fair_force.body, [](writer& to, const made_of& operands) {
                                 begin(to, *operands.at, 1);
                                 to.add(text_of(operands.at->word));
                               }};
  return {form, {.at = &keys}};
}

answer<unsigned> read_count_of(const redis::outcome& outcome, const owner_field&) {
  return read_outcome<read_count>(outcome);
}

}  // namespace

call acquire(const lock_keys& keys, milliseconds ttl, const owner_field& field, const std::string& suspect) {
  return ask(keys, ttl, field, &suspect);
}

call stand(const lock_keys& keys, std::span<const owner_field> places) {
  return set_places(keys, places.data(), places.size());
}
call leave(const lock_keys& keys, const owner_field& field) { return set_places(keys, &field, 0); }

call release(const lock_keys& keys, const owner_field& field, const renewal& next) {
  return end(keys, field, {&next, 1});
}

call waiters(const lock_keys& keys) {
  static constexpr recipe form{{}, "LLEN", [](writer& to, const made_of& operands) {
                                 to.begin(1, 0);
                                 to.add(queue_of(*operands.at));
                               }};
  return {form, {.at = &keys}};
}

std::string channel_of_place(const lock_keys& keys, const owner_field& place) {
  return channel_of(keys).append(":").append(std::string_view(place.to_text()));
}

}  // namespace fair_steps

constinit const kind fair_lock{
    .name = "fair_mutex",
    .layout = fair_steps::layout,
    .nested = kind::nesting::enters,
    .bars = true,
    .passes = false,
    .joins = {},
    .tokens = 0,
    .voted = false,
    .polls = {},
    .pushed = {.waits = false, .holds = true},
    .looks = fair_steps::looks,
    .acquire = {fair_steps::acquire_unsuspected, read_outcome<read_fair_acquire>},
    .acquire_party = {},
    .first_acquire = {},
    .acquire_any = {},
    .acquire_all = {},
    .set_hold_count = {script_steps::set_hold_count<lua::set_hold_count>, read_outcome<read_flag>},
    .renew = {script_steps::renew<lua::renew>, script_steps::renew_one<lua::renew>, read_outcome<read_renew>},
    .release = {fair_steps::release_alone, read_outcome<read_fair_release>},
    .queue = {},
    .places = {fair_steps::acquire,
               {fair_steps::stand, read_outcome<read_stand>},
               fair_steps::leave,
               {fair_steps::release, read_outcome<read_ride>},
               {fair_steps::waiters, read_outcome<read_waiters>},
               fair_steps::channel_of_place},
    .force_release = {fair_steps::force_release, read_outcome<read_force_release>},
    .set_permits = {},
    .exists = {operands::exists, read_outcome<read_flag>},
    .ttl = {operands::ttl, read_outcome<read_ttl>},
    .holder = {script_steps::holder<lua::holder>, read_outcome<read_holder>},
    .count = {operands::count, fair_steps::read_count_of},
    .last_token = {},
    .semaphore = {}};

}  // namespace holdfast::detail
