// SPDX-License-Identifier: BSL-1.0
// A permit of Redisson's RPermitExpirableSemaphore, as a kind of lock. Redis has a counter of the free permits, and a
// sorted set of the permits that are out, by their ends. The counter is at the key of the lock.
//
// Decision: each acquire carries the total. A missing counter becomes the total less the permits that are out. So a
// semaphore needs no setup before its first use, and an evicted counter costs nothing.
//
// Decision: only an acquire that finds too few permits takes back those that have ended. An acquire that finds enough
// is cheaper. The counter and the permits that are out always add up to the total.
//
// Decision: a door keeps newcomers out while a waiter collects several permits. It is a key that expires.
//
// Decision: Redis counts by INCRBY alone, with a negative number for an acquire. With DECRBY, a user without INCRBY
// could take permits and would lose each at its release.
//
// Decision: the door has the first id of its waiter, not the client's. So a release of these ids opens it, and touches
// no other hold or waiter of the client. An unanswered release is repeated like any other.
//
// Decision: the release of one permit does not name the door, which a waiter for one never closes. While a slot moves,
// its servers refuse a script with TRYAGAIN if one of its keys does not exist. The keys of a
// renewal and of this release nearly always exist. Between the moves of these two keys, and without a counter, they are
// repeated until the slot has moved, as an acquire and the release of several are.
#include "protocol/permits/permit_lock.hpp"

#include <array>
#include <span>
#include <string>
#include <utility>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"

namespace holdfast::detail {
namespace permit_lock_steps {
namespace {

using made_of = call::operands;
using recipe = call::recipe;
using writer = call::writer;
using fields = std::span<const owner_field>;

/// A door expires a little after its waiter's next attempt is due.
constexpr milliseconds looks{500}, door_ttl{600};

std::int64_t total_of(const made_of& operands) { return static_cast<const permit_keys&>(*operands.at).total; }

std::size_t amount_of(fields waiters) {
  std::size_t all = 0;
  for (const auto& waiter : waiters) all += waiter.amount();
  return all;
}

void add_counter(writer& to, const lock_keys& at) { to.add(at.lock); }
void add_permits(writer& to, const lock_keys& at) { to.add(below(at.lock, "timeout")); }
void add_door(writer& to, const lock_keys& at) { to.add(beside("holdfast_turn", at.lock)); }
void add_channel(writer& to, const lock_keys& at) {
  to.add(text_of(at.word));
  to.add(channel_parts(at));
}
void add_ids(writer& to, const owner_field& field) {
  for (std::uint8_t i = 0; i < field.amount(); ++i) {
    const auto id = field.permit(i);
    to.add(std::string_view(id.data(), id.size()));
  }
}

/// (counter, permits, door; ttl, total, door_ms, word, channel, waiters, n..., id...)
void write_acquire(writer& to, const made_of& operands, fields waiters) {
  const auto& at = *operands.at;
  to.begin(3, 6 + waiters.size() + amount_of(waiters));
  add_counter(to, at);
  add_permits(to, at);
  add_door(to, at);
  to.add(operands.ttl.ttl);
  to.add(total_of(operands));
  to.add(operands.stands ? door_ttl : milliseconds{});
  add_channel(to, at);
  to.add(static_cast<std::int64_t>(waiters.size()));
  for (const auto& waiter : waiters) to.add(std::int64_t{waiter.amount()});
  for (const auto& waiter : waiters) add_ids(to, waiter);
}

/// (permits...; claims, n..., ttl..., id...)
void write_renewals(writer& to, std::span<const renewal> claims) {
  std::size_t ids = 0;
  for (const auto& claim : claims) ids += claim.field.amount();
  to.begin(claims.size(), 1 + 2 * claims.size() + ids);
  for (const auto& claim : claims) add_permits(to, *claim.at);
  to.add(static_cast<std::int64_t>(claims.size()));
  for (const auto& claim : claims) to.add(std::int64_t{claim.field.amount()});
  for (const auto& claim : claims) to.add(claim.wanted.ttl);
  for (const auto& claim : claims) add_ids(to, claim.field);
}

/// (counter, permits; total, word, channel)
void write_total(writer& to, const lock_keys& at, std::int64_t total) {
  to.begin(2, 3);
  add_counter(to, at);
  add_permits(to, at);
  to.add(total);
  add_channel(to, at);
}

call acquire(const lock_keys& keys, milliseconds ttl, const owner_field& field) {
  static constexpr recipe form{lua::permits_acquire.evalsha, lua::permits_acquire.body,
                               [](writer& to, const made_of& operands) {
                                 write_acquire(to, operands, {operands.field, 1});
                               },
                               nullptr, call::effect::takes};
  return {form, {.at = &keys, .field = &field, .ttl = {ttl}}};
}

call acquire_party(const lock_keys& keys, milliseconds ttl, fields waiters, bool stands) {
  static constexpr recipe form{lua::permits_acquire.evalsha, lua::permits_acquire.body,
                               [](writer& to, const made_of& operands) {
                                 write_acquire(to, operands, {operands.field, operands.count});
                               },
                               nullptr, call::effect::takes};
  return {form,
          {.at = &keys,
           .field = waiters.data(),
           .ttl = {ttl},
           .count = static_cast<unsigned>(waiters.size()),
           .stands = stands}};
}

call renew(std::span<const renewal> claims) {
  static constexpr recipe form{lua::permits_renew.evalsha, lua::permits_renew.body,
                               [](writer& to, const made_of& operands) { write_renewals(to, operands.holds); }, nullptr,
                               call::effect::writes};
  return {form, {.holds = claims}};
}

call renew_one(const lock_keys& keys, key_ttl wanted, const owner_field& field) {
  static constexpr recipe form{lua::permits_renew.evalsha, lua::permits_renew.body,
                               [](writer& to, const made_of& operands) {
                                 const renewal one{operands.at, *operands.field, operands.ttl};
                                 write_renewals(to, {&one, 1});
                               },
                               nullptr, call::effect::writes};
  return {form, {.at = &keys, .field = &field, .ttl = wanted}};
}

/// (counter, permits; word, channel, id), or (counter, permits, door; word, channel, id...) of several
call release(const lock_keys& keys, const owner_field& field) {
  static constexpr recipe form{lua::permits_release.evalsha, lua::permits_release.body,
                               [](writer& to, const made_of& operands) {
                                 const auto& at = *operands.at;
                                 const bool may_have_door = operands.field->amount() > 1;
                                 to.begin(may_have_door ? 3 : 2, 2 + operands.field->amount());
                                 add_counter(to, at);
                                 add_permits(to, at);
                                 if (may_have_door) add_door(to, at);
                                 add_channel(to, at);
                                 add_ids(to, *operands.field);
                               },
                               nullptr, call::effect::writes};
  return {form, {.at = &keys, .field = &field}};
}

call force_release(const lock_keys& keys) {
  static constexpr recipe form{
      lua::permits_force.evalsha, lua::permits_force.body,
      [](writer& to, const made_of& operands) { write_total(to, *operands.at, total_of(operands)); }};
  return {form, {.at = &keys}};
}

call set_permits(const lock_keys& keys, std::uint32_t total) {
  static constexpr recipe form{
      lua::permits_set.evalsha, lua::permits_set.body,
      [](writer& to, const made_of& operands) { write_total(to, *operands.at, operands.count); }};
  return {form, {.at = &keys, .count = total}};
}

/// (counter, permits; total, id)
call ask(const lock_keys& keys, const owner_field* field) {
  static constexpr recipe form{lua::permits_query.evalsha, lua::permits_query.body,
                               [](writer& to, const made_of& operands) {
                                 to.begin(2, 2);
                                 add_counter(to, *operands.at);
                                 add_permits(to, *operands.at);
                                 to.add(total_of(operands));
                                 if (!operands.field) return to.add("");
                                 const auto id = operands.field->permit(0);
                                 to.add(std::string_view(id.data(), id.size()));
                               },
                               nullptr, call::effect::asks};
  return {form, {.at = &keys, .field = field}};
}

call query(const lock_keys& keys) { return ask(keys, nullptr); }
call count(const lock_keys& keys, const owner_field& field) { return ask(keys, &field); }

/// As Redisson shows an id.
std::string hex_of(std::string_view id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : id) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

template <class T>
using reads = T (*)(const semaphore_state&);

/// Reads one thing in the state of a semaphore.
template <class T>
answer<T> read_in_state(const redis::outcome& outcome, reads<T> read) {
  auto state = read_outcome<read_semaphore>(outcome);
  if (state.failed) return {std::move(state.failed), {}};
  return read_if_memory([&]() -> answer<T> { return {std::nullopt, read(state.value)}; });
}

answer<bool> read_exists(const redis::outcome& outcome) {
  return read_in_state<bool>(outcome, [](const semaphore_state& state) { return state.left <= 0; });
}

answer<std::optional<milliseconds>> read_ttl_of_first(const redis::outcome& outcome) {
  return read_in_state<std::optional<milliseconds>>(outcome, [](const semaphore_state& state) { return state.next; });
}

answer<std::optional<holder_answer>> read_first(const redis::outcome& outcome) {
  using holder = std::optional<holder_answer>;
  return read_in_state<holder>(outcome, [](const semaphore_state& state) {
    return state.next ? holder(holder_answer{hex_of(state.first), 1, *state.next}) : holder();
  });
}

answer<unsigned> read_held(const redis::outcome& outcome, const owner_field&) {
  return read_in_state<unsigned>(outcome, [](const semaphore_state& state) { return state.held ? 1U : 0U; });
}

answer<acquire_answer> read_acquire(const redis::outcome& outcome) {
  return read_outcome<read_permits>(outcome, std::size_t{1});
}

answer<unsigned> read_broken(const redis::outcome& outcome) {
  auto broken = read_outcome<read_permits_number>(outcome);
  return {std::move(broken.failed), static_cast<unsigned>(broken.value)};
}

answer<bool> read_set(const redis::outcome& outcome) {
  return {read_outcome<read_permits_number>(outcome).failed, true};
}

constexpr key_layout layout{.channel = "redisson_sc", .token = {}};

}  // namespace
}  // namespace permit_lock_steps

constinit const kind permit_lock{
    .name = "expirable_semaphore",
    .layout = permit_lock_steps::layout,
    .nested = kind::nesting::anew,
    .bars = false,
    .passes = true,
    .joins = {},
    .tokens = 0,
    .voted = false,
    .polls = {},
    .pushed = {},
    .looks = permit_lock_steps::looks,
    .acquire = {permit_lock_steps::acquire, permit_lock_steps::read_acquire},
    .acquire_party = {permit_lock_steps::acquire_party, read_outcome<read_permits>},
    .first_acquire = {},
    .acquire_any = {},
    .acquire_all = {},
    .set_hold_count = {},
    .renew = {permit_lock_steps::renew, permit_lock_steps::renew_one, read_outcome<read_renew>},
    .release = {permit_lock_steps::release, read_outcome<read_permits_release>},
    .queue = {},
    .places = {},
    .force_release = {permit_lock_steps::force_release, permit_lock_steps::read_broken},
    .set_permits = {permit_lock_steps::set_permits, permit_lock_steps::read_set},
    .exists = {permit_lock_steps::query, permit_lock_steps::read_exists},
    .ttl = {permit_lock_steps::query, permit_lock_steps::read_ttl_of_first},
    .holder = {permit_lock_steps::query, permit_lock_steps::read_first},
    .count = {permit_lock_steps::count, permit_lock_steps::read_held},
    .last_token = {},
    .semaphore = {permit_lock_steps::query, read_outcome<read_semaphore>}};

}  // namespace holdfast::detail
