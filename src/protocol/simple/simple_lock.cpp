// SPDX-License-Identifier: BSL-1.0
// The kind whose lock is a string: SET NX PX, and compare before delete, as in the pattern that Redis describes.
//
// Decision: a waiter's first attempt is SET NX PX, later ones are the script. SET costs the server half of the script,
// and is all that an uncontended lock() needs. It returns no TTL of a busy lock, and does not recognise its own value,
// so it is sent with a new field only. A try_lock() sends the script at once: its only answer should tell a broken key
// from a taken one. GET beside NX would return the value, but needs Redis 7. Its second copy would not raise the TTL,
// so the validity would count from the first.

#include "lua_scripts.hpp"
#include "protocol/kind.hpp"
#include "protocol/operands.hpp"
#include "protocol/script_steps.hpp"
#include "protocol/vote/majority.hpp"

namespace holdfast::detail {
namespace simple_lock_steps {
namespace {

using operands::made_of;
using operands::writer;
using recipe = call::recipe;

call set(const lock_keys& keys, milliseconds ttl, const owner_field& field) {
  static constexpr recipe form{{},
                               "SET",
                               [](writer& to, const made_of& operands) {
                                 to.begin(1, 4);
                                 to.add(operands.at->lock);
                                 to.add(*operands.field);
                                 to.add("NX");
                                 to.add("PX");
                                 to.add(operands.ttl.ttl);
                               },
                               nullptr,
                               call::effect::writes};
  return {form, {.at = &keys, .field = &field, .ttl = {ttl}}};
}

call count(const lock_keys& keys, const owner_field&) { return script_steps::holder<lua::simple_holder>(keys); }

answer<unsigned> read_count_of(const redis::outcome& outcome, const owner_field& field) {
  auto answer = read_outcome<read_holder>(outcome);
  const bool matches = answer.value && answer.value->field == std::string_view(field.to_text());
  return {std::move(answer.failed), matches ? 1U : 0U};
}

constexpr key_layout layout{.channel = "holdfast_simple", .token = {}};

constexpr kind row{
    .name = "simple_mutex",
    .layout = layout,
    .nested = kind::nesting::refuses,
    .bars = true,
    .passes = true,
    .joins = {},
    .tokens = 0,
    .voted = false,
    .polls = {.first = milliseconds(20), .longest = milliseconds(250)},
    .pushed = {.waits = true, .holds = true},
    .looks = {},
    .acquire = {script_steps::acquire<lua::simple_acquire>, read_outcome<read_acquire>},
    .acquire_party = {},
    .first_acquire = {set, read_outcome<read_set>},
    .acquire_any = {script_steps::acquire_any<lua::simple_acquire_any>, read_outcome<read_acquire_any>},
    .acquire_all = {script_steps::acquire_all<lua::simple_acquire_all>, read_outcome<read_acquire_all>},
    .set_hold_count = {},
    .renew = {script_steps::renew<lua::simple_renew>, script_steps::renew_one<lua::simple_renew>,
              read_outcome<read_renew>},
    .release = {script_steps::release<lua::simple_release>, read_outcome<read_release>},
    .queue = {},
    .places = {},
    .force_release = {script_steps::force_release<lua::simple_force_release>, read_outcome<read_force_release>},
    .set_permits = {},
    .exists = {operands::exists, read_outcome<read_flag>},
    .ttl = {operands::ttl, read_outcome<read_ttl>},
    .holder = {script_steps::holder<lua::simple_holder>, read_outcome<read_holder>},
    .count = {count, read_count_of},
    .last_token = {},
    .semaphore = {}};

}  // namespace
}  // namespace simple_lock_steps

constinit const kind simple_lock = simple_lock_steps::row;
constinit const kind red_simple_lock = voted(simple_lock_steps::row, by_majority::simple_count);

}  // namespace holdfast::detail
