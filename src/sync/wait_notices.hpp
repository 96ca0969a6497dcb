// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list.hpp>
#include <chrono>
#include <string>

#include "base/function.hpp"
#include "base/timers.hpp"
#include "protocol/keys.hpp"
#include "sync/terms.hpp"

namespace holdfast::detail {

struct surroundings;
class wait_notices;

/// A call that waits, as wait_notices keeps it. Leaves when it is destroyed.
struct noticed_wait {
  enum class cause { unreachable, own_hold };

  noticed_wait() = default;
  noticed_wait(const noticed_wait&) = delete;
  noticed_wait& operator=(const noticed_wait&) = delete;
  ~noticed_wait() { end(); }
  void end() noexcept;

  boost::intrusive::list_member_hook<> hook;
  wait_notices* in = nullptr;  // null: it is in no list
  cause why{};
  shared_keys keys;
  time_point since{};
};

/// Says, where nobody observes, why a call has waited for 5 s: a line for each cause, once. A wait is looked at where
/// its cause is likely: so a lock that is free, or held by another process, costs no timer.
class wait_notices {
 public:
  using cause = noticed_wait::cause;
  using sink = function<void(const std::string& line)>;
  /// This client has held the lock all the time since.
  using holder_test = function<bool(const lock_keys&, time_point since)>;

  wait_notices(const surroundings& around, sink say, holder_test held_since);
  wait_notices(const wait_notices&) = delete;
  wait_notices& operator=(const wait_notices&) = delete;
  ~wait_notices();

  /// It waits for Redis, or may do so, since `since`; nothing is done where that has answered and is connected.
  void waits_for_redis(noticed_wait& which, const shared_keys& keys, time_point since);
  /// The same of one that waits although there was a connection: it was lost.
  void lost_redis(noticed_wait& which, const shared_keys& keys);
  /// Perhaps it waits for its own task, which holds the lock.
  void waits_for_own_hold(noticed_wait& which, const shared_keys& keys);
  void ends(noticed_wait& which) noexcept;

 private:
  using hook = boost::intrusive::member_hook<noticed_wait, boost::intrusive::list_member_hook<>, &noticed_wait::hook>;
  using waits = boost::intrusive::list<noticed_wait, hook>;

  bool said(cause why) const noexcept { return why == cause::unreachable ? said_unreachable_ : said_own_hold_; }
  void add(noticed_wait& which, cause why, const shared_keys& keys, time_point since);
  void arm();
  void look();
  void look_at(const noticed_wait& which);

  const surroundings& around_;
  const sink say_;
  const holder_test held_since_;
  waits waits_;  // the oldest first
  bool said_unreachable_ = false, said_own_hold_ = false;
  timer look_;
};

inline void noticed_wait::end() noexcept {
  if (in) in->ends(*this);
}

}  // namespace holdfast::detail
