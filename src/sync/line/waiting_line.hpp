// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/if_memory.hpp"
#include "sync/line/acquisition.hpp"
#include "sync/line/wake_budget.hpp"

namespace holdfast::detail {

/// The keeper of a line, as the line sees it.
class line_host {
 public:
  /// Somebody of this client has the lock.
  virtual bool held_here() const = 0;
  /// The hold of this client should be confirmed before long: a message said that the lock was freed.
  virtual void doubt_hold_here() = 0;
  /// A message says that the lock was freed: true if this client itself has told so.
  virtual bool hears_itself() = 0;
  /// The lock was asked for, and somebody else has it: it is asked for again after so long at most.
  virtual nanoseconds found_busy() = 0;
  /// Waiters of this client ask no earlier: others have their turn.
  virtual time_point cool_down_until() const = 0;
  /// The time that was left to other clients is over, or prolonged by what was heard meanwhile. May destroy the host.
  virtual void cool_down_ends() = 0;
  /// This owner has it: it was granted meanwhile, as one of several that another call of this owner wanted.
  virtual bool held_by(owner_id owner) = 0;
  /// Moves a waiter of that owner to a re-entry.
  virtual void reenter(std::shared_ptr<acquisition> waiter) = 0;
  /// A re-entry found that there is nothing that it would be nested in: it waits like anybody.
  virtual void queue(std::shared_ptr<acquisition> waiter) = 0;
  /// The last attempt of `first` was granted: makes its hold, and moves the other waiters of its owner to re-entries.
  virtual std::shared_ptr<lease_record> granted(const acquisition& first, const granted_field& grant) = 0;
  /// Gives back what was or may still be granted to a field that nobody waits for; `tried` as in
  /// releases::release_in_background.
  virtual void give_back(const owner_field& field, milliseconds ttl, function<void()> tried, primary_set at) = 0;
  /// A line that has served its last waiter may keep its subscription for those who come while this client holds, or
  /// while others have their turn.
  virtual bool may_linger() const = 0;
  /// Nobody waits any more: destroys the line, and perhaps the host.
  virtual void line_empty() = 0;

 protected:
  ~line_host() = default;
};

/// The waiters of one name in this client, first in, first out. Only the first talks to Redis:
///   try → busy → subscribe → acknowledged → try again → park → try.
/// It parks until a message, the holder's TTL, the poll cap, its kind's next poll or the deadline; without a try while
/// somebody of this client has the lock. A waiter gives its field back when it leaves, when its grant came too late, or
/// when two attempts in a row were not answered. Until Redis may have had that release, the line is barred: written
/// together with the next acquire, it would free the lock for nobody. After two unanswered attempts a pause follows,
/// which doubles until there is an answer, or nobody waits. Where replicas must have a grant, the line waits for them
/// as for an answer; what too few have is given back. Where clients take turns, the subscription of a line whose last
/// waiter was served lingers until this client has released and rested, for a second at most: a waiter who comes
/// meanwhile finds it, the count of those who have heard of the release is known to have this client in it, and the
/// turns of the others are heard.
///
/// A call that lets a waiter leave may destroy the line. Whoever goes on using the line afterwards keeps it alive.
class waiting_line final : public std::enable_shared_from_this<waiting_line>,
                           private acquisition_place,
                           private subscriber {
 public:
  waiting_line(environment& env, owner_fields& fields, line_host& host, shared_keys keys);
  waiting_line(const waiting_line&) = delete;
  waiting_line& operator=(const waiting_line&) = delete;
  ~waiting_line();

  void join(std::shared_ptr<acquisition> waiter);
  /// Why the first tries, as far as that is counted.
  enum class incentive : std::uint8_t { none, news, poll };
  /// The lock may be free: the first tries now, or once more after the try in flight; later, if wake-ups have come in
  /// vain too often.
  void wake(incentive why = incentive::news);
  const std::string& name() const noexcept { return keys_->name; }
  /// Nobody waits: the release of what somebody wanted is on its way.
  bool empty() const noexcept { return waiters_.empty(); }
  std::size_t size() const noexcept { return waiters_.size(); }
  template <class F>
  void each_waiter(F action) {
    for (auto& seat : waiters_) action(*seat.kept);
  }
  /// Nobody waits, and the line is there for its subscription alone.
  bool lingers() const noexcept { return lingers_; }
  /// The line may be gone afterwards.
  void stop_lingering();
  /// The server has confirmed the subscription.
  bool listens() const noexcept { return subscription_ && listens_; }
  /// The first, if it could be handed a hold now; null: it has an attempt under way, or wants several locks.
  const acquisition* successor() const noexcept;
  /// The heir has got its hold without asking Redis. The line may be gone afterwards.
  void inherited(std::shared_ptr<lease_record> record);
  /// Takes a waiter of this owner that stands behind the first, and would re-enter, out without answering it; null when
  /// there is none.
  std::shared_ptr<acquisition> extract(owner_id owner);
  /// Answers those of whom `which(const acquisition&)` is true, the last of them first: when the first leaves, the next
  /// would send an attempt in vain.
  template <class Which>
  void fail(Which matches, error_code error, const char* detail) {
    std::vector<std::shared_ptr<acquisition>> leaving;
    for (auto seat = waiters_.rbegin(); seat != waiters_.rend(); ++seat)
      if (matches(std::as_const(*seat->kept))) leaving.push_back(seat->kept);
    each_step all;
    for (const auto& waiter : leaving) all([&] { leave(*waiter, {error, detail, nullptr}); });
    all.rethrow();
  }
  /// The same with those of one owner, which was given or bound.
  void fail_all_of(owner_id owner, error_code error, const char* detail);

 private:
  enum class step { idle, trying, parked, blocked_on_release };  // barred: nothing wakes it; perhaps nobody waits
  using seats = boost::intrusive::list<
      line_seat, boost::intrusive::member_hook<line_seat, boost::intrusive::list_member_hook<>, &line_seat::hook>>;

  void leave(acquisition& waiter, lock_answer why) override;
  void time_out(acquisition& waiter) override;
  void attempt_answered(acquisition& waiter, const outcome& outcome) override;
  void settled(acquisition& waiter, const attempt& attempt) override;
  void on_subscribed() override;
  void on_message(std::string_view payload) override;
  void on_rumour(std::string_view payload) override;
  void heard_that_it_is_free(bool by_ourselves);
  void on_subscribe_failed(error_code error, const std::string& detail) override;
  std::uint32_t free_at() const override { return granted_in_part_; }

  void begin(acquisition& waiter);
  void take_back(acquisition& waiter);
  void advance();
  void go_on();
  template <class Act>
  void or_without_memory(Act act);
  void answer_stuck() noexcept;
  /// Nothing that would answer the first waiter is under way.
  bool stuck() const noexcept;
  void try_now();
  void send_attempt(acquisition& waiter);
  void on_answer(acquisition& waiter, const outcome& outcome);
  void on_attempt(acquisition& waiter, const attempt& attempt);
  void on_time_out(acquisition& waiter);
  void subscribe();
  void count_incentive(const attempt& attempt);
  void wait_for_replicas(acquisition& waiter, const attempt& attempt);
  void on_replicas(acquisition& waiter, const attempt& attempt, const std::optional<failure>& too_few);
  void on_acquired(acquisition& waiter, const attempt& attempt, time_point now);
  void on_busy(acquisition& waiter, const attempt& attempt, time_point now);
  bool may_reenter(const acquisition& waiter) const;
  void leave_to_reenter(acquisition& waiter);
  bool may_ask_again(const acquisition& waiter, const failure& why) const;
  void on_failed(acquisition& waiter, const failure& why);
  void park_divided(acquisition& waiter, nanoseconds slowest);
  void abandon_field(acquisition& waiter, primary_set at = everywhere);
  void on_tried();
  void back_off(acquisition& waiter);
  void park_for(nanoseconds pause, step step = step::parked);
  nanoseconds rest() const;
  nanoseconds longest_park();
  nanoseconds next_poll();
  void park_while_held(nanoseconds holder_ttl, time_point asked, nanoseconds poll);
  bool parked_while_held() const;
  acquisition& first() { return *waiters_.front().kept; }
  std::shared_ptr<acquisition> take_out(acquisition& waiter);
  void remove(acquisition& waiter, bool served = false);
  void finish(acquisition& waiter, lock_answer&& answer);

  environment& env_;
  owner_fields& fields_;
  line_host& host_;
  const shared_keys keys_;
  seats waiters_;
  std::map<std::pair<owner_id, std::uint64_t>, acquisition*> bound_;  // of them, those whose owner was given or bound
  std::uint64_t joined_ = 0;
  std::size_t pending_giveback_ = 0;  // fields that were given back, whose release was not answered nor cut off yet
  nanoseconds polled_{};              // where somebody may release without a message: the next pause; doubles with each
  nanoseconds
      backoff_delay_{};  // the pause after a field was given back for want of an answer; doubles until there is one
  step step_ = step::idle;
  bool woken_ = false;    // while trying: something happened that asks for one more try
  bool resting_ = false;  // while parked: others have their turn
  bool lingers_ = false;
  incentive incentive_ = incentive::none;  // of the attempt under way
  bool listens_ = false;                   // the present subscription was confirmed
  std::optional<time_point> known_held_;   // when the lock last was, by an answer of Redis or a hold of this client
  primary_set granted_in_part_ = 0;        // where the last attempt had it, which was divided
  wake_budget wake_ups_;
  std::optional<failure> last_failure_;  // why the last attempt failed
  subscription subscription_;
  timer park_;
};

}  // namespace holdfast::detail
