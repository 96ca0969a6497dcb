// SPDX-License-Identifier: BSL-1.0
#include "api/restart_rules.hpp"

#include <boost/system/errc.hpp>

#include <algorithm>
#include <string>

namespace holdfast::detail {
namespace {

constexpr milliseconds longest_time = std::chrono::hours(24), shortest_backoff{10}, lowest_cap{2'000};
constexpr std::uint64_t doublings_cap = 62;  // more than any cap, and a shift is defined

void check_time(const char* option, milliseconds given, milliseconds least, milliseconds most) {
  if (given >= least && given <= most) return;
  const auto ms = [](milliseconds duration) { return std::to_string(duration.count()) + " ms"; };
  throw error(errc::invalid_argument,
              std::string(option) + " of " + ms(given) + " is not in " + ms(least) + " to " + ms(most));
}

}  // namespace

bool may_mend(const error_code& why) noexcept {
  if (why == errc::shutting_down || why == errc::invalid_config) return false;
  return why == condition::retry_later || why == condition::setup || why == errc::lost ||
         why == boost::system::errc::not_enough_memory;
}

restart_rules::restart_rules(const keep_options& options)
    : policy_(options.restart), pause_(options.pause), first_backoff_(options.first_backoff),
      cap_(options.backoff_cap) {
  check_time("a pause", options.pause, milliseconds::zero(), longest_time);
  check_time("a backoff_cap", options.backoff_cap, lowest_cap, longest_time);
  check_time("a first_backoff", options.first_backoff, shortest_backoff, options.backoff_cap);
}

restart_rules::decision restart_rules::wait_failed(const error_code& why) {
  if (may_mend(why)) return back_off();
  const bool orderly = why == errc::shutting_down && policy_ == restart_policy::always;
  return {orderly ? act::finish : act::fail};
}

restart_rules::decision restart_rules::run_ended(run_outcome outcome, std::chrono::nanoseconds ran) {
  if (outcome == run_outcome::returned || ran >= cap_) failures_ = 0;
  if (outcome != run_outcome::returned) return policy_ == restart_policy::never ? decision{act::fail} : back_off();
  if (policy_ != restart_policy::always) return {act::finish};
  return {act::take_lock, worker_state::pausing, pause_, pause_};
}

restart_rules::decision restart_rules::back_off() {
  const auto doublings = std::min(failures_++, doublings_cap);
  const bool below_cap = first_backoff_.count() <= cap_.count() >> doublings;  // compared so, it cannot overflow
  const auto longest = below_cap ? first_backoff_ * (std::int64_t{1} << doublings) : cap_;
  return {act::take_lock, worker_state::backing_off, longest / 2, longest};
}

}  // namespace holdfast::detail
