// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/backoff.hpp"
#include "sync/lease_record.hpp"
#include "sync/surroundings.hpp"
#include "sync/wake_budget.hpp"

namespace holdfast::detail {

/// Something under way whose caller may stop waiting for it.
class cancellable {
 public:
  virtual ~cancellable() = default;
  /// Answers the caller with operation_aborted, if it was not answered yet; what was begun is undone or goes on in the
  /// background.
  virtual void cancel() = 0;
};
using cancellable_ptr = std::shared_ptr<cancellable>;  // null: there is nothing left to cancel

/// How an acquire ended. No error and no record: contention.
struct lock_answer {
  error_code error;
  std::string detail;
  std::shared_ptr<lease_record> record;
};
using lock_handler = function<void(lock_answer)>;

/// One call of lock, try_lock or try_lock_for.
struct lock_request {
  enum class patience { forever, once, until_deadline };
  owner_id who;
  bool bound = false;  // the owner was given or bound
  terms asked;
  patience wait = patience::forever;
  time_point deadline = time_point::max();  // until_deadline only
  const primitive* kind = &plain_lock;
};

class waiting_line;

/// One caller in a line. Who keeps it may cancel it.
struct waiter final : cancellable, std::enable_shared_from_this<waiter> {
  waiter(surroundings& around, std::weak_ptr<waiting_line> line, lock_request r, lock_handler d);
  void cancel() override;

  const std::weak_ptr<waiting_line> line;
  lock_request request;
  lock_handler done;  // emptied when it is answered
  time_point since;
  std::size_t ahead = 0;  // waiters before it when it came
  owner_field field;      // from the first attempt on; the same in each repetition
  time_point sent{};      // the attempt that was answered last
  std::weak_ptr<script_run> attempt;
  // Attempts that were written and not answered: the field may have been granted, or may still be.
  unsigned unanswered = 0;
  timer alarm;  // its deadline
  retry_backoff backoff;
  std::list<std::shared_ptr<waiter>>::iterator place;
  std::uint64_t number = 0;  // in its line; later ones have greater numbers
  cancellable_ptr moved_to;  // it left the line unanswered, to re-enter: who can cancel it now
};

/// The keeper of a line, as the line sees it.
class line_host {
 public:
  virtual owner_field new_field() = 0;
  /// Somebody of this client has the lock.
  virtual bool held_here() = 0;
  /// The hold of this client should be confirmed before long: a message said that the lock was freed.
  virtual void doubt_hold_here() = 0;
  /// Makes the hold of what the last attempt of `w` was granted, and moves other waiters of its owner to re-entries.
  /// Their handlers may answer `w`: then its lease is given back.
  virtual std::shared_ptr<lease_record> granted(waiter& w, std::optional<std::uint64_t> token) = 0;
  /// Gives back what was or may still be granted to a field that nobody waits for; `tried` as in
  /// releases::release_in_background.
  virtual void give_back(const owner_field& field, milliseconds ttl, function<void()> tried) = 0;
  /// Nobody waits any more; may destroy the line, and the host.
  virtual void line_empty() = 0;

 protected:
  ~line_host() = default;
};

/// The waiters of one name in this client, first in, first out. Only the first talks to Redis:
///   try → busy → subscribe → acknowledged → try again → park → try.
/// It parks until a message, the holder's TTL, the poll cap or the deadline; without a try while somebody of this
/// client has the lock. A waiter gives its field back when it leaves, when its grant came too late, or when two
/// attempts in a row were not answered. Until Redis may have had that release, the line is barred: written together
/// with the next acquire, it would free the lock for nobody. After two unanswered attempts a pause follows, which
/// doubles until there is an answer, or nobody waits.
class waiting_line final : public std::enable_shared_from_this<waiting_line>, private subscriber {
 public:
  waiting_line(surroundings& around, line_host& host, shared_keys keys);
  waiting_line(const waiting_line&) = delete;
  waiting_line& operator=(const waiting_line&) = delete;
  ~waiting_line();

  std::shared_ptr<waiter> join(lock_request request, lock_handler done);
  /// Answers the waiter with `error` now; what was sent for it is given back.
  void leave(const std::shared_ptr<waiter>& w, error_code error, const std::string& detail);
  /// The lock may be free: the first tries now, or once more after the try in flight; later, if wake-ups have come in
  /// vain too often.
  void wake();
  const std::string& name() const noexcept { return keys_->name; }
  bool empty() const noexcept { return waiters_.empty(); }
  std::size_t size() const noexcept { return waiters_.size(); }
  /// Takes a waiter of this owner that stands behind the first out without answering it; null when there is none.
  std::shared_ptr<waiter> extract(owner_id who);
  void fail_all(error_code error, const std::string& detail);
  /// Those of one owner, which was given or bound.
  void fail_all_of(owner_id who, error_code error, const std::string& detail);
  std::vector<std::shared_ptr<waiter>> waiters() const { return {waiters_.begin(), waiters_.end()}; }

 private:
  enum class step { idle, trying, parked, barred };  // barred: nothing wakes it; perhaps nobody waits

  void on_subscribed() override;
  void on_message(std::string_view payload) override;
  void on_subscribe_failed(error_code error, const std::string& detail) override;

  void advance();
  void try_now();
  void answered(const std::shared_ptr<waiter>& w, outcome o);
  void on_acquired(const std::shared_ptr<waiter>& w, std::optional<std::uint64_t> token);
  void on_busy(const std::shared_ptr<waiter>& w, milliseconds holder_ttl);
  void on_failed(const std::shared_ptr<waiter>& w, const server_error& why);
  void abandon_field(waiter& w);
  void on_tried();
  void stand_back(waiter& w);
  void park_for(nanoseconds pause, step how = step::parked);
  nanoseconds longest_park();
  void park_while_held(nanoseconds holder_ttl, time_point asked);
  bool parked_while_held() const;
  void time_out(const std::shared_ptr<waiter>& w);
  void remove(const std::shared_ptr<waiter>& w);
  void finish(const std::shared_ptr<waiter>& w, lock_answer a);
  void report(const waiter& w, const lock_answer& a);

  surroundings& around_;
  line_host& host_;
  const shared_keys keys_;
  std::list<std::shared_ptr<waiter>> waiters_;
  std::map<std::pair<owner_id, std::uint64_t>, waiter*> bound_;  // of them, those whose owner was given or bound
  std::uint64_t joined_ = 0;
  std::size_t untried_ = 0;  // fields that were given back, whose release was not answered nor cut off yet
  nanoseconds penalty_{};    // the pause after a field was given back for want of an answer; doubles until there is one
  step step_ = step::idle;
  bool woken_ = false;                    // while trying: something happened that asks for one more try
  std::optional<time_point> known_held_;  // when the lock last was, by an answer of Redis or a hold of this client
  wake_budget wake_ups_;
  server_error last_failure_;  // why the last attempt failed
  subscription subscription_;
  timer park_;
};

}  // namespace holdfast::detail
