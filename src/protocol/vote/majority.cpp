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

const redis::votes& votes_in(const redis::outcome& outcome) {
  HOLDFAST_ASSERT(outcome.of_each);
  return *outcome.of_each;
}

/// The values of the primaries that voted yes.
template <class Read>
auto values(const redis::votes& of, const vote_count& count, Read read) {
  std::vector<decltype(read(redis::reply()).value)> all;
  for (std::size_t n = 0; n < of.outcomes.size(); ++n)
    if ((count.in_favour() & only(n)) != 0) all.push_back(read(of.outcomes[n]->reply).value);
  return all;
}

/// Returns `carried(votes)` if a majority votes yes, and `rejected` if a majority votes no. An outcome without either
/// has an error.
template <class T, class Carried>
answer<T> decided(const redis::outcome& outcome, vote (*count)(const redis::reply&), Carried carried, T rejected) {
  return read_if_memory([&]() -> answer<T> {
    if (outcome.error) return {redis::failure_of(outcome), {}};
    const vote_count votes(votes_in(outcome), count);
    if (votes.carried()) return {std::nullopt, carried(votes)};
    HOLDFAST_ASSERT(votes.rejected());
    return {std::nullopt, std::move(rejected)};
  });
}

answer<bool> flag(const redis::outcome& outcome, vote (*count)(const redis::reply&)) {
  return decided<bool>(
      outcome, count, [](const vote_count&) { return true; }, false);
}

/// The time until a majority may be free, by the TTLs of the primaries that refused. A slow primary may be free
/// already, so it counts as free now.
std::optional<milliseconds> enough_free_in(const redis::votes& of, const vote_count& count) {
  std::vector<milliseconds> ends;
  std::size_t without_ttl = 0;
  for (const auto& outcome : of.outcomes) {
    if (!outcome || outcome->error || vote_of::acquire(outcome->reply) != vote::no) continue;
    const auto reply = read_acquire(outcome->reply);
    if (reply.value.holder_ttl) ends.push_back(*reply.value.holder_ttl);
    if (reply.value.type == acquire_answer::kind::busy_without_ttl) ++without_ttl;
  }
  const auto others = static_cast<std::size_t>(std::popcount(count.may_have_run_at()));
  const auto more = count.needed() > others ? count.needed() - others : 1;
  std::sort(ends.begin(), ends.end());
  if (ends.size() >= more) return ends[more - 1];
  return without_ttl >= count.needed() ? std::nullopt : std::optional(longest_wait);
}

/// The largest value that at least `needed` primaries reach.
template <class T>
T had_by(std::size_t needed, std::vector<T> values) {
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(needed - 1);
  std::nth_element(values.begin(), nth, values.end(), std::greater<>());
  return *nth;
}

answer<acquire_answer> read_votes(const redis::outcome& outcome) {
  using kind = acquire_answer::kind;
  if (outcome.error) return {redis::failure_of(outcome), {}};
  const auto& votes = votes_in(outcome);
  const vote_count count(votes, vote_of::acquire);
  if (count.carried()) return {std::nullopt, {}};
  HOLDFAST_ASSERT(count.answered());
  acquire_answer busy{.type = kind::busy};
  if (count.in_favour() != 0) busy.split = votes.slowest;
  busy.holder_ttl = enough_free_in(votes, count);
  if (!busy.holder_ttl) busy.type = kind::busy_without_ttl;
  return {std::nullopt, busy};
}

}  // namespace

answer<acquire_answer> by_majority::acquire(const redis::outcome& outcome) {
  return read_if_memory([&] { return read_votes(outcome); });
}

answer<bool> by_majority::set_hold_count(const redis::outcome& outcome) { return flag(outcome, vote_of::flag); }

answer<std::vector<renewal_answer>> by_majority::renew(const redis::outcome& outcome, std::size_t sent) {
  if (!outcome.of_each) return read_outcome<read_renew>(outcome, sent);
  HOLDFAST_ASSERT(sent == 1);
  return read_if_memory([&]() -> answer<std::vector<renewal_answer>> {
    auto renewed = flag(outcome, vote_of::sole_renewal);
    if (renewed.failed || renewed.value) return {std::move(renewed.failed), {renewal_answer::confirmed}};
    const auto& outcomes = votes_in(outcome).outcomes;
    // One primary with a shared key is enough to name the cause: an administrator has to look at that key.
    const bool shared = std::any_of(outcomes.begin(), outcomes.end(), [](const auto& one) {
      return one && !one->error && read_renew(one->reply, 1).value == std::vector{renewal_answer::shared};
    });
    return {std::nullopt, {shared ? renewal_answer::shared : renewal_answer::denied}};
  });
}

answer<release_answer> by_majority::release(const redis::outcome& outcome) {
  if (!outcome.of_each) return read_outcome<read_release>(outcome);
  // Each primary notifies its own subscribers, so no common number exists. 0 claims nothing about waiters.
  const auto without_number = [](const vote_count&) { return release_answer(0); };
  return decided(outcome, vote_of::release, without_number, release_answer());
}

answer<unsigned> by_majority::force_release(const redis::outcome& outcome) {
  const auto any = [&](const vote_count& count) {
    const auto broken = values(*outcome.of_each, count, read_force_release);
    return *std::max_element(broken.begin(), broken.end());
  };
  return decided<unsigned>(outcome, vote_of::force_release, any, 0U);
}

answer<bool> by_majority::exists(const redis::outcome& outcome) { return flag(outcome, vote_of::flag); }

answer<std::optional<milliseconds>> by_majority::ttl(const redis::outcome& outcome) {
  return decided<std::optional<milliseconds>>(
      outcome, vote_of::ttl,
      [&](const vote_count& count) { return had_by(count.needed(), values(*outcome.of_each, count, read_ttl)); },
      std::nullopt);
}

// The owner at a majority. An owner at fewer primaries holds nothing. If the missing answers could still give an owner
// a majority, the holder is unknown.
answer<std::optional<holder_answer>> by_majority::holder(const redis::outcome& outcome) {
  if (outcome.error) return {redis::failure_of(outcome), {}};
  const vote_count count(votes_in(outcome), vote_of::something);
  if (!count.carried()) return {std::nullopt, std::nullopt};
  const auto all = values(*outcome.of_each, count, read_holder);
  std::size_t most = 0;
  for (const auto& candidate : all) {
    if (!candidate) continue;
    std::vector<unsigned> counts;
    std::vector<milliseconds> ttls;
    for (const auto& holder : all) {
      if (!holder || holder->field != candidate->field) continue;
      counts.push_back(holder->count);
      ttls.push_back(holder->ttl);
    }
    if (counts.size() >= count.needed())
      return {std::nullopt,
              holder_answer{candidate->field, had_by(count.needed(), counts), had_by(count.needed(), ttls)}};
    most = std::max(most, counts.size());
  }
  if (most + count.silent() < count.needed()) return {std::nullopt, std::nullopt};
  return {failure{errc::quorum_failed, "those that have answered do not agree who holds it"}, {}};
}

answer<unsigned> by_majority::hash_count(const redis::outcome& outcome, const owner_field&) {
  return decided<unsigned>(
      outcome, vote_of::something,
      [&](const vote_count& count) { return had_by(count.needed(), values(*outcome.of_each, count, read_count)); }, 0U);
}

answer<unsigned> by_majority::simple_count(const redis::outcome& outcome, const owner_field& field) {
  const auto found = holder(outcome);
  const bool matches = found.value && found.value->field == std::string_view(field.to_text());
  return {found.failed, matches ? 1U : 0U};
}

}  // namespace holdfast::detail
