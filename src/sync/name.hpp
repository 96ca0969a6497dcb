// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/options.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <boost/intrusive/slist.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sync/hold/engine_parts.hpp"
#include "sync/hold/hold.hpp"
#include "sync/hold/last_holders.hpp"
#include "sync/line/hand_over.hpp"
#include "sync/line/waiting_line.hpp"

namespace holdfast::detail {

class name;

inline constexpr const char* drained_without =
    "it is being drained, and only an owner that holds may still lock or wait";

/// The part of the registry that a name uses: the engine's parts, the state of a drain, and the end of a name.
class name_host {
 public:
  const engine_parts& parts;
  owner_fields fields;
  std::optional<last_holders> may_lock;  // from drain() until close(): the owners that still hold
  std::vector<hold_ptr> changing;        // holds with a change under way at close()

  bool refuses(owner_id owner) const { return may_lock && !may_lock->contains(owner); }
  /// Called while the client drains: one hold of this owner has ended.
  virtual void hold_is_over(owner_id owner) = 0;
  /// Nothing uses the name any more: destroys it.
  virtual void unused(name& forgotten) noexcept = 0;

 protected:
  name_host(const engine_parts& parts, owner_fields of_client) : parts(parts), fields(std::move(of_client)) {}
  ~name_host() = default;
};

/// One name of this client: the line of its waiters, its holds, and its releases under way.
///
/// Decision: a name knows everything that uses it. The line, the holds and the releases of a name refer to it, and
/// reach it without a look-up. The name goes with the last of them. A hold is known by its address alone, because its
/// leases own it. A hold without a lease keeps itself until its name has forgotten it.
///
/// A name is the one place where a lock changes hands:
///   granted by Redis, or passed on → hold → ended → released, or passed on.
/// A lost hold stays until its leases are gone, so that its owner finds the loss when it locks again. A name may
/// therefore have several holds. Of a kind that does not bar it may have several that live.
///
/// A name acts, and its line decides: each event goes to the rules of the line (line_rules.hpp), and the name performs
/// the action that they return. name_waiters.cpp has these acts, name_places.cpp those of a kind with an order of
/// all waiters; name.cpp has the holds, the releases and the end.
///
/// Decision: nothing is destroyed inside a call. Each way into a name is a visit. When the outermost visit ends, a line
/// that is over goes, and so does a name that nothing uses. Calls that come back meanwhile are visits inside it.
class name final : public line_place,
                   public hold_host,
                   public place_host,
                   private subscriber,
                   public boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>> {
 public:
  /// Orders the names, usually by the hash. Two kinds of lock with different keys are two names.
  struct key {
    std::uint32_t hash;
    std::string_view text;
    const key_layout* layout;

    static key of(const lock_keys& keys) noexcept { return {keys.hash, keys.name, &keys.of.layout}; }
    static key first_of(std::string_view text) noexcept { return {hash_of(text), text, nullptr}; }
    friend bool operator==(const key&, const key&) = default;
    friend bool operator<(const key& left, const key& right) noexcept {
      if (left.hash != right.hash) return left.hash < right.hash;
      const auto texts = left.text.compare(right.text);
      return texts < 0 || (texts == 0 && std::less<>()(left.layout, right.layout));
    }
  };
  struct key_of {
    using type = key;
    key operator()(const name& each) const noexcept { return key::of(*each.keys_); }
  };

  /// One call into the name. The name and its line stay at least until the end of the visit.
  class visit {
   public:
    explicit visit(name& of) noexcept : of_(&of) { ++of.visits_; }
    visit(visit&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    visit& operator=(visit&&) = delete;
    ~visit() {
      if (of_) of_->leave_visit();
    }
    name* operator->() const noexcept { return of_; }
    name& operator*() const noexcept { return *of_; }

   private:
    name* of_;
  };

  name(name_host& host, shared_keys keys) noexcept : host_(host), keys_(std::move(keys)) {}
  name(const name&) = delete;
  name& operator=(const name&) = delete;
  ~name() = default;

  const shared_keys& keys() const noexcept { return keys_; }
  /// The waiters. Null: there is none, and no lingering subscription.
  waiting_line* line() const noexcept { return line_.get(); }
  /// A hold that has not ended. Null: there is none.
  hold* live_hold();
  /// The hold that other callers of this client wait for. Null: there is none, or no hold bars them.
  hold* barring_hold();
  /// The hold of this owner, which may be lost while its leases live. Null: there is none.
  hold* hold_of(owner_id owner);
  /// The same, for a call of this owner that would be nested in it. Null: no such call is nested.
  hold* outer_of(owner_id owner) { return keys_->of.nested == kind::nesting::anew ? nullptr : hold_of(owner); }
  template <class Visitor>
  void each_hold(Visitor visit) {
    for (auto& each : holds_) visit(each);
  }
  /// True: nobody of this client holds the name or waits for it.
  bool untouched();

  /// Puts the call into the line.
  void join(std::shared_ptr<acquisition> caller);
  /// Nests a call in a hold of its owner: it gets another lease at once (set_hold_count.hpp), or after an answer of
  /// Redis (reentry.hpp).
  void nest(hold& outer, const std::shared_ptr<acquisition>& caller);
  /// Why a call of this kind gets no lease of the hold that its owner has, as text for a person. Null: it may get one.
  static const char* refusal_in(const hold& outer, const kind& wanted) noexcept;
  /// A hold of this kind and these terms may have leases of several owners.
  static bool may_share(const kind& of, const terms& asked) noexcept;
  /// Lets the call join the newest hold of another owner, without a command. False: it has to ask.
  bool let_join(acquisition& caller);
  /// Reports a call that may wait for its own task.
  void report_own_wait(acquisition& caller);
  /// True: a hold that a call of this kind waits for has a lease without owner, and has been there since then.
  bool held_since(const kind& caller, time_point since) const;
  /// The lock may be free, so the first waiter tries.
  void wake() noexcept;
  /// The server `node` has pushed a change of the key by another client.
  void key_changed(node_id node);
  /// A server begins to push changes, or has forgotten its promise to, or any key may have changed. The first waiter
  /// asks within `spread`.
  void key_in_question(nanoseconds spread);
  /// force_unlock() of this client was answered.
  void forced(bool was_held);
  /// Redis has granted the lock to this field: makes a hold. Waiters of its owner become re-entries.
  std::shared_ptr<lease_record> hold_for(const lock_request& request, const shared_keys& keys, const owner_field& field,
                                         const attempt& grant, time_point now);
  /// Redis has made the hold of `write` one of the reader's side: makes that hold, with a lease like `write`, and ends
  /// the other. The caller has taken the release of `write`.
  std::shared_ptr<lease_record> downgraded(lease_record& write, const shared_keys& reader, const outcome& answer,
                                           time_point now);
  /// How long the lock is kept for the clients that this client asks.
  milliseconds reserve() const noexcept { return line_ ? line_->rules.reserve() : departure().reserve; }
  /// Releases a field that was granted or may still be, and that no call waits for. `tried`: as in
  /// releases::release_in_background().
  void give_back(const shared_keys& keys, const owner_field& field, milliseconds ttl, function<void()> tried,
                 primary_set at);
  /// Answers the waiters for which `matches(const acquisition&)` is true.
  template <class Predicate>
  void fail(Predicate matches, error_code error, const char* detail) {
    if (line_) fail(line_->matching(matches), error, detail);
  }
  /// Answers the waiters of one owner that was given or bound.
  void fail_all_of(owner_id owner, error_code error, const char* detail);
  /// Called when all waiters were answered and all holds are lost. The leases stay, and refer to the name no more.
  void close();
  /// The engine ends. No caller is answered.
  void take_apart();

 private:
  // A single list saves each held lock two words. To leave it takes a walk: most names have one hold, and a semaphore
  // has its permits.
  using holds = boost::intrusive::slist<
      hold, boost::intrusive::member_hook<hold, boost::intrusive::slist_member_hook<>, &hold::of_host>,
      boost::intrusive::constant_time_size<false>>;

  // line_place
  void leave(acquisition& waiter, lock_answer why) override;
  void time_out(acquisition& waiter) override;
  void attempt_answered(acquisition& waiter, const outcome& outcome) override;
  void settled(acquisition& waiter, const attempt& attempt) override;
  void queue(std::shared_ptr<acquisition> caller) override;
  // subscriber
  void on_subscribed() override;
  void on_message(std::string_view payload) override;
  void on_rumour(std::string_view payload) override;
  void on_subscribe_failed(error_code error, const std::string& detail) override;
  std::uint32_t free_at() const override { return line_->rules.granted_in_part(); }
  // hold_host
  void ended(hold& over) override;
  void came(owner_id owner) override;
  void left(owner_id owner) override;
  void forget(hold& over) override;
  bool pass_on(hold& before, const handoff_offer& offer) override;
  // release_host
  void release_begins() override { ++releasing_; }
  departure departs(const lock_keys& keys, bool of_hold) override;
  bool keeps_place(const lock_keys& keys) const override;
  rider rides() override;
  bool still_rides(const owner_field& next) const override;
  void rode(const ride_end& end) override;
  void release_ends(const release_end& end) override;

  // place_host
  void place_called(std::uint8_t place, std::string_view message) override;
  void places_shown(const answer<stand_answer>& answer) override;
  void places_unheard(error_code error, const std::string& detail) override;
  void places_due() override;

  // The places of the waiters.
  call attempt_in_order(const acquisition& waiter);
  void note_turn(std::string_view turn) noexcept;
  void tend_places() noexcept;
  void leave_places(place_keeper& keeper) noexcept;
  void freed(const release_end& end);

  /// Calls of this client by name, in the queue of the lock.
  class calls_by_name;
  void on_call(std::string_view payload);

  environment& env() const noexcept { return host_.parts.env; }
  void leave_visit() noexcept;

  static bool is_copy(const lock_keys& keys, std::string_view payload) noexcept;

  // The waiters: events.
  void enter_line(const std::shared_ptr<acquisition>& caller);
  void begin(acquisition& waiter);
  void on_attempt(acquisition& waiter, const attempt& attempt);
  void count_incentive(const acquisition& waiter, const attempt& attempt);
  void on_replicas(acquisition& waiter, const attempt& attempt, const std::optional<failure>& too_few);
  void heard(bool by_ourselves, queue_place::message message = {});
  void on_given_back();
  void doubt_hold_here();
  void end_lingering();
  void fail(const std::vector<std::shared_ptr<acquisition>>& leaving, error_code error, const char* detail);
  // The waiters: conditions and actions.
  static line_waiter seen(acquisition& waiter) noexcept;
  line_conditions conditions();
  /// `concerned`: the waiter that leaves or is given something. `answer`: of its attempt.
  void act(const line_action& action, acquisition* concerned = nullptr, const attempt* answer = nullptr);
  void perform(const line_action& action, acquisition* concerned = nullptr, const attempt* answer = nullptr);
  void set_alarm(const line_action& action) noexcept;
  void perform_act(const line_action& action, acquisition* concerned, const attempt* answer);
  template <class Step>
  void or_not_done(Step step);
  void follow(const line_action& action);
  subscription listen();
  void send_attempt(acquisition& waiter);
  std::span<const owner_field> gather_party(acquisition& first);
  struct served_waiter {
    std::shared_ptr<acquisition> caller;
    std::shared_ptr<lease_record> lease;
  };
  void give_back_leavers(const std::vector<owner_field>& party, std::size_t asked_for, milliseconds ttl);
  void forget_attempt_of(const std::vector<owner_field>& party) noexcept;
  void give_back_behind_first(milliseconds ttl);
  std::vector<served_waiter> settle_party(const std::vector<owner_field>& party, const attempt& attempt);
  void wait_for_replicas(acquisition& waiter, const attempt& attempt);
  void grant(acquisition& waiter, const attempt& answer);
  std::vector<served_waiter> let_join_behind_first(hold& open);
  lock_answer answer_of_silence(const acquisition& waiter) const;
  std::shared_ptr<acquisition> take_out(acquisition& waiter, bool served);
  void finish(acquisition& waiter, lock_answer&& answer);
  static void tell(acquisition& leaver, lock_answer&& answer);

  // The turns of this client.
  bool held_here() const;
  bool may_nest(const lock_request& request) const;
  bool held_by(owner_id owner);
  template <class Visitor>
  void each_unbound_before(const kind& caller, Visitor visit) const;
  bool may_linger() const;
  void share();
  nanoseconds found_busy(const acquire_answer& busy);
  timer_queue::action when_cool();
  void end_turn(const release_end& end);

  // The holds.
  template <class First>
  std::shared_ptr<lease_record> begin(const hold_ptr& next, First make_lease);
  std::shared_ptr<lease_record> take_over(hold& before, const acquisition& successor, time_point now);
  void report_pass(const hold& before, milliseconds ttl, time_point now) const;
  bool enter(hold& outer, acquisition& caller);
  static std::shared_ptr<lease_record> enter(hold& open, const lock_request& request, time_point now);
  static void tell_entered(hold& outer, acquisition& caller, std::shared_ptr<lease_record>&& lease);
  void reenter(hold& outer, std::shared_ptr<acquisition> caller);
  void move_to_hold_of(const lock_request& request, hold& granted);
  void move_to(hold& outer, std::shared_ptr<acquisition> caller) noexcept;
  hold_ptr take_out_first();

  name_host& host_;
  const shared_keys keys_;
  std::unique_ptr<waiting_line> line_;
  holds holds_;  // also lost ones
  hand_over hand_over_;
  std::uint32_t releasing_ = 0;
  std::uint32_t visits_ = 0;
};

}  // namespace holdfast::detail
