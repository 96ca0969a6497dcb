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

/// The owner of a line, as the line sees it.
class line_host {
 public:
  /// This client holds the lock.
  virtual bool held_here() const = 0;
  /// The hold of this client should be confirmed before long: a message said that the lock was freed.
  virtual void doubt_hold_here() = 0;
  /// A message says that the lock was freed. True: it is the own notification of this client.
  virtual bool hears_itself() = 0;
  /// Redis says busy. Returns the longest time to wait before asking again.
  virtual nanoseconds found_busy() = 0;
  /// Waiters of this client ask no earlier, because other clients have their turns.
  virtual time_point cool_down_until() const = 0;
  /// The cool-down is over, unless a message has prolonged it meanwhile. May destroy the host.
  virtual void cool_down_ends() = 0;
  /// This owner holds the lock: another call of it, for several locks, was granted meanwhile.
  virtual bool held_by(owner_id owner) = 0;
  /// Moves a waiter of that owner to a re-entry.
  virtual void reenter(std::shared_ptr<acquisition> waiter) = 0;
  /// A re-entry found no hold to be nested in. The waiter joins the line.
  virtual void queue(std::shared_ptr<acquisition> waiter) = 0;
  /// Redis has granted the last attempt of `first`. Makes its hold, and moves the other waiters of its owner to
  /// re-entries.
  virtual std::shared_ptr<lease_record> granted(const acquisition& first, const granted_field& grant) = 0;
  /// Releases a field that was granted or may still be, and that no call waits for. `tried`: as in
  /// releases::release_in_background().
  virtual void give_back(const owner_field& field, milliseconds ttl, function<void()> tried, primary_set at) = 0;
  /// An empty line may keep its subscription: this client holds the lock, or cools down.
  virtual bool may_linger() const = 0;
  /// The last waiter has left. Destroys the line, and perhaps the host.
  virtual void line_empty() = 0;

 protected:
  ~line_host() = default;
};

/// The waiters of one name in this client, first in, first out. Only the first talks to Redis:
///   try → busy → subscribe → acknowledged → try again → park → try.
/// It parks until a message comes or a time is over: the holder's TTL, the poll cap, the kind's next poll or the
/// deadline. It does not try while its own client holds the lock.
///
/// A waiter gives its field back when it leaves, when its grant comes too late, or after two unanswered attempts. The
/// line is then blocked until Redis may have received that release. Written together, a release and the next acquire
/// would never leave the lock free for other clients. After two unanswered attempts a pause follows. It doubles until
/// an answer comes, or until the line is empty.
///
/// Where replicas must have a grant, the line waits for them as for an answer. A grant that too few replicas have is
/// given back.
///
/// Where clients take turns, an empty line keeps its subscription until the cool-down ends, at most a second. The next
/// waiter finds it there. The release's count of subscribers is known to include this client. The client also notices
/// the turns of other clients.
///
/// A call that lets a waiter leave may destroy the line. A caller that uses the line afterwards keeps it alive.
class waiting_line final : public std::enable_shared_from_this<waiting_line>,
                           private acquisition_place,
                           private subscriber {
 public:
  waiting_line(environment& env, owner_fields& fields, line_host& host, shared_keys keys);
  waiting_line(const waiting_line&) = delete;
  waiting_line& operator=(const waiting_line&) = delete;
  ~waiting_line();

  void join(std::shared_ptr<acquisition> waiter);
  /// The reason of an attempt, for the metrics.
  enum class incentive : std::uint8_t { none, news, poll };
  /// The lock may be free. The first waiter tries now, or once more after the attempt in flight. It tries later if the
  /// wake budget is spent.
  void wake(incentive why = incentive::news);
  const std::string& name() const noexcept { return keys_->name; }
  /// No call waits. The line lingers, or a release is under way.
  bool empty() const noexcept { return waiters_.empty(); }
  std::size_t size() const noexcept { return waiters_.size(); }
  template <class F>
  void each_waiter(F action) {
    for (auto& seat : waiters_) action(*seat.kept);
  }
  /// No call waits, and the line keeps its subscription.
  bool lingers() const noexcept { return lingers_; }
  /// The line may be gone afterwards.
  void stop_lingering();
  /// The server has confirmed the subscription.
  bool listens() const noexcept { return subscription_ && listens_; }
  /// The first waiter, if it could take a claim over now. Null: it has an attempt under way, asks once, or wants
  /// several locks.
  const acquisition* successor() const noexcept;
  /// The successor has its hold, by a hand-over. The line may be gone afterwards.
  void inherited(std::shared_ptr<lease_record> record);
  /// Takes out a waiter of this owner, without an answer. It stands behind the first and would re-enter. Null: there is
  /// none.
  std::shared_ptr<acquisition> extract(owner_id owner);
  /// Answers the waiters for which `matches(const acquisition&)` is true. The last of them first: when the first
  /// leaves, the next one would send a useless attempt.
  template <class Predicate>
  void fail(Predicate matches, error_code error, const char* detail) {
    std::vector<std::shared_ptr<acquisition>> leaving;
    for (auto seat = waiters_.rbegin(); seat != waiters_.rend(); ++seat)
      if (matches(std::as_const(*seat->kept))) leaving.push_back(seat->kept);
    each_step all;
    for (const auto& waiter : leaving) all([&] { leave(*waiter, {error, detail, nullptr}); });
    all.rethrow();
  }
  /// The same for the waiters of one owner that was given or bound.
  void fail_all_of(owner_id owner, error_code error, const char* detail);

 private:
  /// A line that is blocked_on_release is not woken by messages. It may be empty.
  enum class step { idle, trying, parked, blocked_on_release };
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
  nanoseconds cool_down_left() const;
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
  std::map<std::pair<owner_id, std::uint64_t>, acquisition*> bound_;  // waiters whose owner was given or bound
  std::uint64_t joined_ = 0;
  std::size_t pending_giveback_ = 0;  // releases of fields that were neither answered nor cut off yet
  nanoseconds polled_{};              // the next pause between polls; doubles with each poll
  nanoseconds backoff_delay_{};       // the pause after two unanswered attempts; doubles until an answer comes
  step step_ = step::idle;
  bool woken_ = false;         // while trying: one more try must follow
  bool cooling_down_ = false;  // while parked: other clients have their turns
  bool lingers_ = false;
  incentive incentive_ = incentive::none;  // of the attempt under way
  bool listens_ = false;                   // Redis has confirmed the present subscription
  std::optional<time_point> known_held_;   // the last proof that the lock was held: an answer, or a hold of this client
  primary_set granted_in_part_ = 0;        // the primaries that granted the last attempt, which was divided
  wake_budget wake_ups_;
  std::optional<failure> last_failure_;  // why the last attempt failed
  subscription subscription_;
  timer park_;
};

}  // namespace holdfast::detail
