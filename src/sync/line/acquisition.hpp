// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <holdfast/observer.hpp>

#include "base/backoff.hpp"
#include "base/function.hpp"
#include "protocol/vote/vote_count.hpp"
#include "sync/claim/claim.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/environment.hpp"
#include "sync/command/script_command.hpp"
#include "sync/line/wait_notices.hpp"

namespace holdfast::detail {

struct lease_record;
class acquisition;

/// Something under way whose caller may stop waiting for it.
class cancellable {
 public:
  virtual ~cancellable() = default;
  /// Answers the caller with operation_aborted, if it was not answered yet; what was begun is undone or goes on in the
  /// background.
  virtual void cancel() = 0;
};
using cancellable_ptr = std::shared_ptr<cancellable>;  // null: there is nothing left to cancel

/// One who wants several locks, all or none. It waits in the line of each with an acquisition, its part there, and asks
/// for all by one command when it has the turn of each.
class all_or_none_part {
 public:
  /// It is the turn of this part: the line waits until the part is told what came of it, or leaves.
  virtual void part_is_first(std::size_t part) = 0;
  /// Its turn ends, and nothing was or will be granted to its field by the command that was sent last.
  virtual bool nothing_asked(std::size_t part) const = 0;
  /// As script_command::silence(), of the command for all.
  virtual std::optional<redis::failure> silence_of_all() const = 0;
  /// When its caller has called.
  virtual time_point since() const noexcept = 0;

 protected:
  ~all_or_none_part() = default;
};

/// How an acquire ended. No error and no record: contention.
struct lock_answer {
  error_code error;
  std::string detail;
  std::shared_ptr<lease_record> record;
};
using lock_handler = function<void(lock_answer&&)>;
/// There was no memory to go on. It takes none itself.
lock_answer without_memory();

/// One call of lock, try_lock or try_lock_for.
struct lock_request {
  enum class wait_mode : std::uint8_t { forever, once, until_deadline };
  owner_id owner;
  bool bound = false;  // the owner was given or bound
  terms asked;
  wait_mode wait = wait_mode::forever;
  /// Of one caller who wants any one of several: it never re-enters, and that caller reports for all.
  bool one_of_several = false;
  /// Redis has just said that it is taken: it begins with the subscription, if it need not stand behind others.
  bool found_taken = false;
  std::uint32_t part = 0;                   // of `whole`
  time_point deadline = time_point::max();  // until_deadline only
  /// The thread of co_spawn that calls; null: it cannot be known.
  const void* coroutine = nullptr;
  /// Whose part it is: it sends nothing itself, and that caller reports its failure. Null: it is no part.
  all_or_none_part* whole = nullptr;
};

/// What came of an attempt to acquire.
struct attempt {
  answer<acquire_answer> reply;
  bool answered;  // by Redis, a refusal included
  time_point sent;
  primary_set yes = only(0), may_have_run = only(0);  // as of redis::outcome
  std::uint64_t server = 0;                           // the same
};

/// What Redis has granted to a request: by a command that was sent at `sent`.
struct granted_field {
  owner_field field;
  std::optional<std::uint64_t> token;
  time_point sent, now;
  primary_set at = only(0), may_be_at = only(0);  // those that have granted it, and those that may have, these included
  std::uint16_t spare_tokens = 0;
};

/// The object that an acquisition waits in: the line of its name, or a re-entry at a hold of its owner.
class acquisition_place {
 public:
  /// Its caller waits no longer: answers it with `why`, and undoes what was sent for it.
  virtual void leave(acquisition& waiter, lock_answer why) = 0;
  /// Its deadline has come, or the time that wake_at() was given.
  virtual void time_out(acquisition& waiter) = 0;
  /// Its command was answered.
  virtual void attempt_answered(acquisition& waiter, const outcome& outcome) = 0;
  /// Its turn as a part has come to this.
  virtual void settled(acquisition& waiter, const attempt& attempt) = 0;

 protected:
  ~acquisition_place() = default;
};

/// The state of an acquisition in a line. Only the line changes it, except `counted`.
struct line_seat {
  boost::intrusive::list_member_hook<> hook;
  std::shared_ptr<acquisition> kept;  // while it waits there
  std::uint64_t number = 0;           // later ones have greater numbers
  owner_field field;                  // from the first attempt on; the same in each repetition
  // Attempts that were written and not answered: the field may have been granted, or may still be.
  unsigned unanswered = 0;
  unsigned ahead = 0;      // others before it when it came
  unsigned splits = 0;     // attempts since the last message in which the primaries were divided
  bool first_try = false;  // the last attempt was the first with its field, and sent as such
  bool granted = false;    // it waits for replicas to have it
  bool counted = false;    // the observer counts it among those who wait
};

/// One caller who wants a lock, from the call to the answer, wherever it waits meanwhile.
class acquisition final : public cancellable, public script_command {
 public:
  acquisition(environment& env, shared_keys keys, const lock_request& request, lock_handler&& done);

  /// It was not answered yet.
  bool open() const noexcept { return static_cast<bool>(done_); }
  /// When it was called.
  time_point since() const noexcept { return since_; }
  bool asks_once() const noexcept { return request.wait == lock_request::wait_mode::once; }
  /// The end of its time, and the rest of it. One that asks once has the time of a command, from its call on and
  /// wherever it waits.
  time_point answer_by() const noexcept;
  nanoseconds time_left() const noexcept { return answer_by() - env_.now(); }
  /// From now on it waits at `where`, which hears of its cancellation, its deadline and its answers until it is
  /// answered or waits elsewhere. The first call starts the deadline; that of a part is its caller's.
  void wait_in(acquisition_place& where);
  /// It stands in line from now on, or did so already.
  void stand_in_line() {
    if (!std::exchange(seat.counted, true)) env_.count(measurement_kind::wait_began, *keys);
  }
  void cancel() override;
  /// At `when` its place's time_out() is called. Replaces an earlier alarm, the deadline too.
  void wake_at(time_point when);
  /// The deadline of the call that it is a part of has come.
  void time_out();
  void stop_alarm() { alarm_.stop(); }
  /// Of a part that has its turn: what came of that.
  void tell(const attempt& attempt);
  /// Its attempt is not wanted any more. Where it may have been granted, or may still be.
  primary_set withdraw_attempt() {
    if (!request.whole) return withdraw_all();
    return request.whole->nothing_asked(request.part) ? nowhere : everywhere;
  }
  /// Why its attempt, which is under way, has no answer; nothing if Redis has answered others since.
  std::optional<redis::failure> silence_of_attempt() const {
    return request.whole ? request.whole->silence_of_all() : silence(since_);
  }
  /// Answers the caller, whose handler must not call the engine. `event_for(a)` makes the event of this answer, without
  /// the fields that report() fills in.
  template <class EventFor>
  void answer(lock_answer&& answer, EventFor event_for) {
    leave_place();
    if (env_.settings.observer && reports(answer)) report(answer, event_for(answer));
    std::exchange(done_, {})(std::move(answer));
  }
  /// The engine ends, and nobody is answered.
  void forget_caller();

  const shared_keys keys;
  const lock_request request;
  retry_backoff backoff;
  line_seat seat;
  noticed_wait noticed;
  claim_ptr got;  // of several primaries: what it was granted, of which the slower ones have not spoken yet

 private:
  void on_answer(const outcome& outcome) override;
  std::optional<nanoseconds> time_left_for_copies() const override {
    return asks_once() ? std::optional(time_left()) : std::nullopt;
  }
  void on_late_vote(std::size_t index, const late_vote& late) override;
  void leave_place();
  bool reports(const lock_answer& answer) const noexcept {
    return !request.one_of_several && (!request.whole || answer.record);
  }
  void report(const lock_answer& answer, hold_event&& event) const;
  std::shared_ptr<acquisition> self() { return std::static_pointer_cast<acquisition>(shared_from_this()); }

  environment& env_;
  const time_point since_;
  acquisition_place* place_ = nullptr;
  lock_handler done_;  // empty once it is answered
  timer alarm_;
};

}  // namespace holdfast::detail
