// SPDX-License-Identifier: BSL-1.0
#include "sync/line/discipline.hpp"

#include "protocol/derived_keys.hpp"

namespace holdfast::detail {
namespace {

/// A script has an argument for each permit.
constexpr std::size_t most_in_party = 100;

class first_asks_alone final : public discipline {
 public:
  bool asks(std::size_t place) const noexcept override { return place == 0; }
  std::size_t served_at_once(std::size_t) const noexcept override { return 1; }
  std::string channel(const lock_keys& keys) const override { return channel_of(keys); }
  // A grant for replicas waits for them alone. A party is granted from its first waiter on, so the unanswered fields
  // that have permits are the foremost. The answer to a new field before them would not show these permits.
  bool goes_along(const lock_request& first, const attempts& tries_of_first, const lock_request& next,
                  const attempts& tries_of_next, std::size_t amount) const noexcept override {
    const bool same =
        next.asked.ttl == first.asked.ttl && first.asked.min_replicas == 0 && next.asked.min_replicas == 0;
    const bool shown = tries_of_next.unanswered == 0 || tries_of_first.unanswered > 0;
    return same && !next.whole && shown && !tries_of_next.stands && amount + next.amount <= most_in_party;
  }
  call attempt_of(const lock_keys& keys, const lock_request& request, const attempts& tries,
                  std::span<const owner_field> party) const override {
    if (keys.of.acquire_party.make) return keys.of.acquire_party.make(keys, request.asked.ttl, party, tries.stands);
    if (keys.of.queue) return keys.of.queue.acquire(keys, request.asked.ttl, party.front(), tries.place);
    return step_of(keys.of, tries).make(keys, request.asked.ttl, party.front());
  }
  answer<acquire_answer> read(const kind& row, const attempts& tries, const redis::outcome& outcome,
                              std::size_t party) const override {
    return row.acquire_party.read ? row.acquire_party.read(outcome, party) : step_of(row, tries).read(outcome);
  }
  bool refuses_first_try(const attempts& tries, const redis::outcome& outcome) const noexcept override {
    return tries.first_try && !outcome.error && outcome.reply.is_error();
  }
  // A grant that waits for replicas is unanswered as well. The release of a field opens its door, too.
  primary_set may_have_granted(const attempts& tries) const noexcept override {
    return tries.unanswered > 0 || tries.stands ? everywhere : nowhere;
  }

 private:
  static const decltype(kind::acquire)& step_of(const kind& row, const attempts& tries) noexcept {
    return tries.first_try ? row.first_acquire : row.acquire;
  }
};

constexpr first_asks_alone the_first_asks;

}  // namespace

const discipline& first_asks() noexcept { return the_first_asks; }

}  // namespace holdfast::detail
