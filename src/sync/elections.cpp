// SPDX-License-Identifier: BSL-1.0
#include "sync/elections.hpp"

#include <utility>

#include "sync/name.hpp"
#include "sync/proclamation.hpp"

namespace holdfast::detail {
namespace {

/// Redis counts whole milliseconds, and may keep the key until the next one.
constexpr milliseconds after_ttl{1};

/// The state of an election as one observer sees it.
struct observed {
  const std::optional<leader_answer> before;
  std::optional<leader_answer> leader{};
};

// The end of a TTL has no message. So the observer looks again when the TTL that it has read is over.
sight look_at(observed& seen, const environment& env, const outcome& outcome) {
  auto answer = election_steps::read_leader(outcome);
  if (answer.failed) return {.failed = std::move(answer.failed)};
  seen.leader = std::move(answer.value);
  sight sight{.is_so = is_news(seen.before, seen.leader)};
  if (seen.leader) sight.look_again_by = saturating_add(saturating_add(env.now(), seen.leader->ttl), after_ttl);
  return sight;
}

}  // namespace

bool is_news(const std::optional<leader_answer>& before, const std::optional<leader_answer>& now) noexcept {
  if (!before || !now) return before.has_value() != now.has_value();
  if (now->term != before->term) return now->term > before->term;
  // Of a holder that is no candidate the observer knows the term alone.
  return now->value != before->value || (now->value && now->field != before->field);
}

cancellable_ptr elections::next(const shared_keys& keys, std::optional<leader_answer> after, leader_handler done) {
  if (parts_.closed() || draining_) {
    done({failure{errc::shutting_down, draining_ ? nobody_waits : ""}, {}});
    return nullptr;
  }
  const auto seen = std::make_shared<observed>(observed{std::move(after)});
  auto read = [seen, &env = parts_.env](const outcome& outcome) { return look_at(*seen, env, outcome); };
  auto answered = [seen, done = std::move(done)](answer<bool>&& changed) {
    done({std::move(changed.failed), std::move(seen->leader)});
  };
  return observers_.begin(parts_.env,
                          {keys, election_steps::observers_channel(*keys), election_steps::observe, std::move(read)},
                          time_point::max(), std::move(answered));
}

cancellable_ptr elections::proclaim(const std::shared_ptr<lease_record>& leadership,
                                    std::shared_ptr<const election_keys> keys, done_handler done) {
  std::optional<failure> refused;
  // The order is that of engine::renew().
  if (leadership->released.load(std::memory_order_acquire))
    refused = failure{errc::not_held, {}};
  else if (parts_.closed())
    refused = failure{errc::closed, {}};
  else if (!keys || name::key::of(*leadership->of->keys()) != name::key::of(*keys))
    refused = failure{errc::not_held, "the lease is not of this election"};
  if (refused) {
    done(refused);
    return nullptr;
  }
  const auto caller = std::make_shared<proclamation>(parts_, leadership, std::move(keys), std::move(done));
  caller->begin();
  return caller;
}

void elections::drain() {
  draining_ = true;
  observers_.fail_all(errc::shutting_down, nobody_waits);
}

void elections::close() { observers_.fail_all(errc::shutting_down, ""); }

}  // namespace holdfast::detail
