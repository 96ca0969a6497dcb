// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <holdfast/config.hpp>

#include "base/backoff.hpp"
#include "base/lease_clock.hpp"
#include "base/random.hpp"
#include "protocol/kind.hpp"
#include "sync/line/lock_request.hpp"
#include "sync/line/queue_place.hpp"
#include "sync/line/wake_budget.hpp"

namespace holdfast::detail {

/// One waiter of a line, as the rules see it.
struct line_waiter {
  const lock_request& request;
  const kind& row;
  time_point since;      // the time of the call
  time_point answer_by;  // the end of a try_lock()'s time; of no other call
  attempts& tries;
  retry_backoff& backoff;
};

/// The facts of a decision that lie outside of the line.
struct line_conditions {
  time_point now;
  std::optional<line_waiter> first;  // empty: no call waits
  bool held_here;                    // this client has a hold that bars its waiters
  bool owner_holds = false;          // the first waiter's owner does, by another call, and the waiter may re-enter
  time_point cool_down_until;        // waiters of this client ask no earlier: other clients have their turns
  bool may_linger = false;           // an empty line may keep its subscription
  bool leaving = false;              // the place of a waiter that has left still stands
  nanoseconds again_after = nanoseconds::max();  // after a busy answer: ask again no later than that
};

/// The one thing that follows from an event.
struct line_action {
  enum class act : std::uint8_t {
    wait,     // for the next event; a running alarm goes on
    send,     // the first waiter's attempt; no alarm runs
    confirm,  // the grant waits for its replicas
    grant,    // the first waiter has the lock
    reenter,  // the first waiter leaves the line, and re-enters the hold of its owner
    done,     // the waiter leaves with `failed`; without it: contention
    silent,   // the waiter leaves; the silence of the server decides between contention and unreachable
    park,     // until `until`, or an earlier event
    rest,     // until an event; no alarm runs
  };
  act then = act::wait;
  time_point until{};
  owner_field given_back{};             // before the act: this field is released
  primary_set given_back_at = nowhere;  // at these primaries; nowhere: nothing is released
  bool waits = false;                   // the first waiter waits from now on, for the metrics
  bool outage = false;                  // the observer hears of `failed`
  const failure* failed = nullptr;      // lives until the next event; null: contention
};

/// Decides for the waiters of one name, and does nothing itself: an event and the present conditions in, one action
/// out. It has no clock, no timer, no server and no memory of waiters. The name performs the action (name.hpp).
///
/// Only the first waiter talks to Redis:
///   send → busy → listen → acknowledged → send → park → send.
/// It parks until a message comes or a time is over: the holder's TTL, the poll cap, the kind's next poll or the
/// deadline. It does not send while its own client holds the lock. The table of the states is in line_rules.cpp.
///
/// A waiter gives its field back when it leaves, when its grant comes too late, or after two unanswered attempts. The
/// line is then blocked until Redis may have received that release. After two unanswered attempts a pause follows. It
/// doubles until an answer comes, or until the line is empty.
///
/// Where replicas must have a grant, the line waits for them as for an answer. A grant that too few replicas have is
/// given back.
///
/// A waiter for several permits closes a door (permit_lock.cpp): newcomers of other clients get none until there are
/// enough. It asks again at least every `looks`, because the door expires. When it leaves, its field is released. The
/// release opens the door.
///
/// Of a kind with a queue in Redis the first waiter stands there for its client, once the line listens. It asks again
/// when its client is called, and after the messages and releases that queue_place.hpp names. It also asks at least
/// every `looks`. The place stays for the next waiter of the same kind. Otherwise the release of the leaving field
/// gives it up.
///
/// Of a kind with an order of all waiters each waiter stands for itself (places.hpp), and the first one asks. It asks
/// when one of the places is called, and when the lock may be free without a call. If the turn is of another client, it
/// asks again after 300 to 400 ms, in which a client on a slow link comes. That attempt suspects the other place, and
/// the script drops it. A release of this client takes the lock for the first waiter: it rides.
///
/// Where clients take turns, an empty line lingers: it keeps its subscription until the cool-down ends, at most a
/// second. The next waiter finds it there. The release's count of subscribers is known to include this client. The
/// client also notices the turns of other clients.
class line_rules {
 public:
  /// The reason of an attempt, for the metrics.
  enum class incentive : std::uint8_t { none, news, poll };
  enum class step : std::uint8_t { idle, trying, parked, blocked };

  /// `of`: the kind whose polls the line keeps. `settings` and `random` outlive the rules.
  line_rules(const kind& of, const config& settings, random_source& random) noexcept
      : polls_(of.polls), looks_(of.looks), ordered_(of.ordered()), settings_(settings), random_(random) {}

  // Events. Each is answered by one action.
  /// A waiter has come, and is the first.
  line_action joined(const line_conditions& at);
  /// The lock may be free. The first waiter sends now, or once more after the attempt in flight. It sends later if the
  /// wake budget is spent.
  line_action woken(incentive why, const line_conditions& at);
  /// A message says that the lock was freed. Of a kind with a queue it says by whom.
  line_action heard(const line_conditions& at, queue_place::message message = {});
  /// Too few of several primaries say so, or a majority has pushed a change. Most often another waiter has given back a
  /// part of the votes, or the holder has renewed its lock.
  line_action rumoured(const line_conditions& at);
  /// The server has pushed a change of the key by another client. Of a lock at several primaries it is one of them,
  /// whose push counts as a message there: heard() or rumoured() follows.
  line_action pushed(const line_conditions& at);
  /// The server begins to push changes, or has forgotten its promise to, or any key may have changed. The first waiter
  /// asks again within `spread`. `pushes`: the server pushes changes now.
  line_action in_question(nanoseconds spread, bool pushes, const line_conditions& at);
  /// This client is called: its turn in the queue has come.
  line_action called(const line_conditions& at);
  /// A release of this client has its answer: so many others wait, as far as a kind with a queue knows.
  line_action released(std::uint64_t others, const line_conditions& at);
  line_action subscribed(const line_conditions& at);

  // Of a kind with an order of all waiters.
  /// Redis has answered which places stand, and the state of the lock. `others`: places of other clients.
  line_action shown(const stand_answer& state, unsigned others, const line_conditions& at);
  /// The places of waiters that have left stand no more.
  line_action places_left(const line_conditions& at);
  /// A release of this client has its answer: it is now the turn of `turn`.
  enum class turn : std::uint8_t { nobody, ours, other, unknown };
  line_action freed(turn turn, const line_conditions& at);
  /// A release may take the lock for the first waiter, with that waiter's field. Then rides() follows.
  bool may_ride(const line_conditions& at) const noexcept;
  /// The release is sent. Its answer is that of an attempt, or rode_in_vain() follows.
  void rides(const line_conditions& at);
  /// The release has no answer about the lock, and the field may have it.
  line_action rode_in_vain(const line_conditions& at);

  /// The server refuses the subscription.
  line_action unsubscribed(const failure& why, const line_conditions& at);
  /// The time of `park` has come.
  line_action alarm(const line_conditions& at);
  /// The server refuses the cheaper first command without a look at the lock. The script must follow.
  line_action first_try_refused(const line_conditions& at);
  /// The attempt has its answer.
  line_action answered(const attempt& answer, const line_conditions& at);
  /// The replicas have decided about the grant of this answer.
  line_action replicated(const attempt& answer, const std::optional<failure>& too_few, const line_conditions& at);
  /// The first copy of a release has run, or its connection has ended, or there was no memory for it.
  line_action given_back(const line_conditions& at);
  /// The deadline of a waiter has come, or half of the time of a try_lock() whose line is blocked.
  line_action timed_out(const line_waiter& waiter, const line_conditions& at);
  /// A waiter has left the line; `at.first` is the one after. `granted_at`: the primaries where an attempt of it may
  /// have run that has no answer. `served`: it has the lock.
  line_action left(const line_waiter& waiter, bool was_first, bool served, primary_set granted_at,
                   const line_conditions& at);
  /// The cool-down is over, and a lingering line ends.
  line_action stop_lingering(const line_conditions& at);
  /// The wishes of a release, for the place in the queue. `like`: the kind of the released field. `of_hold`: it has
  /// the lock.
  departure departs(const kind& like, bool of_hold, const std::optional<line_waiter>& first) noexcept;
  /// The first waiter has the lock by a hand-over. It leaves next.
  void inherited(time_point now) noexcept;
  /// There was no memory for the action. The first waiter is stuck until it leaves.
  void not_done() noexcept { step_ = step::idle; }
  /// A line without waiters is of no use any more: no release blocks it, and it does not linger.
  bool over() const noexcept { return giving_back_ == 0 && !lingers_; }

  // The state.
  bool trying() const noexcept { return step_ == step::trying; }
  /// The attempt of the first waiter is a release.
  bool riding() const noexcept { return trying() && riding_; }
  /// The first waiter is parked because it is the turn of another client.
  bool awaits_turn() const noexcept { return step_ == step::parked && awaits_turn_; }
  /// The attempt of the first waiter names the place whose turn it was, because it has not come.
  bool suspects() const noexcept { return suspects_; }
  bool blocked() const noexcept { return step_ == step::blocked; }
  /// The first waiter waits for nothing, for lack of memory.
  bool stuck() const noexcept { return step_ == step::idle; }
  /// An empty line keeps its subscription.
  bool lingers() const noexcept { return lingers_; }
  /// The line wants the messages of its channel.
  bool listening() const noexcept { return listening_; }
  /// The next attempt asks the server to push the next change of the key.
  bool wants_pushes(const lock_request& request, const kind& of, const attempts& tries) const noexcept {
    return of.pushed.waits && listens() && !request.asks_once() && !tries.first_try;
  }
  /// The server has confirmed the subscription.
  bool listens() const noexcept { return listening_ && listens_; }
  /// This client stands in the queue, or perhaps does.
  bool stands() const noexcept { return place_.stands(); }
  /// How long the lock is kept for the clients that this client asks.
  milliseconds reserve() const noexcept { return place_.reserve(); }
  /// The primaries that granted the last attempt, which was divided.
  primary_set granted_in_part() const noexcept { return known_.granted_in_part; }
  /// This answer shows that another client has the lock.
  bool shows_holder(const attempt& answer) const noexcept {
    const auto& reply = answer.reply;
    const bool busy = !reply.failed && reply.value.type == acquire_answer::kind::busy && !reply.value.split;
    return busy && (reply.value.holder_ttl || !listening_);
  }
  /// The validity of this grant is not nearly over.
  bool is_of_use(const attempt& grant, const lock_request& request, time_point now) const noexcept;
  /// The incentive of the attempt that ends. Asked once.
  incentive take_incentive() noexcept { return std::exchange(incentive_, incentive::none); }
  /// For the tests of the state table.
  step present_step() const noexcept { return step_; }

 private:
  using act = line_action::act;

  line_action next(const line_conditions& at, line_action before = {});
  line_action send(const line_conditions& at, line_action before = {});
  line_action acquired(const attempt& answer, const line_conditions& at);
  line_action taken(const attempt& answer, const line_conditions& at);
  line_action busy(const attempt& answer, const line_conditions& at, line_action before);
  line_action heed(queue_place::heed when, const line_conditions& at);
  line_action woken_within(nanoseconds pause, const line_conditions& at);
  nanoseconds patience() const;
  line_action await_turn(nanoseconds pause, const line_conditions& at);
  nanoseconds longest_split_pause(nanoseconds slowest, unsigned round) const;
  line_action fail(const failure& why, const line_conditions& at, line_action before);
  line_action leave(const failure* why, line_action before = {}) const;
  line_action park(time_point until, step step, line_action before = {});
  line_action park_lingering(time_point until, line_action before = {});
  line_action park_while_held(nanoseconds holder_ttl, time_point asked, nanoseconds poll, const line_conditions& at,
                              line_action before = {});
  time_point look_after(nanoseconds holder_ttl, time_point asked, nanoseconds poll, time_point now) const;
  line_action rest(line_action before);
  line_action give_back(attempts& tries, primary_set at, line_action before = {});
  void listen() noexcept;
  void note(const failure& why) noexcept;
  bool may_ask_again(const failure& why, const line_conditions& at) const;
  bool parked_while_held() const noexcept;
  nanoseconds cool_down_left(const line_conditions& at) const noexcept;
  nanoseconds first_poll() const noexcept;
  nanoseconds next_poll();

  const decltype(kind::polls)& polls_;
  const nanoseconds looks_;
  const bool ordered_;
  const config& settings_;
  random_source& random_;
  /// The line knows this by its attempts. It forgets it when it is over.
  struct knowledge {
    nanoseconds polled{};            // the next pause between polls; doubles with each poll
    nanoseconds backoff_delay{};     // the pause after two unanswered attempts; doubles until an answer comes
    std::optional<time_point> held;  // the last proof that the lock was held: an answer, or a hold of this client
    primary_set granted_in_part = nowhere;
    wake_budget wake_ups;
    std::optional<failure> last_failure;  // why the last attempt failed
  };

  knowledge known_;
  queue_place place_;
  std::size_t giving_back_ = 0;      // releases of fields that were neither answered nor cut off yet
  std::optional<time_point> alarm_;  // of `park`
  // The grant of the first waiter told the next one that the lock is busy: it asks again at this time.
  std::optional<time_point> next_is_busy_;
  std::optional<incentive> delayed_;  // while parked: of the wake-up that waits for its time
  step step_ = step::idle;
  incentive incentive_ = incentive::none;  // of the attempt under way
  bool woken_ = false;                     // while trying: one more attempt must follow
  bool heard_ = false;                     // while trying: the same, unless the answer is tracked
  bool tracked_ = false;                   // while parked: the server pushes the next change of the key
  bool forgotten_ = false;                 // while trying: what the answer says about that is out of date
  bool later_ = false;                     // while trying: the same, after the pause of a queue
  bool cooling_down_ = false;              // while parked: other clients have their turns
  bool riding_ = false;                    // while trying: the attempt is a release of this client
  bool only_stands_ = false;               // while parked: the first waiter has asked nothing, its place stands
  bool awaits_turn_ = false;               // while parked: until the place of another client should have come
  bool suspects_ = false;                  // of the attempt under way
  bool crowded_ = false;                   // the last answer about the queue: others wait, or have the lock
  bool lingers_ = false;
  bool listening_ = false;
  bool listens_ = false;
};

}  // namespace holdfast::detail
