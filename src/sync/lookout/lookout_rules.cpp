// SPDX-License-Identifier: BSL-1.0
#include "sync/lookout/lookout_rules.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace holdfast::detail {
namespace {

/// Without a subscription nothing but the next look shows that Redis is back.
constexpr std::chrono::milliseconds first_look_pause{50}, longest_look_pause{1'000};

/// The same question may be answered later.
bool mends_itself(const redis::failure& why) noexcept {
  return why.mends_itself() || why.code == errc::unconfirmed || why.code == errc::overloaded;
}

}  // namespace

lookout_rules::lookout_rules(const config& settings, random_source& random, time_point deadline) noexcept
    : settings_(settings), random_(random), deadline_(deadline),
      backoff_(first_look_pause, std::min(longest_look_pause, settings.poll_cap)) {}

lookout_action lookout_rules::begin() { return look(); }

lookout_action lookout_rules::news() {
  again_ = looking_;
  return looking_ ? lookout_action() : look();
}

lookout_action lookout_rules::unsubscribed(const redis::failure& why) {
  listens_ = false;
  last_failure_ = redis::failure_with(why.code, why.detail);
  return {.then = act::answer, .failed = &*last_failure_};
}

lookout_action lookout_rules::answered(const sight& seen, time_point now) {
  HOLDFAST_ASSERT(looking_);
  looking_ = false;
  if (seen.failed) return fail(*seen.failed, now);
  if (seen.is_so) return {.then = act::answer, .is_so = true};
  saw_ = true;
  last_failure_.reset();
  backoff_.reset();
  // A change before the acknowledgement of the subscription has no message here. So the acknowledgement is news.
  listens_ = true;
  if (again_) return look();
  // Many clients must not poll together.
  const lease_clock::duration cap = settings_.poll_cap;
  return park(std::min(now + cap - random_.up_to(cap / 10), seen.look_again_by));
}

lookout_action lookout_rules::alarm(time_point now) {
  if (now >= deadline_) return time_out();
  return looking_ ? lookout_action() : look();
}

lookout_action lookout_rules::look() noexcept {
  looking_ = true;
  again_ = false;
  return {.then = act::look, .until = deadline_};
}

lookout_action lookout_rules::park(time_point until) const noexcept {
  return {.then = act::park, .until = std::min(until, deadline_)};
}

lookout_action lookout_rules::fail(const redis::failure& why, time_point now) {
  last_failure_ = redis::failure_with(why.code, why.detail);
  if (!mends_itself(why)) return {.then = act::answer, .failed = &*last_failure_};
  return park(now + backoff_.next(random_));
}

lookout_action lookout_rules::time_out() const noexcept {
  if (saw_) return {.then = act::answer};
  if (last_failure_ && last_failure_->code != errc::unreachable && last_failure_->code != errc::unconfirmed)
    return {.then = act::answer, .failed = &*last_failure_};
  return {.then = act::silent};
}

}  // namespace holdfast::detail
