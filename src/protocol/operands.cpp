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
  const bool both = std::any_of(holds.begin(), holds.end(), [](const auto& h) { return differ(h.wanted); });
  to.begin(holds.size(), (both ? 3 : 2) * holds.size());
  for (const auto& h : holds) to.add(h.lock);
  for (const auto& h : holds) to.add(h.wanted.ttl);
  for (const auto& h : holds) to.add(h.field);
  if (!both) return;
  for (const auto& h : holds) to.add(h.wanted.if_none);
}

}  // namespace

void key(writer& to, const made_of& o) {
  to.begin(1, 0);
  to.add(o.at->lock);
}

void acquire(writer& to, const made_of& o) {
  to.begin(o.vote ? 2 : 1, o.vote ? 3 : 2);
  to.add(o.at->lock);
  if (o.vote) to.add(vote_marker);
  to.add(o.ttl.ttl);
  to.add(*o.field);
  if (o.vote) to.add(*o.vote);
}

void acquire_any(writer& to, const made_of& o) {
  to.begin(o.several->size(), 2);
  for (const auto& k : *o.several) to.add(k->lock);
  to.add(o.ttl.ttl);
  to.add(*o.field);
}

void acquire_all(writer& to, const made_of& o) {
  to.begin(o.several->size(), 1 + o.several->size());
  for (const auto& k : *o.several) to.add(k->lock);
  to.add(o.ttl.ttl);
  for (const auto& f : o.each_field()) to.add(f);
}

void renewals(writer& to, const made_of& o) { write(to, o.holds); }

void renewal_of_one(writer& to, const made_of& o) {
  const renewal one{o.at->lock, *o.field, o.ttl};
  write(to, {&one, 1});
}

void release(writer& to, const made_of& o) {
  to.begin(1, 3);
  to.add(o.at->lock);
  to.add(text_of(o.at->word));
  to.add(channel_parts(*o.at));
  to.add(*o.field);
}

void force_release(writer& to, const made_of& o) {
  to.begin(1, 2);
  to.add(o.at->lock);
  to.add(text_of(o.at->word));
  to.add(channel_parts(*o.at));
}

call exists(const lock_keys& k) {
  static constexpr call::recipe how{{}, "EXISTS", key, vote_of::flag};
  return {how, {.at = &k}};
}

call ttl(const lock_keys& k) {
  static constexpr call::recipe how{{}, "PTTL", key, vote_of::ttl, call::effect::asks};
  return {how, {.at = &k}};
}

}  // namespace holdfast::detail::operands
