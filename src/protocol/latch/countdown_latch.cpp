// SPDX-License-Identifier: BSL-1.0
// A latch of Redisson's RCountDownLatch, as a kind of lock. Redis has one string: the count. The latch is open if there
// is none.
//
// Decision: a call that changes the count leaves a mark for a minute, under a field of its own. A second copy finds it,
// and changes nothing. A number for each client would need fewer keys, but one call after the other.
//
// Decision: a mark lives twice as long as its call is repeated. Each copy makes it live that long again. So a copy
// would be unknown only if it ran more than a minute after the copy before.
//
// Decision: a count has no TTL, as Redisson's. Its end would look like an open latch.
#include "protocol/latch/countdown_latch.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "protocol/operands.hpp"

namespace holdfast::detail {
namespace latch_steps {
namespace {

using made_of = call::operands;
using recipe = call::recipe;
using writer = call::writer;

constexpr key_layout layout{.channel = "redisson_countdownlatch__channel__", .token = {}, .always_in_braces = true};

void add_mark(writer& to, const lock_keys& at, const owner_field& field) {
  const auto stem = beside("holdfast_done", at.lock);
  const auto text = field.to_text();
  const std::array<std::string_view, 6> parts{stem[0], stem[1], stem[2], stem[3], ":", text};
  to.add(parts);
}

/// (latch, mark; count, mark_ttl, word, channel)
void write_change(writer& to, const made_of& operands) {
  const auto& change = static_cast<const latch_call_keys&>(*operands.at);
  to.begin(2, 4);
  to.add(change.lock);
  add_mark(to, change, *operands.field);
  to.add(std::int64_t{change.count});
  to.add(change.mark_ttl);
  to.add(text_of(change.word));
  to.add(channel_parts(change));
}

call count_down(const lock_keys& keys, const owner_field& field) {
  static constexpr recipe form{lua::count_down.evalsha, lua::count_down.body, write_change, nullptr,
                               call::effect::writes};
  return {form, {.at = &keys, .field = &field}};
}

}  // namespace

call try_set(const latch_call_keys& keys) {
  static constexpr recipe form{lua::latch_set.evalsha, lua::latch_set.body, write_change};
  return {form, {.at = &keys, .field = &keys.field}};
}

answer<bool> read_set(const redis::outcome& outcome) { return read_outcome<read_latch_set>(outcome); }

call count(const lock_keys& keys) {
  static constexpr recipe form{"", "GET", operands::key, nullptr, call::effect::asks};
  return {form, {.at = &keys}};
}

answer<std::uint32_t> read_count(const redis::outcome& outcome) { return read_outcome<read_latch_count>(outcome); }

}  // namespace latch_steps

shared_keys latch_keys(std::string_view name, naming by) {
  by.bare = true;
  return std::make_shared<const lock_keys>(countdown_latch, name, by);
}

latch_call_keys::latch_call_keys(const lock_keys& latch, std::uint32_t number, milliseconds ttl,
                                 const owner_field& of_mark)
    : lock_keys(latch.of, latch.name,
                {.prefix = latch.lock.substr(0, latch.lock.size() - latch.name.size()), .word = latch.word}),
      count(number), mark_ttl(ttl), field(of_mark) {}

constinit const kind countdown_latch{.name = "latch",
                                     .layout = latch_steps::layout,
                                     .nested = kind::nesting::anew,
                                     .bars = false,
                                     .passes = false,
                                     .joins = {},
                                     .tokens = 0,
                                     .voted = false,
                                     .polls = {},
                                     .pushed = {},
                                     .looks = {},
                                     .acquire = {},
                                     .acquire_party = {},
                                     .first_acquire = {},
                                     .acquire_any = {},
                                     .acquire_all = {},
                                     .set_hold_count = {},
                                     .renew = {},
                                     .release = {latch_steps::count_down, read_outcome<read_count_down>},
                                     .queue = {},
                                     .places = {},
                                     .force_release = {},
                                     .set_permits = {},
                                     .exists = {},
                                     .ttl = {},
                                     .holder = {},
                                     .count = {},
                                     .last_token = {},
                                     .semaphore = {}};

}  // namespace holdfast::detail
