// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <optional>

#include <holdfast/config.hpp>

#include "base/backoff.hpp"
#include "base/lease_clock.hpp"
#include "base/random.hpp"
#include "redis/failure.hpp"

namespace holdfast::detail {

/// The answer to one look.
struct sight {
  std::optional<redis::failure> failed{};  // goes before the rest
  bool is_so = false;                      // the caller need not wait any more
  /// It may become so by itself at this time, without a message.
  time_point look_again_by = time_point::max();
};

/// The one thing that follows from an event.
struct lookout_action {
  enum class act : std::uint8_t {
    wait,    // for the next event; a running alarm goes on
    look,    // ask Redis; the alarm is set to `until`
    park,    // the alarm is set to `until`
    answer,  // the caller gets `failed`; without it: `is_so`
    silent,  // the time is over; the silence of the server decides between a failure and "not so"
  };
  act then = act::wait;
  time_point until = time_point::max();  // max(): no alarm
  bool is_so = false;
  const redis::failure* failed = nullptr;  // lives until the next event
};

/// Decides for one caller that waits until something is so. An event and the time in, one action out:
///   look → not so → listen → acknowledged → look → park → look.
/// It looks again after each message, after each acknowledgement of the subscription, when the last sight may have
/// changed by itself, and at least every config::poll_cap. One look is under way at a time. A message that comes
/// meanwhile is followed by one more, because that look may have been answered before.
///
/// Failures that end by themselves are waited out, with a backoff. At the deadline Redis must have said "not so": the
/// result is a failure otherwise.
class lookout_rules {
 public:
  /// `settings` and `random` outlive the rules. `deadline`: time_point::max() for none.
  lookout_rules(const config& settings, random_source& random, time_point deadline) noexcept;

  lookout_action begin();
  /// A message came, or the subscription was acknowledged.
  lookout_action news();
  /// The server refuses the subscription.
  lookout_action unsubscribed(const redis::failure& why);
  lookout_action answered(const sight& seen, time_point now);
  lookout_action alarm(time_point now);

  /// The caller wants the messages of its channel.
  bool listens() const noexcept { return listens_; }

 private:
  using act = lookout_action::act;

  lookout_action look() noexcept;
  lookout_action park(time_point until) const noexcept;
  lookout_action fail(const redis::failure& why, time_point now);
  lookout_action time_out() const noexcept;

  const config& settings_;
  random_source& random_;
  const time_point deadline_;
  retry_backoff backoff_;
  std::optional<redis::failure> last_failure_;  // since the last sight
  bool looking_ = false;
  bool again_ = false;  // news came during the look
  bool listens_ = false;
  bool saw_ = false;  // Redis has said "not so"
};

}  // namespace holdfast::detail
