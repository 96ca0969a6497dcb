// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/backoff.hpp"
#include "sync/surroundings.hpp"
#include "sync/terms.hpp"

namespace holdfast::detail {

/// What is said of a hold that Redis does not know.
inline constexpr const char* not_ours = "Redis answered that its key is gone or another's";

/// Gives fields back, and does not stop before the server has answered or the key must be gone anyway. What a caller no
/// longer waits for goes on here, in the client's own scope, which shutdown joins. A release is sent once more when its
/// connection has ended; one that is late on a connection that goes on answering is on its way.
///
/// The servers call it back and do not keep it alive: their owner ends them before it.
class releases {
 public:
  /// none: released; lost: it was not this owner's any more; unconfirmed: no answer in time, it goes on; else the
  /// server's refusal.
  using handler = function<void(error_code, std::string detail)>;

  /// `ended` hears the name after each release, also after one that found the key gone: the lock may be free, and
  /// nobody else may say so.
  releases(surroundings& around, function<void(const std::string& name)> ended)
      : around_(around), ended_(std::move(ended)) {}
  releases(const releases&) = delete;
  releases& operator=(const releases&) = delete;
  ~releases();

  /// Releases `field`, whose key may live for `ttl`, and tells `done` at `answer_by` at the latest. `valid`: until when
  /// the hold is exclusive.
  void release(shared_keys keys, owner_field field, milliseconds ttl, time_point valid, time_point answer_by,
               handler done);
  /// The same with nobody waiting: the observer hears released_late or release_given_up. Also for a grant that may
  /// still come. `tried` is called once, when Redis has answered the first copy or the connection that the copy was
  /// written to has ended; at the latest when the release ends. Not after abandon().
  void release_in_background(shared_keys keys, owner_field field, milliseconds ttl, function<void()> tried = {});

  bool idle() const noexcept { return under_way_.empty(); }
  /// Called once, when the last one under way has ended; at once if there is none.
  void when_idle(function<void()> then);
  /// Ends all without a further command; waiting callers get unconfirmed.
  void abandon();

 private:
  struct task;
  struct older {  // not the lower address: a simulated run is the same each time
    bool operator()(const std::shared_ptr<task>&, const std::shared_ptr<task>&) const noexcept;
  };
  void start(std::shared_ptr<task>);
  void send(const std::shared_ptr<task>&);
  void on_late(const std::shared_ptr<task>&, const std::string& detail);
  void answered(const std::shared_ptr<task>&, outcome);
  void again(const std::shared_ptr<task>&, const outcome&);
  void end(const std::shared_ptr<task>&, error_code, const std::string& detail);
  void report(const task&, event::kind what, error_code reason, const std::string& detail) const;

  surroundings& around_;
  function<void(const std::string&)> ended_;
  std::set<std::shared_ptr<task>, older> under_way_;
  std::uint64_t started_ = 0;
  function<void()> when_idle_;
};

}  // namespace holdfast::detail
