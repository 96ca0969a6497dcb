// SPDX-License-Identifier: BSL-1.0
// The kinds whose lock is Redisson's: a hash with one field, the owner's, whose value is the hold count. Everything but
// the texts of the scripts is the same byte for byte.
//
// Decision: a script passes a number on as the text that it got. Redis makes text of each number in a script, and a
// call of Lua's library costs as much as a field of a hash. So a TTL is checked, and its text is passed on. A text that
// only Lua takes for a number (`1e3`) passes the check, and PEXPIRE refuses it. The acquire then undoes its first
// write, as for a user without PEXPIRE.
#include <cstdint>
#include <span>
#include <vector>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "protocol/kind.hpp"
#include "protocol/operands.hpp"
#include "protocol/script_steps.hpp"
#include "protocol/vote/majority.hpp"
#include "protocol/vote_of.hpp"

namespace holdfast::detail {
namespace hash_lock_steps {
namespace {

using operands::made_of;
using operands::writer;
using recipe = call::recipe;

constexpr milliseconds none{};

call acquire_fenced(const lock_keys& keys, milliseconds ttl, const owner_field& field) {
  static constexpr recipe form{lua::acquire_fenced.evalsha, lua::acquire_fenced.body,
                               [](writer& to, const made_of& operands) {
                                 const auto block = operands.at->of.tokens;
                                 const bool ends = operands.token_ttl != none;
                                 to.begin(2, ends ? 4 : block > 1 ? 3 : 2);
                                 to.add(operands.at->lock);
                                 to.add(token_parts(*operands.at));
                                 to.add(operands.ttl.ttl);
                                 to.add(*operands.field);
                                 if (ends || block > 1) to.add(block);
                                 if (ends) to.add(operands.token_ttl);
                               },
                               nullptr, call::effect::takes};
  return {form, {.at = &keys, .field = &field, .ttl = {ttl}}};
}

call acquire_any_fenced(const std::vector<shared_keys>& of, milliseconds ttl, const owner_field& field) {
  static constexpr recipe form{lua::acquire_any_fenced.evalsha, lua::acquire_any_fenced.body,
                               [](writer& to, const made_of& operands) {
                                 to.begin(2 * operands.several->size(), operands.token_ttl != none ? 3 : 2);
                                 for (const auto& keys : *operands.several) to.add(keys->lock);
                                 for (const auto& keys : *operands.several) to.add(token_parts(*keys));
                                 to.add(operands.ttl.ttl);
                                 to.add(*operands.field);
                                 if (operands.token_ttl != none) to.add(operands.token_ttl);
                               }};
  return {form, {.field = &field, .ttl = {ttl}, .several = &of}};
}

call acquire_all_fenced(const std::vector<shared_keys>& of, milliseconds ttl, std::span<const owner_field> fields) {
  static constexpr recipe form{
      lua::acquire_all_fenced.evalsha, lua::acquire_all_fenced.body, [](writer& to, const made_of& operands) {
        to.begin(2 * operands.several->size(), 1 + operands.several->size() + (operands.token_ttl != none ? 1 : 0));
        for (const auto& keys : *operands.several) to.add(keys->lock);
        for (const auto& keys : *operands.several) to.add(token_parts(*keys));
        to.add(operands.ttl.ttl);
        for (const auto& field : operands.each_field()) to.add(field);
        if (operands.token_ttl != none) to.add(operands.token_ttl);
      }};
  return {form, {.field = fields.data(), .ttl = {ttl}, .several = &of}};
}

call last_token(const lock_keys& keys) {
  static constexpr recipe form{{}, "GET", [](writer& to, const made_of& operands) {
                                 to.begin(1, 0);
                                 to.add(token_parts(*operands.at));
                               }};
  return {form, {.at = &keys}};
}

answer<unsigned> read_count_of(const redis::outcome& outcome, const owner_field&) {
  return read_outcome<read_count>(outcome);
}

constexpr key_layout layout{.channel = "redisson_lock__channel", .token = "redisson_lock_token"};

constexpr kind hash_lock(std::int64_t tokens) {
  const bool fenced = tokens > 0;
  return {.name = fenced ? "fenced_mutex" : "mutex",
          .layout = layout,
          .nested = kind::nesting::enters,
          .bars = true,
          .passes = true,
          .joins = {},
          .tokens = tokens,
          .voted = false,
          .polls = {},
          .pushed = {.waits = false, .holds = true},
          .looks = {},
          .acquire = fenced ? decltype(kind::acquire){acquire_fenced, read_outcome<read_acquire_fenced>}
                            : decltype(kind::acquire){script_steps::acquire<lua::acquire>, read_outcome<read_acquire>},
          .acquire_party = {},
          .first_acquire = {},
          .acquire_any = fenced ? decltype(kind::acquire_any){acquire_any_fenced, read_outcome<read_acquire_any_fenced>}
                                : decltype(kind::acquire_any){script_steps::acquire_any<lua::acquire_any>,
                                                              read_outcome<read_acquire_any>},
          .acquire_all = fenced ? decltype(kind::acquire_all){acquire_all_fenced, read_outcome<read_acquire_all_fenced>}
                                : decltype(kind::acquire_all){script_steps::acquire_all<lua::acquire_all>,
                                                              read_outcome<read_acquire_all>},
          .set_hold_count = {script_steps::set_hold_count<lua::set_hold_count>, read_outcome<read_flag>},
          .renew = {script_steps::renew<lua::renew>, script_steps::renew_one<lua::renew>, read_outcome<read_renew>},
          .release = {script_steps::release<lua::release>, read_outcome<read_release>},
          .queue = {},
          .places = {},
          .force_release = {script_steps::force_release<lua::force_release>, read_outcome<read_force_release>},
          .set_permits = {},
          .exists = {operands::exists, read_outcome<read_flag>},
          .ttl = {operands::ttl, read_outcome<read_ttl>},
          .holder = {script_steps::holder<lua::holder>, read_outcome<read_holder>},
          .count = {operands::count, read_count_of},
          .last_token = {last_token, read_outcome<read_token>},
          .semaphore = {}};
}

}  // namespace
}  // namespace hash_lock_steps

constinit const kind plain_lock = hash_lock_steps::hash_lock(0);
constinit const kind fenced_lock = hash_lock_steps::hash_lock(1);
constinit const kind fenced_lock_in_turns = hash_lock_steps::hash_lock(1'000);
constinit const kind red_plain_lock = voted(hash_lock_steps::hash_lock(0), by_majority::hash_count);

}  // namespace holdfast::detail
