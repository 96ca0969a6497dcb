// SPDX-License-Identifier: BSL-1.0
#include "sync/line/wait_notices.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "sync/command/environment.hpp"

namespace holdfast::detail {
namespace {

constexpr nanoseconds long_wait = std::chrono::seconds(5);

constexpr auto* silenced_by = " Said once: an observer (config::observer) hears each, config::quiet = true hears none.";

}  // namespace

wait_notices::wait_notices(const environment& env, sink say, holder_test held_since)
    : env_(env), say_(std::move(say)), held_since_(std::move(held_since)), look_(env.alarms) {}

wait_notices::~wait_notices() {
  while (!waits_.empty()) ends(waits_.front());
}

void wait_notices::waits_for_redis(noticed_wait& wait, const shared_keys& keys, time_point since) {
  if (wait.listed_ || printed_unreachable_) return;
  auto& servers = env_.servers;
  // Most calls find a healthy server. They must cost neither memory nor a timer.
  if (servers.answered_since(keys->lock, {}) && !servers.in_outage(keys->lock)) return;
  add(wait, cause::unreachable, keys, since);
}

void wait_notices::lost_redis(noticed_wait& wait, const shared_keys& keys) {
  if (!wait.listed_ && !printed_unreachable_) add(wait, cause::unreachable, keys, env_.now());
}

void wait_notices::waits_for_own_hold(noticed_wait& wait, const shared_keys& keys) {
  if (!wait.listed_ && !printed_own_hold_) add(wait, cause::own_hold, keys, env_.now());
}

// Without memory the wait is not watched: a notice must not fail the call. Records are in the order of their beginning,
// so the first one is always the next to be due. A call that moves brings an older time, hence the search from the end.
void wait_notices::add(noticed_wait& wait, cause why, const shared_keys& keys, time_point since) try {
  const auto later =
      std::find_if(waits_.rbegin(), waits_.rend(), [&](const auto& listed) { return listed.since <= since; });
  const auto place = waits_.insert(later.base(), entry{*this, wait, why, keys, since});
  place->place = place;
  wait.listed_ = &*place;
  arm();
} catch (const std::bad_alloc&) {
  wait.end();
}

void wait_notices::ends(entry& wait) noexcept {
  wait.of.listed_ = nullptr;
  waits_.erase(wait.place);
  // The timer would keep an idle io_context busy.
  if (waits_.empty()) look_.stop();
}

void wait_notices::arm() {
  if (waits_.empty()) return;
  const auto due = saturating_add(waits_.front().since, long_wait);
  if (!look_.due() || due < *look_.due()) look_.start(due, [this] { look(); });
}

void wait_notices::look() {
  const auto now = env_.now();
  while (!waits_.empty() &&
         (has_printed(waits_.front().why) || saturating_add(waits_.front().since, long_wait) <= now)) {
    auto& oldest = waits_.front();
    try {
      if (!has_printed(oldest.why)) look_at(oldest);
    } catch (const std::bad_alloc&) {
      // A notice without memory for its text is left out.
    }
    ends(oldest);
  }
  arm();
}

void wait_notices::look_at(const entry& wait) {
  const auto call = "holdfast: a call has waited for 5 s for " + about(wait.keys->name, {});
  if (wait.why == cause::unreachable) {
    // The server has answered since, so the call waits for something else.
    if (env_.servers.answering(wait.keys->lock)) return;
    printed_unreachable_ = true;
    say_(call + ", because Redis cannot be reached: " + env_.servers.trouble(wait.keys->lock).detail + '.' +
         silenced_by);
  } else if (held_since_(*wait.keys, wait.since)) {
    // The hold has not changed hands since the call. Otherwise the wait is ordinary contention.
    printed_own_hold_ = true;
    say_(call + ", which this client holds without an owner: perhaps its own task, which waits for itself. Bind an " +
         "owner to the task (holdfast::owner) to lock again what it holds." + silenced_by);
  }
}

}  // namespace holdfast::detail
