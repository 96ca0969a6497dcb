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
#include "sync/line/lock_request.hpp"
#include "sync/line/wait_notices.hpp"

namespace holdfast::detail {

struct lease_record;
class acquisition;

/// An operation whose caller may stop waiting for it.
class cancellable {
 public:
  virtual ~cancellable() = default;
  /// Answers the caller with operation_aborted, unless it was answered already. The operation is undone, or goes on in
  /// the background.
  virtual void cancel() = 0;
};
using cancellable_ptr = std::shared_ptr<cancellable>;  // null: there is nothing left to cancel

/// A call that wants several locks, all or none. It has an acquisition in the line of each name, its part there. When
/// each part is the first of its line, one command asks for all locks.
class all_or_none_part {
 public:
  /// This part is the first of its line. The line waits until the part is given a result, or leaves.
  virtual void part_is_first(std::size_t part) = 0;
  /// The part stops being the first. True: the last command has granted nothing to its field, and never will.
  virtual bool nothing_asked(std::size_t part) const = 0;
  /// As script_command::silence(), for the command that asks for all.
  virtual std::optional<redis::failure> silence_of_all() const = 0;
  /// The time of the call.
  virtual time_point since() const noexcept = 0;

 protected:
  ~all_or_none_part() = default;
};

/// The result of an acquire. Neither a failure nor a lease: contention.
using lock_answer = answer<std::shared_ptr<lease_record>>;
using lock_handler = function<void(lock_answer&&), 3>;  // small: each waiter has one

/// The object that an acquisition waits in: the line of its name, or a re-entry at a hold of its owner.
///
/// Decision: a caller is one object, wherever it waits. An acquisition moves from its line to a hold that its owner was
/// granted meanwhile, and from an ended hold back to the line. The place learns of its cancellation, its deadline and
/// its answer. A move therefore is a change of the place alone.
class acquisition_place {
 public:
  /// The caller stops waiting. Answers it with `why`, and undoes the command that was sent for it.
  virtual void leave(acquisition& waiter, lock_answer why) = 0;
  /// The deadline has come, or the time of wake_at().
  virtual void time_out(acquisition& waiter) = 0;
  /// The command was answered.
  virtual void attempt_answered(acquisition& waiter, const outcome& outcome) = 0;
  /// The result of a part that was the first of its line.
  virtual void settled(acquisition& waiter, const attempt& attempt) = 0;

 protected:
  ~acquisition_place() = default;
};

/// The line of a name. It is the one place to which a caller comes back.
class line_place : public acquisition_place {
 public:
  /// A re-entry found no hold to be nested in. The caller joins the line.
  virtual void queue(std::shared_ptr<acquisition> caller) = 0;

 protected:
  ~line_place() = default;
};

/// The state of an acquisition in a line.
struct line_seat {
  boost::intrusive::list_member_hook<> hook;
  std::shared_ptr<acquisition> kept;  // while it waits there
  std::uint64_t number = 0;           // increases with each waiter of the line
  unsigned ahead = 0;                 // waiters before it when it joined
  bool counted = false;               // the observer counts it as waiting
  attempts tries;                     // the rules of the line change it
};

/// One call that wants one lock, from the call to the answer, wherever it waits meanwhile.
class acquisition final : public cancellable, public script_command {
 public:
  acquisition(environment& env, shared_keys keys, const lock_request& request, lock_handler&& done);

  /// The caller was not answered yet.
  bool open() const noexcept { return static_cast<bool>(done_); }
  /// The time of the call.
  time_point since() const noexcept { return since_; }
  bool asks_once() const noexcept { return request.asks_once(); }
  /// The end of a try_lock()'s time, and the time left. It has one command timeout from the call on, wherever it waits.
  time_point answer_by() const noexcept;
  nanoseconds time_left() const noexcept { return answer_by() - env_.now(); }
  /// Moves it to `where`. That place handles its cancellation, its deadline and its answers until it is answered or
  /// moves again. The first call starts the deadline. A part has none, because the call for several locks has it.
  void wait_in(acquisition_place& where);
  /// Counts it as waiting, once.
  void count_as_waiting() {
    if (!std::exchange(seat.counted, true)) env_.count(measurement_kind::wait_began, *keys);
  }
  void cancel() override;
  /// Calls the place's time_out() at `when`. Replaces an earlier alarm, the deadline included.
  void wake_at(time_point when);
  /// The deadline has come: its own, or that of the call for several locks.
  void time_out();
  void stop_alarm() { alarm_.stop(); }
  /// Gives a part that is the first of its line its result.
  void tell(const attempt& attempt);
  /// Withdraws the attempt. Returns the primaries that may have granted it, or may still do so.
  primary_set withdraw_attempt() {
    if (!request.whole) return withdraw_all();
    return request.whole->nothing_asked(request.part) ? nowhere : everywhere;
  }
  /// The reason why the attempt under way has no answer. Empty: Redis has answered other commands since.
  std::optional<redis::failure> silence_of_attempt() const {
    return request.whole ? request.whole->silence_of_all() : silence(since_);
  }
  /// Answers the caller. The handler must not call the engine. `event_for(answer)` makes the event of this answer,
  /// without the fields that report() adds.
  template <class EventFor>
  void answer(lock_answer&& answer, EventFor event_for) {
    leave_place();
    if (env_.settings.observer && reports(answer)) report(answer, event_for(answer));
    std::exchange(done_, {})(std::move(answer));
  }
  /// The engine ends. The caller gets no answer.
  void forget_caller();

  const shared_keys keys;
  const lock_request request;
  retry_backoff backoff;
  line_seat seat;
  noticed_wait noticed;
  claim_ptr got;  // of several primaries: the claim that it was granted, for votes that come later

 private:
  void on_answer(const outcome& outcome) override;
  std::optional<nanoseconds> time_left_for_copies() const override {
    return asks_once() ? std::optional(time_left()) : std::nullopt;
  }
  void on_late_vote(std::size_t index, const late_vote& late) override;
  void leave_place();
  bool reports(const lock_answer& answer) const noexcept {
    return !request.one_of_several && (!request.whole || answer.value);
  }
  void report(const lock_answer& answer, hold_event&& event) const;

  environment& env_;
  const time_point since_;
  acquisition_place* place_ = nullptr;
  lock_handler done_;  // empty once it is answered
  timer alarm_;
};
// With the counts of its shared_ptr it fills a block of the pool. The next size has 16 bytes more.
static_assert(sizeof(acquisition) <= 64 * sizeof(void*), "each waiter has one");

}  // namespace holdfast::detail
