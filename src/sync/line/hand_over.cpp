// SPDX-License-Identifier: BSL-1.0
#include "sync/line/hand_over.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"

namespace holdfast::detail {

bool may_take_over(const terms& asked, const claim_left& left, time_point now, double drift) noexcept {
  const bool ample = left.valid_until - now >= 2 * nanoseconds(asked.ttl) / 3;
  // A grant would give no more. Other clients wait that long for the lock of a killed process.
  const bool short_enough = left.valid_until <= valid_until(now, asked.ttl, drift) && left.may_live <= asked.ttl;
  // Replicas that do not have the grant by now are not waited for: that would need a command.
  const bool fits = ample && short_enough && asked.min_replicas <= left.replicas;
  // A waiter that wants no renewal wants a TTL that begins now. A hand-over sends nothing, so it cannot begin one.
  return fits && asked.renew;
}

void hand_over::share(const environment& env, const kind& of) noexcept {
  HOLDFAST_ASSERT(!state_);
  if (!env.settings.turns) return;
  // Turns are fairness and not safety, so a name without memory for them works on without.
  state_.reset(new (std::nothrow) state(env.alarms, handoff_window(env.now(), of.polls.first, !of.bars)));
}

void hand_over::granted(const claim& by, time_point now, std::size_t waiting) noexcept {
  HOLDFAST_ASSERT(state_);
  serve(by, {now, static_cast<std::uint32_t>(waiting)});
  state_->window.begin(now);
  state_->alarm.stop();
}

void hand_over::serve(const claim& by, const stint& turn) noexcept {
  HOLDFAST_ASSERT(!turn_of(by));
  if (state_) if_memory([&] { state_->turns.emplace_back(&by, turn); });
}

stint* hand_over::turn_of(const claim& by) noexcept {
  if (!state_) return nullptr;
  auto& turns = state_->turns;
  const auto found = std::ranges::find(turns, &by, &std::pair<const claim*, stint>::first);
  return found == turns.end() ? nullptr : &found->second;
}

stint hand_over::end_turn(const claim& by, const stint& unknown) noexcept {
  auto* const found = turn_of(by);
  const auto turn = found ? *found : unknown;
  std::erase_if(state_->turns, [&](const auto& each) { return each.first == &by; });
  return turn;
}

const acquisition* hand_over::successor(const hold& ended, const hold_host::handoff_offer& offer,
                                        const waiting_line* line, time_point now, double drift) noexcept {
  HOLDFAST_ASSERT(ended.ended());
  const auto* const turn = turn_of(*ended.on);
  const bool may_pass = turn && offer.sound && line && state_->window.may_pass(*turn, now);
  const auto* const next = may_pass ? line->successor() : nullptr;
  if (!next) return nullptr;
  const claim_left left{ended.valid_until(), ended.on->may_live(now, drift), offer.replicas};
  const bool passes = ended.keys()->of.passes && next->keys->of.passes;
  const bool fits =
      passes && next->request.amount == ended.field().amount() && may_take_over(next->request.asked, left, now, drift);
  // A block has an end, and a lost counter gives a block of one token. Without a token the next grant must come from
  // Redis.
  return fits && (!next->keys->of.fenced() || ended.next_token().token) ? next : nullptr;
}

void hand_over::passed(const claim& by) noexcept {
  if (auto* const turn = turn_of(by)) ++turn->passed;
}

void hand_over::release_begins(const claim& by, time_point now) noexcept {
  if (state_) state_->window.release_begins(now, end_turn(by, {now}));
}

// Redis counts this client among the notified subscribers only if its line listens. The message must then be recognised
// when it comes. A lingering line stops listening when the cool-down ends, so its message may never come.
void hand_over::release_ends(const clock& time, std::uint64_t subscribers, const waiting_line* line,
                             timer_queue::action ended) noexcept {
  if (!state_) return;
  const auto now = time.now();
  using own_notification = handoff_window::own_notification;
  const bool listens = line && line->rules.listens();
  state_->window.release_ends(now, subscribers,
                              !listens                ? own_notification::none
                              : line->rules.lingers() ? own_notification::fades
                                                      : own_notification::heard);
  cool_down(now, std::move(ended));
}

bool hand_over::hears_itself(const clock& time) noexcept { return state_ && state_->window.hear(time.now()); }

nanoseconds hand_over::found_busy(const clock& time, bool barging, nanoseconds may_last) noexcept {
  return state_ ? state_->window.found_busy(time.now(), barging, may_last) : nanoseconds::max();
}

bool hand_over::cool_down(time_point now, timer_queue::action ended) noexcept {
  HOLDFAST_ASSERT(state_);
  if (cool_down_until() <= now) return false;
  state_->alarm.start(cool_down_until(), std::move(ended));
  return true;
}

}  // namespace holdfast::detail
