// SPDX-License-Identifier: BSL-1.0
#include "protocol/operands.hpp"

#include <algorithm>
#include <span>

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
  to.begin(1, 2);
  to.add(o.at->lock);
  to.add(o.ttl.ttl);
  to.add(*o.field);
}

void acquire_any(writer& to, const made_of& o) {
  to.begin(o.any->size(), 2);
  for (const auto& k : *o.any) to.add(k->lock);
  to.add(o.ttl.ttl);
  to.add(*o.field);
}

void renewals(writer& to, const made_of& o) { write(to, o.holds); }

void renewal_of_one(writer& to, const made_of& o) {
  const renewal one{o.at->lock, *o.field, o.ttl};
  write(to, {&one, 1});
}

void force_release(writer& to, const made_of& o) {
  to.begin(1, 1);
  to.add(o.at->lock);
  to.add(channel_parts(*o.at));
}

call exists(const lock_keys& k) {
  static constexpr call::recipe how{{}, "EXISTS", key};
  return {how, {.at = &k}};
}

call ttl(const lock_keys& k) {
  static constexpr call::recipe how{{}, "PTTL", key};
  return {how, {.at = &k}};
}

}  // namespace holdfast::detail::operands
