// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <list>
#include <string>

#include "base/function.hpp"
#include "base/timers.hpp"
#include "protocol/keys.hpp"
#include "sync/claim/terms.hpp"

namespace holdfast::detail {

struct environment;
class wait_notices;

/// The link from a waiting call to its record in wait_notices. Few calls have a record. It ends with the call.
class noticed_wait {
 public:
  noticed_wait() = default;
  noticed_wait(const noticed_wait&) = delete;
  noticed_wait& operator=(const noticed_wait&) = delete;
  ~noticed_wait() { end(); }
  void end() noexcept;

 private:
  friend class wait_notices;
  struct entry;
  entry* listed_ = nullptr;  // null: there is no record
};

/// Prints why a call has waited for 5 s, if the client has no observer. Each cause is printed once. A wait is watched
/// only if its cause is likely. A lock that is free or held by another process therefore costs no timer.
class wait_notices {
 public:
  enum class cause { unreachable, own_hold };
  using sink = function<void(const std::string& line)>;
  /// True: this client has held the lock all the time since `since`.
  using holder_test = function<bool(const lock_keys&, time_point since)>;

  wait_notices(const environment& env, sink say, holder_test held_since);
  wait_notices(const wait_notices&) = delete;
  wait_notices& operator=(const wait_notices&) = delete;
  ~wait_notices();

  /// The call may wait for Redis since `since`. It gets no record if Redis has answered and is connected.
  void waits_for_redis(noticed_wait& wait, const shared_keys& keys, time_point since);
  /// The same for a waiting call whose connection was lost.
  void lost_redis(noticed_wait& wait, const shared_keys& keys);
  /// The call waits for a lock that its own task may hold.
  void waits_for_own_hold(noticed_wait& wait, const shared_keys& keys);

 private:
  friend class noticed_wait;
  using entry = noticed_wait::entry;

  bool has_printed(cause why) const noexcept {
    return why == cause::unreachable ? printed_unreachable_ : printed_own_hold_;
  }
  void add(noticed_wait& wait, cause why, const shared_keys& keys, time_point since);
  void arm();
  void look();
  void look_at(const entry& wait);
  void ends(entry& wait) noexcept;

  const environment& env_;
  const sink say_;
  const holder_test held_since_;
  std::list<entry> waits_;  // the oldest first
  bool printed_unreachable_ = false, printed_own_hold_ = false;
  timer look_;
};

struct noticed_wait::entry {
  wait_notices& in;
  noticed_wait& of;
  wait_notices::cause why;
  shared_keys keys;
  time_point since;
  std::list<entry>::iterator place{};
};

inline void noticed_wait::end() noexcept {
  if (listed_) listed_->in.ends(*listed_);
}

}  // namespace holdfast::detail
