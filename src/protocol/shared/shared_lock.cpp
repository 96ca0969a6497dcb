// SPDX-License-Identifier: BSL-1.0
// Redisson's RReadWriteLock, as two kinds of one layout. A hash has the field `mode`, and one field for the writer or
// one for each read hold. A read hold also has a key of its own with its TTL: the hash has one TTL for all of them.
//
// Decision: the hash alone decides about the lock. Two sorted sets and a turn beside it decide the order of our
// clients. Their loss costs order and never exclusion. Peers ignore them.
//
// Decision: a place in a set is a client's, not a waiter's. Only the first waiter of a client asks Redis, so a set has
// as many members as clients wait, and is taken along by the acquires and releases that are sent anyhow.
//
// Decision: clients live while they subscribe to their wake channel. PUBSUB counts subscribers of this channel alone;
// PUBLISH would count each PSUBSCRIBE as well.
//
// Decision: the side keys are keys of each script, although a release then gets TRYAGAIN while its slot moves. A key
// that is no key of the script would be an error there.
//
// Decision: a script gets few arguments, because each of them costs the server half as much as a command of the script.
// It makes the names of the other channels itself, where it needs them.
#include "protocol/shared/shared_lock.hpp"

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "protocol/operands.hpp"
#include "protocol/script_steps.hpp"

namespace holdfast::detail {
namespace shared_lock {
namespace {

using made_of = call::operands;
using recipe = call::recipe;
using writer = call::writer;

/// The pause between two looks of a client with a place: a message to it may be lost.
constexpr milliseconds looks{500};
constexpr std::string_view wake_stem = "holdfast_wake", waiters_stem = "holdfast_waiters";

void add_deadline(writer& to, const lock_keys& at, const owner_field& field) {
  const auto owner = field.to_text();
  const auto key = below(at.lock, owner);
  to.add(std::array{key[0], key[1], key[2], key[3], std::string_view(":rwlock_timeout:1")});
}
void add_write_field(writer& to, const owner_field& field) {
  const auto owner = field.to_text();
  to.add(std::array{std::string_view(owner), std::string_view(":write")});
}
void add_side_keys(writer& to, const lock_keys& at) {
  for (const std::string_view stem : {"holdfast_queue", "holdfast_readers", "holdfast_turn"})
    to.add(beside(stem, at.lock));
}
void add_channel(writer& to, const lock_keys& at) {
  to.add(text_of(at.word));
  to.add(channel_parts(at));
}
void add_number(writer& to, std::int64_t number) { to.add(number); }

/// The keys of renewals, and their fields, by the side of each.
void write_renewals(writer& to, std::span<const renewal> holds) {
  bool both = false;
  for (const auto& held : holds) both |= operands::differ(held.wanted);
  to.begin(2 * holds.size(), (both ? 3 : 2) * holds.size());
  for (const auto& held : holds) {
    to.add(held.at->lock);
    if (&held.at->of == &shared_writer)
      to.add(held.at->lock);
    else
      add_deadline(to, *held.at, held.field);
  }
  for (const auto& held : holds) to.add(held.wanted.ttl);
  for (const auto& held : holds)
    if (&held.at->of == &shared_writer)
      add_write_field(to, held.field);
    else
      to.add(held.field);
  if (!both) return;
  for (const auto& held : holds) to.add(held.wanted.if_none);
}

call renew(std::span<const renewal> holds) {
  static constexpr recipe form{lua::shared_renew.evalsha, lua::shared_renew.body,
                               [](writer& to, const made_of& operands) { write_renewals(to, operands.holds); }, nullptr,
                               call::effect::writes};
  return {form, {.holds = holds}};
}

call renew_one(const lock_keys& keys, key_ttl wanted, const owner_field& field) {
  static constexpr recipe form{lua::shared_renew.evalsha, lua::shared_renew.body,
                               [](writer& to, const made_of& operands) {
                                 const renewal one{operands.at, *operands.field, operands.ttl};
                                 write_renewals(to, {&one, 1});
                               },
                               nullptr, call::effect::writes};
  return {form, {.at = &keys, .field = &field, .ttl = wanted}};
}

call set_hold_count(const lock_keys& keys, key_ttl wanted, const owner_field& field, unsigned count) {
  static constexpr recipe form{lua::set_hold_count.evalsha, lua::set_hold_count.body,
                               [](writer& to, const made_of& operands) {
                                 to.begin(1, operands::differ(operands.ttl) ? 4 : 3);
                                 to.add(operands.at->lock);
                                 to.add(operands.ttl.ttl);
                                 add_write_field(to, *operands.field);
                                 to.add(std::int64_t{operands.count});
                                 if (operands::differ(operands.ttl)) to.add(operands.ttl.if_none);
                               },
                               nullptr, call::effect::writes};
  return {form, {.at = &keys, .field = &field, .ttl = wanted, .count = count}};
}

call count(const lock_keys& keys, const owner_field& field) {
  static constexpr recipe form{{},
                               "HGET",
                               [](writer& to, const made_of& operands) {
                                 to.begin(1, 1);
                                 to.add(operands.at->lock);
                                 if (&operands.at->of == &shared_writer)
                                   add_write_field(to, *operands.field);
                                 else
                                   to.add(*operands.field);
                               },
                               nullptr,
                               call::effect::asks};
  return {form, {.at = &keys, .field = &field}};
}

answer<unsigned> read_count_of(const redis::outcome& outcome, const owner_field&) {
  return read_outcome<read_count>(outcome);
}

// An acquire that does not wait, and a release of a client that has no place.
call try_read(const lock_keys& keys, milliseconds ttl, const owner_field& field) {
  return read_acquire(keys, ttl, field, standing::none);
}
call try_write(const lock_keys& keys, milliseconds ttl, const owner_field& field) {
  return write_acquire(keys, ttl, field, standing::none);
}
call end_read(const lock_keys& keys, const owner_field& field) { return read_release(keys, field, {}); }
call end_write(const lock_keys& keys, const owner_field& field) { return write_release(keys, field, {}); }

template <bool Writes>
bool is_held(const shared_state& state) {
  return Writes ? state.writes : state.readers > 0;
}

template <bool Writes>
answer<bool> read_exists(const redis::outcome& outcome) {
  auto now = read_state(outcome);
  return {std::move(now.failed), is_held<Writes>(now.value)};
}

template <bool Writes>
answer<std::optional<holder_answer>> read_holder(const redis::outcome& outcome) {
  auto now = read_state(outcome);
  auto& state = now.value;
  // A writer that reads as well is the owner on both sides.
  if (now.failed || !is_held<Writes>(state)) return {std::move(now.failed), {}};
  return {{}, holder_answer{std::move(state.owner), state.count, state.ttl}};
}

constexpr key_layout layout{.channel = "redisson_rwlock", .token = {}};

template <bool Writes>
constexpr kind side() {
  return {.name = Writes ? "shared_mutex" : "shared_mutex_reader",
          .layout = layout,
          .nested = kind::nesting::enters,
          .bars = Writes,
          .passes = Writes,
          .joins = Writes ? milliseconds() : milliseconds(5),
          .tokens = 0,
          .voted = false,
          .polls = {},
          .pushed = {},
          .looks = looks,
          .acquire = Writes ? decltype(kind::acquire){try_write, read_outcome<read_writer_acquire>}
                            : decltype(kind::acquire){try_read, read_outcome<read_reader_acquire>},
          .acquire_party = {},
          .first_acquire = {},
          .acquire_any = {},
          .acquire_all = {},
          .set_hold_count = Writes ? decltype(kind::set_hold_count){set_hold_count, read_outcome<read_flag>}
                                   : decltype(kind::set_hold_count){},
          .renew = {renew, renew_one, read_outcome<read_renew>},
          .release = Writes ? decltype(kind::release){end_write, read_outcome<read_writer_release>}
                            : decltype(kind::release){end_read, read_outcome<read_reader_release>},
          .queue = {Writes ? write_acquire : read_acquire, Writes ? write_release : read_release, wake_channel_of,
                    waiters_channel_of,
                    Writes ? decltype(kind::queue_steps::downgrade){downgrade, read_downgrade}
                           : decltype(kind::queue_steps::downgrade){}},
          .places = {},
          .force_release = {script_steps::force_release<lua::shared_force>, read_outcome<read_force_release>},
          .set_permits = {},
          .exists = {state, read_exists<Writes>},
          .ttl = {operands::ttl, read_outcome<read_ttl>},
          .holder = {state, read_holder<Writes>},
          .count = {count, read_count_of},
          .last_token = {},
          .semaphore = {}};
}

}  // namespace

call read_acquire(const lock_keys& keys, milliseconds ttl, const owner_field& field, standing place) {
  static constexpr recipe form{lua::read_acquire.evalsha, lua::read_acquire.body,
                               [](writer& to, const made_of& operands) {
                                 const auto& at = *operands.at;
                                 const bool stands = operands.place != standing::none;
                                 to.begin(5, stands ? 5 : 4);
                                 to.add(at.lock);
                                 add_deadline(to, at, *operands.field);
                                 add_side_keys(to, at);
                                 to.add(operands.ttl.ttl);
                                 to.add(*operands.field);
                                 add_channel(to, at);
                                 if (stands) add_number(to, 1);
                               },
                               nullptr, call::effect::takes};
  return {form, {.at = &keys, .field = &field, .ttl = {ttl}, .place = place}};
}

call write_acquire(const lock_keys& keys, milliseconds ttl, const owner_field& field, standing place) {
  static constexpr recipe form{lua::write_acquire.evalsha, lua::write_acquire.body,
                               [](writer& to, const made_of& operands) {
                                 const auto& at = *operands.at;
                                 const bool stands = operands.place != standing::none;
                                 to.begin(4, stands ? 5 : 4);
                                 to.add(at.lock);
                                 add_side_keys(to, at);
                                 to.add(operands.ttl.ttl);
                                 add_write_field(to, *operands.field);
                                 to.add(text_of(at.word));
                                 auto tagged = below(at.lock, {});
                                 tagged[2].remove_suffix(1);  // the script adds the colon
                                 to.add(tagged);
                                 if (stands) add_number(to, static_cast<std::int64_t>(operands.place));
                               },
                               nullptr, call::effect::takes};
  return {form, {.at = &keys, .field = &field, .ttl = {ttl}, .place = place}};
}

call read_release(const lock_keys& keys, const owner_field& field, const departure& end) {
  static constexpr recipe form{lua::read_release.evalsha, lua::read_release.body,
                               [](writer& to, const made_of& operands) {
                                 const auto& at = *operands.at;
                                 to.begin(5, operands.leave ? 5 : 4);
                                 to.add(at.lock);
                                 add_deadline(to, at, *operands.field);
                                 add_side_keys(to, at);
                                 add_channel(to, at);
                                 to.add(*operands.field);
                                 to.add(operands.ttl.ttl);
                                 if (operands.leave) add_number(to, 1);
                               },
                               nullptr, call::effect::writes};
  return {form, {.at = &keys, .field = &field, .ttl = {end.reserve}, .leave = end.leave}};
}

call write_release(const lock_keys& keys, const owner_field& field, const departure& end) {
  static constexpr recipe form{lua::write_release.evalsha, lua::write_release.body,
                               [](writer& to, const made_of& operands) {
                                 const auto& at = *operands.at;
                                 const bool has_place = operands.leave || operands.again;
                                 to.begin(4, has_place ? 5 : 4);
                                 to.add(at.lock);
                                 add_side_keys(to, at);
                                 add_channel(to, at);
                                 add_write_field(to, *operands.field);
                                 to.add(operands.ttl.ttl);
                                 if (has_place) add_number(to, operands.again ? 2 : 1);
                               },
                               nullptr, call::effect::writes};
  return {form, {.at = &keys, .field = &field, .ttl = {end.reserve}, .leave = end.leave, .again = end.again}};
}

call downgrade(const lock_keys& keys, milliseconds ttl, const owner_field& field, milliseconds reserve) {
  static constexpr recipe form{lua::downgrade.evalsha, lua::downgrade.body,
                               [](writer& to, const made_of& operands) {
                                 const auto& at = *operands.at;
                                 to.begin(4, 5);
                                 to.add(at.lock);
                                 add_deadline(to, at, *operands.field);
                                 to.add(beside("holdfast_readers", at.lock));
                                 to.add(beside("holdfast_turn", at.lock));
                                 to.add(operands.ttl.ttl);
                                 to.add(*operands.field);
                                 add_channel(to, at);
                                 to.add(operands.ttl.if_none);  // of the turn
                               },
                               nullptr, call::effect::writes};
  return {form, {.at = &keys, .field = &field, .ttl = {ttl, reserve}}};
}

answer<bool> read_downgrade(const redis::outcome& outcome) { return read_outcome<detail::read_downgrade>(outcome); }

call state(const lock_keys& keys) {
  static constexpr recipe form{lua::shared_holder.evalsha, lua::shared_holder.body, operands::key, nullptr,
                               call::effect::asks};
  return {form, {.at = &keys}};
}

answer<shared_state> read_state(const redis::outcome& outcome) { return read_outcome<read_shared_state>(outcome); }

std::optional<failure> uncounted_waiters(const redis::outcome& outcome) {
  const auto& reply = outcome.reply;
  const bool uncounted = !outcome.error && reply.type == redis::reply::kind::array && reply.elements.size() == 3 &&
                         reply.elements[2].type == redis::reply::kind::string;
  if (!uncounted) return std::nullopt;
  auto why = classify(reply.elements[2].text);
  why.detail.insert(0, "waiting clients are not counted: ");
  return why;
}

std::string wake_channel_of(const lock_keys& keys, const uuid& client) {
  std::string channel;
  for (const auto part : beside(wake_stem, keys.lock)) channel += part;
  return channel.append(":").append(client.text());
}

std::string waiters_channel_of(const lock_keys& keys) {
  std::string channel;
  for (const auto part : beside(waiters_stem, keys.lock)) channel += part;
  return channel;
}

}  // namespace shared_lock

constinit const kind shared_writer = shared_lock::side<true>();
constinit const kind shared_reader = shared_lock::side<false>();

}  // namespace holdfast::detail
