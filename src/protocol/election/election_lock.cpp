// SPDX-License-Identifier: BSL-1.0
// The lock of an election, as a kind of lock. Redis has the hash of Redisson's RFencedLock, with the fields `leader`,
// the value, and `term`, the fencing token.
//
// Decision: value and term are fields of the lock itself. One script writes them with the owner, one key is renewed,
// and they go with it. So no reader sees the value of one leader beside the term of another.
//
// Decision: the term is in the lock as well as in the token's key. That key may end before the leader does
// (config::token_ttl), and an observer must not take another number for the term.
//
// Decision: a hold is never passed on inside a client. Each leader is elected by Redis, and observers see each term.
#include "protocol/election/election_lock.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "protocol/operands.hpp"
#include "protocol/script_steps.hpp"

namespace holdfast::detail {
namespace election_steps {
namespace {

using made_of = call::operands;
using recipe = call::recipe;
using writer = call::writer;

constexpr milliseconds none{};

key_parts observers_of(const lock_keys& keys) { return beside("holdfast_election", keys.lock); }

const std::string& value_of(const made_of& operands) { return static_cast<const election_keys&>(*operands.at).value; }

/// (lock, token; ttl, owner, value, word, channel[, token_ttl])
call campaign(const lock_keys& keys, milliseconds ttl, const owner_field& field) {
  static constexpr recipe form{lua::campaign.evalsha, lua::campaign.body,
                               [](writer& to, const made_of& operands) {
                                 to.begin(2, operands.token_ttl != none ? 6 : 5);
                                 to.add(operands.at->lock);
                                 to.add(token_parts(*operands.at));
                                 to.add(operands.ttl.ttl);
                                 to.add(*operands.field);
                                 to.add(value_of(operands));
                                 to.add(text_of(operands.at->word));
                                 to.add(observers_of(*operands.at));
                                 if (operands.token_ttl != none) to.add(operands.token_ttl);
                               },
                               nullptr, call::effect::takes};
  return {form, {.at = &keys, .field = &field, .ttl = {ttl}}};
}

/// (lock; word, channel, observers[, owner])
void write_end(writer& to, const made_of& operands) {
  to.begin(1, operands.field ? 4 : 3);
  to.add(operands.at->lock);
  to.add(text_of(operands.at->word));
  to.add(channel_parts(*operands.at));
  to.add(observers_of(*operands.at));
  if (operands.field) to.add(*operands.field);
}

call resign(const lock_keys& keys, const owner_field& field) {
  static constexpr recipe form{lua::resign.evalsha, lua::resign.body, write_end, nullptr, call::effect::writes};
  return {form, {.at = &keys, .field = &field}};
}

call force_release(const lock_keys& keys) {
  static constexpr recipe form{lua::election_force.evalsha, lua::election_force.body, write_end};
  return {form, {.at = &keys}};
}

call count(const lock_keys& keys, const owner_field&) { return observe(keys); }

answer<unsigned> read_count_of(const redis::outcome& outcome, const owner_field& field) {
  auto leader = read_leader(outcome);
  const bool leads = leader.value && leader.value->field == std::string_view(field.to_text());
  return {std::move(leader.failed), leads ? 1U : 0U};
}

answer<std::optional<holder_answer>> read_holder_of(const redis::outcome& outcome) {
  auto leader = read_leader(outcome);
  if (leader.failed || !leader.value) return {std::move(leader.failed), {}};
  return {std::nullopt, holder_answer{std::move(leader.value->field), 1, leader.value->ttl}};
}

call last_token(const lock_keys& keys) {
  static constexpr recipe form{{}, "GET", [](writer& to, const made_of& operands) {
                                 to.begin(1, 0);
                                 to.add(token_parts(*operands.at));
                               }};
  return {form, {.at = &keys}};
}

constexpr key_layout layout{.channel = "redisson_lock__channel", .token = "redisson_lock_token"};

}  // namespace

call proclaim(const election_keys& keys, const owner_field& field) {
  static constexpr recipe form{lua::proclaim.evalsha, lua::proclaim.body,
                               [](writer& to, const made_of& operands) {
                                 to.begin(1, 4);
                                 to.add(operands.at->lock);
                                 to.add(*operands.field);
                                 to.add(value_of(operands));
                                 to.add(text_of(operands.at->word));
                                 to.add(observers_of(*operands.at));
                               },
                               nullptr, call::effect::writes};
  return {form, {.at = &keys, .field = &field}};
}

answer<release_answer> read_proclaim(const redis::outcome& outcome) { return read_outcome<read_release>(outcome); }

call observe(const lock_keys& keys) {
  static constexpr recipe form{lua::observe.evalsha, lua::observe.body,
                               [](writer& to, const made_of& operands) {
                                 to.begin(2, 0);
                                 to.add(operands.at->lock);
                                 to.add(token_parts(*operands.at));
                               },
                               nullptr, call::effect::asks};
  return {form, {.at = &keys}};
}

answer<std::optional<leader_answer>> read_leader(const redis::outcome& outcome) {
  return read_outcome<detail::read_leader>(outcome);
}

std::string observers_channel(const lock_keys& keys) { return joined(observers_of(keys)); }

}  // namespace election_steps

election_keys::election_keys(const lock_keys& of, std::string text)
    : lock_keys(of.of, of.name,
                {.prefix = of.lock.substr(0, of.lock.size() - of.name.size()),
                 .word = of.word,
                 .in_slots = of.fault == name_fault::splits_slots}),
      value(std::move(text)) {}

constinit const kind election_lock{
    .name = "election",
    .layout = election_steps::layout,
    .nested = kind::nesting::refuses,
    .bars = true,
    .passes = false,
    .joins = {},
    .tokens = 1,
    .voted = false,
    .polls = {},
    .pushed = {.waits = false, .holds = true},
    .looks = {},
    .acquire = {election_steps::campaign, read_outcome<read_acquire_fenced>},
    .acquire_party = {},
    .first_acquire = {},
    .acquire_any = {},
    .acquire_all = {},
    .set_hold_count = {},
    .renew = {script_steps::renew<lua::renew>, script_steps::renew_one<lua::renew>, read_outcome<read_renew>},
    .release = {election_steps::resign, read_outcome<read_release>},
    .queue = {},
    .places = {},
    .force_release = {election_steps::force_release, read_outcome<read_force_release>},
    .set_permits = {},
    .exists = {operands::exists, read_outcome<read_flag>},
    .ttl = {operands::ttl, read_outcome<read_ttl>},
    .holder = {election_steps::observe, election_steps::read_holder_of},
    .count = {election_steps::count, election_steps::read_count_of},
    .last_token = {election_steps::last_token, read_outcome<read_token>},
    .semaphore = {}};

}  // namespace holdfast::detail
