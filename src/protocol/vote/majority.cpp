// SPDX-License-Identifier: BSL-1.0
#include "protocol/vote/majority.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "protocol/vote/vote_count.hpp"
#include "protocol/vote_of.hpp"

namespace holdfast::detail {
namespace {

/// No lock's TTL is longer.
constexpr milliseconds longest_wait = std::chrono::hours(24);

const redis::votes& votes_in(const redis::outcome& o) {
  HOLDFAST_ASSERT(o.of_each);
  return *o.of_each;
}

/// The values of those that have said yes.
template <class Read>
auto values(const redis::votes& of, const vote_count& t, Read read) {
  std::vector<decltype(read(redis::reply()).value)> all;
  for (std::size_t n = 0; n < of.said.size(); ++n)
    if ((t.who_said_yes() & only(n)) != 0) all.push_back(read(of.said[n]->reply).value);
  return all;
}

/// `carried(t)` where a majority says yes, `rejected` where one says no. An outcome without either has an error.
template <class T, class Carried>
answer<T> decided(const redis::outcome& o, vote (*count)(const redis::reply&), Carried carried, T rejected) {
  return read_if_memory([&]() -> answer<T> {
    if (o.error) return {redis::failure_of(o), {}};
    const vote_count t(votes_in(o), count);
    if (t.carried()) return {std::nullopt, carried(t)};
    HOLDFAST_ASSERT(t.rejected());
    return {std::nullopt, std::move(rejected)};
  });
}

answer<bool> flag(const redis::outcome& o, vote (*count)(const redis::reply&)) {
  return decided<bool>(
      o, count, [](const vote_count&) { return true; }, false);
}

/// When a majority may be free, by what those that refused say. Those that were asked and are slow may be free already.
std::optional<milliseconds> enough_free_in(const redis::votes& of, const vote_count& t) {
  std::vector<milliseconds> ends;
  std::size_t for_ever = 0;
  for (const auto& o : of.said) {
    if (!o || o->error || vote_of::acquire(o->reply) != vote::no) continue;
    const auto said = read_acquire(o->reply);
    if (said.value.holder_ttl) ends.push_back(*said.value.holder_ttl);
    if (said.value.what == acquire_answer::kind::busy_without_ttl) ++for_ever;
  }
  const auto others = static_cast<std::size_t>(std::popcount(t.where_it_may_have_run()));
  const auto more = t.needed() > others ? t.needed() - others : 1;
  std::sort(ends.begin(), ends.end());
  if (ends.size() >= more) return ends[more - 1];
  return for_ever >= t.needed() ? std::nullopt : std::optional(longest_wait);
}

/// What so many of them have at least.
template <class T>
T had_by(std::size_t needed, std::vector<T> values) {
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(needed - 1);
  std::nth_element(values.begin(), nth, values.end(), std::greater<>());
  return *nth;
}

answer<acquire_answer> read_votes(const redis::outcome& o) {
  using kind = acquire_answer::kind;
  if (o.error) return {redis::failure_of(o), {}};
  const auto& of = votes_in(o);
  const vote_count t(of, vote_of::acquire);
  if (t.carried()) return {std::nullopt, {}};
  HOLDFAST_ASSERT(t.answered());
  acquire_answer busy{.what = kind::busy};
  if (t.who_said_yes() != 0) busy.split = of.slowest;
  busy.holder_ttl = enough_free_in(of, t);
  if (!busy.holder_ttl) busy.what = kind::busy_without_ttl;
  return {std::nullopt, busy};
}

}  // namespace

answer<acquire_answer> by_majority::acquire(const redis::outcome& o) {
  return read_if_memory([&] { return read_votes(o); });
}

answer<bool> by_majority::set_hold_count(const redis::outcome& o) { return flag(o, vote_of::flag); }

answer<std::vector<renewal_answer>> by_majority::renew(const redis::outcome& o, std::size_t sent) {
  if (!o.of_each) return read_outcome<read_renew>(o, sent);
  HOLDFAST_ASSERT(sent == 1);
  return read_if_memory([&]() -> answer<std::vector<renewal_answer>> {
    auto said = flag(o, vote_of::sole_renewal);
    if (said.failed || said.value) return {std::move(said.failed), {renewal_answer::confirmed}};
    const auto& each = votes_in(o).said;
    const bool shared = std::any_of(each.begin(), each.end(), [](const auto& one) {
      return one && !one->error && read_renew(one->reply, 1).value == std::vector{renewal_answer::shared};
    });
    return {std::nullopt, {shared ? renewal_answer::shared : renewal_answer::denied}};
  });
}

answer<release_answer> by_majority::release(const redis::outcome& o) {
  if (!o.of_each) return read_outcome<read_release>(o);
  const auto nobody_told = [](const vote_count&) { return release_answer(0); };
  return decided(o, vote_of::release, nobody_told, release_answer());
}

answer<bool> by_majority::force_release(const redis::outcome& o) {
  const auto any = [&](const vote_count& t) {
    const auto said = values(*o.of_each, t, read_force_release);
    return std::find(said.begin(), said.end(), true) != said.end();
  };
  return decided<bool>(o, vote_of::force_release, any, false);
}

answer<bool> by_majority::exists(const redis::outcome& o) { return flag(o, vote_of::flag); }

answer<std::optional<milliseconds>> by_majority::ttl(const redis::outcome& o) {
  return decided<std::optional<milliseconds>>(
      o, vote_of::ttl, [&](const vote_count& t) { return had_by(t.needed(), values(*o.of_each, t, read_ttl)); },
      std::nullopt);
}

// The owner that a majority has; what fewer have counts for nothing. Where an owner might have a majority together with
// the primaries that have not answered, nobody knows.
answer<std::optional<holder_answer>> by_majority::holder(const redis::outcome& o) {
  if (o.error) return {redis::failure_of(o), {}};
  const vote_count t(votes_in(o), vote_of::something);
  if (!t.carried()) return {std::nullopt, std::nullopt};
  const auto all = values(*o.of_each, t, read_holder);
  std::size_t most = 0;
  for (const auto& candidate : all) {
    if (!candidate) continue;
    std::vector<unsigned> counts;
    std::vector<milliseconds> ttls;
    for (const auto& its : all) {
      if (!its || its->field != candidate->field) continue;
      counts.push_back(its->count);
      ttls.push_back(its->ttl);
    }
    if (counts.size() >= t.needed())
      return {std::nullopt, holder_answer{candidate->field, had_by(t.needed(), counts), had_by(t.needed(), ttls)}};
    most = std::max(most, counts.size());
  }
  if (most + t.silent() < t.needed()) return {std::nullopt, std::nullopt};
  return {failure{errc::quorum_failed, "those that have answered do not agree who holds it"}, {}};
}

answer<unsigned> by_majority::hash_count(const redis::outcome& o, const owner_field&) {
  return decided<unsigned>(
      o, vote_of::something, [&](const vote_count& t) { return had_by(t.needed(), values(*o.of_each, t, read_count)); },
      0U);
}

answer<unsigned> by_majority::simple_count(const redis::outcome& o, const owner_field& field) {
  const auto said = holder(o);
  const bool its = said.value && said.value->field == std::string_view(field.to_text());
  return {said.failed, its ? 1U : 0U};
}

}  // namespace holdfast::detail
