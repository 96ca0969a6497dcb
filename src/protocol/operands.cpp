// SPDX-License-Identifier: BSL-1.0
#include "protocol/operands.hpp"

#include <algorithm>
#include <span>

#include "protocol/derived_keys.hpp"
#include "protocol/keys.hpp"
#include "protocol/vote_of.hpp"

namespace holdfast::detail::operands {
namespace {

void write(writer& to, std::span<const renewal> holds) {
  // The third list is sent only if a hold needs it: usually the two TTLs are equal.
  const bool both = std::any_of(holds.begin(), holds.end(), [](const auto& held) { return differ(held.wanted); });
  to.begin(holds.size(), (both ? 3 : 2) * holds.size());
  for (const auto& held : holds) to.add(held.at->lock);
  for (const auto& held : holds) to.add(held.wanted.ttl);
  for (const auto& held : holds) to.add(held.field);
  if (!both) return;
  for (const auto& held : holds) to.add(held.wanted.if_none);
}

void keys_of_holds(writer& to, const made_of& operands) {
  to.begin(operands.holds.size(), 0);
  for (const auto& held : operands.holds) to.add(held.at->lock);
}

}  // namespace

void key(writer& to, const made_of& operands) {
  to.begin(1, 0);
  to.add(operands.at->lock);
}

void acquire(writer& to, const made_of& operands) {
  to.begin(operands.vote ? 2 : 1, operands.vote ? 3 : 2);
  to.add(operands.at->lock);
  if (operands.vote) to.add(vote_marker);
  to.add(operands.ttl.ttl);
  to.add(*operands.field);
  if (operands.vote) to.add(*operands.vote);
}

void acquire_any(writer& to, const made_of& operands) {
  to.begin(operands.several->size(), 2);
  for (const auto& keys : *operands.several) to.add(keys->lock);
  to.add(operands.ttl.ttl);
  to.add(*operands.field);
}

void acquire_all(writer& to, const made_of& operands) {
  to.begin(operands.several->size(), 1 + operands.several->size());
  for (const auto& keys : *operands.several) to.add(keys->lock);
  to.add(operands.ttl.ttl);
  for (const auto& field : operands.each_field()) to.add(field);
}

void renewals(writer& to, const made_of& operands) { write(to, operands.holds); }

void renewal_of_one(writer& to, const made_of& operands) {
  const renewal one{operands.at, *operands.field, operands.ttl};
  write(to, {&one, 1});
}

// Decision: a release is a command of one key, so the channel is an argument and not a key, unlike Redisson's. With two
// keys every release got TRYAGAIN while its slot moved: p99.9 of a lock was 230 ms instead of 15 ms.
void release(writer& to, const made_of& operands) {
  to.begin(1, 3);
  to.add(operands.at->lock);
  to.add(text_of(operands.at->word));
  to.add(channel_parts(*operands.at));
  to.add(*operands.field);
}

void force_release(writer& to, const made_of& operands) {
  to.begin(1, 2);
  to.add(operands.at->lock);
  to.add(text_of(operands.at->word));
  to.add(channel_parts(*operands.at));
}

void set_hold_count(writer& to, const made_of& operands) {
  to.begin(1, differ(operands.ttl) ? 4 : 3);
  to.add(operands.at->lock);
  to.add(operands.ttl.ttl);
  to.add(*operands.field);
  to.add(std::int64_t{operands.count});
  if (differ(operands.ttl)) to.add(operands.ttl.if_none);
}

call exists(const lock_keys& keys) {
  static constexpr call::recipe form{{}, "EXISTS", key, vote_of::flag};
  return {form, {.at = &keys}};
}

call count_keys(std::span<const renewal> holds) {
  static constexpr call::recipe form{{}, "EXISTS", keys_of_holds};
  return {form, {.holds = holds}};
}

call ttl(const lock_keys& keys) {
  static constexpr call::recipe form{{}, "PTTL", key, vote_of::ttl, call::effect::asks};
  return {form, {.at = &keys}};
}

call count(const lock_keys& keys, const owner_field& field) {
  static constexpr call::recipe form{{},
                                     "HGET",
                                     [](writer& to, const made_of& operands) {
                                       to.begin(1, 1);
                                       to.add(operands.at->lock);
                                       to.add(*operands.field);
                                     },
                                     vote_of::something,
                                     call::effect::asks};
  return {form, {.at = &keys, .field = &field}};
}

}  // namespace holdfast::detail::operands
