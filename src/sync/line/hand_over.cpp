// SPDX-License-Identifier: BSL-1.0
#include "sync/line/hand_over.hpp"

#include <new>

#include "base/assert.hpp"

namespace holdfast::detail {

bool may_take_over(const terms& asked, const claim_left& left, time_point now, double drift) noexcept {
  const bool ample = left.valid_until - now >= 2 * nanoseconds(asked.ttl) / 3;
  // A grant would give no more: others wait that long for a process that is killed.
  const bool short_enough = left.valid_until <= valid_until(now, asked.ttl, drift) && left.may_live <= asked.ttl;
  const bool fits = ample && short_enough && asked.min_replicas <= left.replicas;
  // A waiter that wants no renewal wants a TTL that begins now.
  return fits && asked.renew;
}

void hand_over::share(const environment& env, const kind& of, const hold* here) noexcept {
  HOLDFAST_ASSERT(!state_);
  if (!env.settings.turns) return;
  const auto now = env.now();
  state_.reset(new (std::nothrow) state(env.alarms, handoff_window(now, of.polls.first)));
  if (state_) state_->window.begin(here ? here->granted_at : now, 0);
}

void hand_over::granted(time_point now, std::size_t waiting) noexcept {
  if (!state_) return;
  state_->window.begin(now, waiting);
  state_->alarm.stop();
}

const acquisition* hand_over::successor(const hold& ended, const hold_host::handoff_offer& offer,
                                        const waiting_line* line, time_point now, double drift) const {
  HOLDFAST_ASSERT(ended.ended());
  const bool may_pass = state_ && offer.sound && line && state_->window.may_pass(now);
  const auto* const next = may_pass ? line->successor() : nullptr;
  if (!next) return nullptr;
  const claim_left left{ended.valid_until(), ended.on->may_live(now, drift), offer.replicas};
  const bool fits = may_take_over(next->request.asked, left, now, drift);
  return fits && (!next->keys->of.fenced() || ended.next_token().token) ? next : nullptr;
}

void hand_over::passed() noexcept {
  HOLDFAST_ASSERT(state_);
  state_->window.passed();
}

void hand_over::release_begins(time_point now) noexcept {
  if (state_) state_->window.release_begins(now);
}

// The message of the own release comes back only to a line that listens. One that lingers stops when the cool-down
// ends.
void hand_over::release_ends(const clock& time, std::uint64_t subscribers, const waiting_line* line,
                             line_host& host) noexcept {
  if (!state_) return;
  const auto now = time.now();
  using own_notification = handoff_window::own_notification;
  const bool listens = line && line->listens();
  state_->window.release_ends(now, subscribers,
                              !listens          ? own_notification::none
                              : line->lingers() ? own_notification::fades
                                                : own_notification::heard);
  cool_down(now, host);
}

bool hand_over::hears_itself(const clock& time) noexcept { return state_ && state_->window.hear(time.now()); }

nanoseconds hand_over::found_busy(const clock& time) noexcept {
  return state_ ? state_->window.found_busy(time.now()) : nanoseconds::max();
}

bool hand_over::cool_down(time_point now, line_host& host) noexcept {
  HOLDFAST_ASSERT(state_);
  if (cool_down_until() <= now) return false;
  state_->alarm.start(cool_down_until(), [&host] { host.cool_down_ends(); });
  return true;
}

}  // namespace holdfast::detail
