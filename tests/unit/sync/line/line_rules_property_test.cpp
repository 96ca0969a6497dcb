// SPDX-License-Identifier: BSL-1.0
// Random events over a simulated line. The model knows obligations alone: who may send, which field must be given back,
// and how long a pause may be. It decides nothing itself.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"
#include "sync/line/acquisition.hpp"
#include "sync/line/discipline.hpp"
#include "unit/sync/kind_of_several.hpp"
#include "unit/sync/line/rules_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::failure;
using detail::line_action;
using detail::line_rules;
using detail::nanoseconds;
using detail::owner_field;
using detail::time_point;

namespace {

enum state { fresh, lingers, over, tries, parks, blocked, pauses, decides, states };
const std::array<std::string, states> state_names{"new",   "lingers", "over",   "tries",
                                                  "parks", "blocked", "pauses", "decides"};
const std::array<std::string, 9> act_names{"wait", "send",   "confirm", "grant", "reenter",
                                           "done", "silent", "park",    "rest"};
constexpr auto busy = detail::acquire_answer::kind::busy;

/// For each event and state the actions that were met, in the order of act_names.
using table = std::map<std::string, std::array<std::set<std::size_t>, states>>;

struct a_call_for_several final : detail::all_or_none_part {
  void part_is_first(std::size_t) override {}
  bool nothing_asked(std::size_t) const override { return false; }
  std::optional<redis::failure> silence_of_all() const override { return {}; }
  time_point since() const noexcept override { return {}; }
} several;

/// The number of sends that wake-ups may cause: 20 at once, then 100 a second.
class flood_limit {
 public:
  void reset() { times_.clear(); }
  bool allows(time_point now) {
    times_.push_back(now);
    if (times_.size() > 40) times_.pop_front();
    for (std::size_t i = 0; i < times_.size(); ++i)
      if (times_.size() - i > 20 + static_cast<std::size_t>((now - times_[i]) / 10ms) + 1) return false;
    return true;
  }

 private:
  std::deque<time_point> times_;
};

struct seeded {
  explicit seeded(std::uint64_t seed) : random(seed) {}
  seeded_random random;
};

class simulated_line : seeded, rules_fixture {
 public:
  simulated_line(const detail::kind& of, std::uint64_t seed, table& met)
      : seeded(seed), rules_fixture(of, random), met_(met), silent_(one_in(5)) {}

  void step() {
    ++step_;
    happen();
    if (line.empty() && lives_ && rules.over()) {
      must(!rules.listening(), "a line that is over listens to nothing");
      forget();
      if (one_in(2)) end();
    }
    check_it_waits_for_something();
  }

 private:
  // ---- events

  bool one_in(std::uint64_t n) { return random.next() % n == 0; }
  nanoseconds up_to(nanoseconds limit) { return random.up_to(limit); }

  void happen() {
    switch (random.next() % 16) {
      case 0:
      case 1: return join();
      case 2:
      case 3:
      case 4:
      case 5:
        if (in_flight_) return answer();
        if (granted_) return replicas();
        return pass_time(5ms);
      case 6: return one_in(4) ? change() : one_in(4) ? question() : message();
      case 7: return subscription();
      case 8: return release_ends();
      case 9: return other_hold_begins();
      case 10: return hold_ends();
      case 11: return cool_down();
      case 12: return cancel();
      default: return pass_time(one_in(4) ? 6s : one_in(2) ? 100ms : 3ms);
    }
  }

  void join() {
    if (line.size() >= 3 || (line.empty() && around.held_here && one_in(2))) return;
    auto wanted = request();
    wanted.owner = around.held_here && one_in(2) ? holder_ : owners_[random.next() % owners_.size()];
    wanted.bound = one_in(2);
    wanted.asked.ttl = detail::terms::duration(one_in(4) ? 100 : 30'000);
    wanted.asked.min_replicas = one_in(4) ? 1 : 0;
    if (one_in(3)) {
      wanted.wait = wait_mode::until_deadline;
      wanted.deadline = now + 1ms + up_to(2s);
    } else if (line.empty() && one_in(3)) {
      wanted.wait = wait_mode::once;
    }
    wanted.one_of_several = !wanted.asks_once() && one_in(6);
    wanted.found_taken = wanted.one_of_several && one_in(2);
    if (!wanted.one_of_several && !row.voted && one_in(6)) wanted.whole = &several;
    if (row.acquire_party.make && !wanted.whole && one_in(2)) wanted.amount = 2;
    auto& waiter = add(wanted);
    if (line.size() > 1) return;
    if (waiter.request.asks_once() && rules.blocked()) half_ = now + settings.command_timeout / 2;
    if (wanted.found_taken && !rules.blocked()) {
      proof_ = now;
      news_ = true;
    }
    follow(
        "joined", [&] { return rules.joined(at()); }, &waiter);
  }

  void answer() {
    auto& tried = line.front();
    in_flight_ = false;
    now += up_to(one_in(20) ? 31s : 2ms);
    rules.take_incentive();
    if (tried.tries.first_try && one_in(10)) {
      backoffs_ = 0;
      fields_.at(tried.tries.field) = false;
      return follow(
          "first_try_refused", [&] { return rules.first_try_refused(at()); }, &tried);
    }
    const auto dice = silent_ && !one_in(10) ? 0 : random.next() % 20;
    if (dice < 5) return no_answer(!one_in(3));
    if (dice < 7) return refused(one_in(3) ? errc::no_permission : errc::server_refused);
    if (dice < 12 && !around.held_here) return held({});
    held({.type = one_in(60) ? detail::acquire_answer::kind::busy_without_ttl : busy});
  }
  void no_answer(bool ran) {
    detail::attempt attempt{.reply = {failure{errc::unreachable, "", ran}, {}}, .answered = false, .sent = sent_};
    if (!ran) attempt.may_have_run = detail::nowhere;
    unanswered_now_ = ran && !row.voted;
    if (unanswered_now_) ++unanswered_;
    news_ = false;
    deliver(attempt, ran);
  }
  void refused(errc why) {
    backoffs_ = 0;
    news_ = false;
    deliver({.reply = {failure{why, ""}, {}}, .answered = true, .sent = sent_}, row.voted);
  }
  /// By the waiter, or by somebody else.
  void held(detail::acquire_answer reply) {
    const bool free = reply.type == detail::acquire_answer::kind::acquired;
    if (reply.type == busy && !line.front().tries.first_try) reply.holder_ttl = held_elsewhere();
    if (!free && row.voted && one_in(2)) reply.split = up_to(2s);
    if (free) granted_at_ = sent_;
    // Of a party the next waiter found it busy.
    if (free && row.acquire_party.make && one_in(2)) reply.holder_ttl = held_elsewhere();
    backoffs_ = 0;
    proof_ = now;
    news_ = true;
    const bool promised = !free && row.pushed.waits && !line.front().tries.first_try && one_in(2);
    tracked_ = promised && !forgotten_;
    owed_ |= heard_ && !tracked_;
    deliver({.reply = {{}, reply}, .answered = true, .sent = sent_, .tracked = promised}, free || row.voted);
  }
  /// `may_hold`: Redis may have granted the field.
  void deliver(const detail::attempt& attempt, bool may_hold) {
    auto& tried = line.front();
    if (!may_hold && unanswered_ == 0) fields_.at(tried.tries.field) = tried.tries.stands;
    reply_ = attempt.reply;
    granted_ = attempt;
    listened_ = rules.listening();
    follow_up_ = tried.tries.first_try;
    follow(
        "answered", [&] { return rules.answered(attempt, at()); }, &tried);
    follow_up_ = unanswered_now_ = false;
    reply_.reset();
  }

  void replicas() {
    auto attempt = *granted_;
    granted_.reset();
    now += up_to(10ms);
    std::optional<failure> too_few;
    if (one_in(2)) too_few = failure{errc::not_replicated, ""};
    if (too_few) news_ = false;
    follow(
        "replicated", [&] { return rules.replicated(attempt, too_few, at()); }, &line.front());
  }

  void message() {
    if (!lives_) return;
    for (auto n = one_in(20) ? 30 : 1; n > 0 && lives_; --n) {
      if (one_in(3)) {
        follow(
            "woken", [&] { return rules.woken(line_rules::incentive::news, at()); }, nullptr);
      } else if (rules.listens()) {
        tell(row.voted && one_in(2));
      }
      // The flood goes on: the answer is busy at once.
      if (in_flight_ && n > 1) {
        in_flight_ = false;
        held({.type = busy});
      }
    }
  }

  /// `rumour`: too few primaries say so.
  void tell(bool rumour) {
    if (!around.held_here) (in_flight_ ? heard_ : owed_) |= !line.empty() && rules.listening();
    if (rumour)
      follow(
          "rumoured", [&] { return rules.rumoured(at()); }, nullptr);
    else
      follow(
          "heard", [&] { return rules.heard(at()); }, nullptr);
  }

  /// By another program, while the server has promised to push it, or may have. Of several primaries a push counts as a
  /// message.
  void change() {
    if (!lives_ || !row.pushed.waits) return;
    for (auto n = one_in(20) ? 30 : 1; n > 0 && lives_; --n) {
      const bool concerned = !around.held_here && !line.empty();
      if (concerned && row.voted) forgotten_ |= in_flight_;
      if (concerned && !row.voted && (tracked_ || in_flight_)) owed_ = true;
      follow(
          "pushed", [&] { return rules.pushed(at()); }, nullptr);
      if (row.voted && rules.listens()) tell(one_in(2));
      if (in_flight_ && n > 1) {
        in_flight_ = false;
        held({.type = busy});
      }
    }
  }
  /// The server has forgotten its promises, begins to push, or any key may have changed.
  void question() {
    if (!lives_) return;
    const bool pushes = one_in(2);
    // An attempt that failed owes nothing to a line that has polls.
    const bool concerned = row.pushed.waits && !line.empty() && !around.held_here && (tracked_ || in_flight_);
    const bool owed_before = std::exchange(owed_, concerned);
    forgotten_ = in_flight_;
    follow(
        "in_question", [&] { return rules.in_question(up_to(5ms), pushes, at()); }, nullptr);
    tracked_ = false;
    owed_ |= owed_before;
  }

  void subscription() {
    if (!lives_ || !rules.listening()) return;
    auto* const first = line.empty() ? nullptr : &line.front();
    if (one_in(20)) {
      news_ = false;
      return follow(
          "unsubscribed",
          [&] {
            return rules.unsubscribed({errc::no_permission, ""}, at());
          },
          first);
    }
    if (rules.listens() && !one_in(10)) return;
    owe();
    follow(
        "subscribed", [&] { return rules.subscribed(at()); }, nullptr);
  }

  void release_ends() {
    if (releases_ == 0) return;
    --releases_;
    follow(
        "given_back", [&] { return rules.given_back(at()); }, nullptr);
  }

  // Another call of this client, for several locks, has brought the lock.
  void other_hold_begins() {
    if (around.held_here || !one_in(3)) return;
    hold_begins(owners_[random.next() % owners_.size()]);
    if (lives_)
      follow(
          "woken", [&] { return rules.woken(line_rules::incentive::news, at()); }, nullptr);
  }
  void hold_begins(owner_id of) {
    around.held_here = row.bars;
    holder_ = of;
    limit_.reset();
    // Waiters of the same owner behind the first leave the line without a word to the rules.
    for (auto waiter = line.begin(); waiter != line.end();)
      waiter = waiter != line.begin() && reenters(waiter->request) ? line.erase(waiter) : std::next(waiter);
  }
  void hold_ends() {
    if (!around.held_here && row.bars) return;
    around.held_here = around.owner_holds = false;
    proof_ = now;
    if (!line.empty() && !rules.trying() && !line.front().request.asks_once() && !line.front().request.whole &&
        one_in(2)) {
      const auto next = line.front().request.owner;
      rules.inherited(now);
      proof_ = now;
      news_ = true;
      hold_begins(next);
      return finish(line.front(), true);
    }
    if (one_in(2)) around.cool_down_until = now + up_to(200ms);
    if (lives_)
      follow(
          "woken", [&] { return rules.woken(line_rules::incentive::news, at()); }, nullptr);
    stop_lingering();
  }
  void cool_down() {
    around.may_linger = !around.may_linger;
    if (one_in(2)) around.cool_down_until = now + up_to(50ms);
    if (one_in(3)) stop_lingering();
  }
  void stop_lingering() {
    if (lives_ && rules.lingers())
      follow(
          "stop_lingering", [&] { return rules.stop_lingering(at()); }, nullptr);
  }

  void cancel() {
    if (line.empty() || !one_in(3)) return;
    auto leaver = line.begin();
    std::advance(leaver, random.next() % line.size());
    finish(*leaver, false);
  }

  // The next alarm or deadline, or nothing during this time. Now and then the process is suspended.
  void pass_time(nanoseconds most) {
    const auto later = now + up_to(most);
    auto due = std::min_element(line.begin(), line.end(),
                                [this](auto& left, auto& right) { return deadline_of(left) < deadline_of(right); });
    const auto deadline = due == line.end() ? time_point::max() : deadline_of(*due);
    const auto next = std::min(alarm_.value_or(time_point::max()), deadline);
    if (next > later) {
      now = later;
      return;
    }
    now = std::max(now, one_in(50) ? later : next);
    if (next == deadline) {
      half_.reset();
      return follow(
          "timed_out", [&] { return rules.timed_out(seen(*due), at()); }, &*due);
    }
    const auto fire = [&] {
      alarm_.reset();
      return rules.alarm(at());
    };
    follow("alarm", fire, line.empty() ? nullptr : &line.front());
  }
  time_point deadline_of(const rules_waiter& waiter) const {
    if (waiter.request.asks_once()) return half_ && &waiter == &line.front() ? *half_ : time_point::max();
    return waiter.request.deadline;
  }

  // ---- the name's part: the action is performed

  template <class Event>
  void follow(const std::string& event, Event decide, rules_waiter* concerned) {
    const auto before = present();
    lives_ = true;
    const auto outer = std::exchange(event_, event);
    around.owner_holds = !line.empty() && around.held_here && reenters(line.front().request);
    const auto action = decide();
    if (event == "answered" && action.then != act::confirm) granted_.reset();
    last_.push_back({event, before, action.then});
    if (last_.size() > 12) last_.pop_front();
    met_[event][before].insert(static_cast<std::size_t>(action.then));
    check_owed(before, action);
    if (action.then == act::send && before == parks && news_) proof_ = now;  // the wait was for the holder
    const bool released = action.given_back_at == detail::nowhere || release(action.given_back);
    if (!action.given_back.empty() && action.given_back_at == detail::nowhere) fields_.erase(action.given_back);
    const bool memory = line.empty() || !needs_memory(action.then) || !one_in(500);
    if (!memory) {
      rules.not_done();
      granted_.reset();
    } else {
      perform(action, concerned);
    }
    if (!released) release_found_no_memory();
    while (!memory && !line.empty() && rules.stuck()) finish(line.front(), false);
    event_ = outer;
  }
  void release_found_no_memory() {
    follow(
        "given_back", [&] { return rules.given_back(at()); }, nullptr);
  }
  static bool needs_memory(act then) { return then == act::send || then == act::park || then == act::confirm; }

  void perform(const line_action& action, rules_waiter* concerned) {
    switch (action.then) {
      case act::wait: return;
      case act::rest: alarm_.reset(); return;
      case act::park:
        check_pause(action);
        alarm_ = action.until;
        return;
      case act::send: return send(action);
      case act::confirm: return;
      case act::grant: return grant();
      case act::reenter:
        must(around.owner_holds, "only a waiter whose owner holds re-enters");
        return finish(line.front(), false);
      case act::done:
        if (!action.failed) check_contention(*concerned);
        return finish(*concerned, false);
      case act::silent: return finish(*concerned, false);
    }
  }

  void send(const line_action& of) {
    auto& waiter = line.front();
    const bool once = waiter.request.asks_once();
    must(!in_flight_ && !granted_, "no two attempts are under way");
    must(releases_ == 0 || once, "nothing is sent while a release blocks");
    must(!around.held_here || once || follow_up_ || event_ == "first_try_refused",
         "no attempt begins while this client holds");
    if (event_ == "heard" || event_ == "rumoured" || event_ == "woken" || event_ == "subscribed" || event_ == "pushed")
      must(limit_.allows(now), "wake-ups have a budget");
    alarm_.reset();
    half_.reset();
    if (waiter.tries.field.empty()) unanswered_ = 0;
    sent(of);
    fields_[waiter.tries.field] = true;
    in_flight_ = true;
    owed_ = heard_ = tracked_ = forgotten_ = false;
    sent_ = now;
  }

  void grant() {
    auto& waiter = line.front();
    // 1 % and 2 ms of drift, and 5 % of the TTL for the holder, 2 ms at least.
    must(now < granted_at_ + (waiter.request.asked.ttl.count() == 100 ? 92ms : 28'198ms), "a grant is of use");
    limit_.reset();
    if (one_in(500)) return finish(waiter, false);  // no memory for the hold
    fields_.erase(waiter.tries.field);
    waiter.tries.unanswered = 0;
    waiter.tries.field.clear();
    hold_begins(waiter.request.owner);
    // The name wakes the line: the first waiter may be of the same owner.
    if (waiter.request.bound && row.nested != detail::kind::nesting::anew)
      follow(
          "woken", [&] { return rules.woken(line_rules::incentive::news, at()); }, nullptr);
    finish(waiter, true);
  }

  bool release(const owner_field& field) {
    must(fields_.erase(field) == 1, "a field is given back once, and never while it is a hold");
    unanswered_ = 0;
    const bool memory = !one_in(500);
    if (memory) ++releases_;
    return memory;
  }

  void finish(rules_waiter& waiter, bool served) {
    const bool was_first = &waiter == &line.front();
    auto may_hold = detail::first_asks().may_have_granted(waiter.tries);
    if (was_first && rules.trying()) {
      const bool written = !one_in(4);
      if (in_flight_ && written) may_hold = detail::everywhere;
      if (in_flight_ && !written && unanswered_ == 0) fields_[waiter.tries.field] = waiter.tries.stands;
      in_flight_ = false;
      granted_.reset();
    }
    if (was_first) half_.reset();
    std::list<rules_waiter> leaving;
    leaving.splice(leaving.begin(), line,
                   std::find_if(line.begin(), line.end(), [&](auto& each) { return &each == &waiter; }));
    follow(
        "left", [&] { return rules.left(seen(waiter), was_first, served, may_hold, at()); }, &waiter);
    const auto field = fields_.find(waiter.tries.field);
    must(field == fields_.end() || !field->second, "a field of unknown fate is given back by the waiter that leaves");
    if (field != fields_.end()) fields_.erase(field);
  }

  /// A line that is over begins anew, whether it is destroyed meanwhile or not.
  void forget() {
    must(fields_.empty(), "a line that is over has no field left");
    proof_ = {};
    news_ = owed_ = heard_ = tracked_ = forgotten_ = false;
    backoffs_ = 0;
    limit_.reset();
  }
  void end() {
    std::destroy_at(&rules);
    std::construct_at(&rules, row, settings, random);
    lives_ = false;
    alarm_.reset();
  }

  // ---- the model

  void must(bool holds, const char* rule) const {
    if (holds) return;
    auto text = std::string(rule) + ", at step " + std::to_string(step_) + " (" + event_ + "). The last events:";
    for (const auto& [event, before, then] : last_)
      text += "\n  " + event + " in " + state_names[before] + ": " + act_names[static_cast<std::size_t>(then)];
    throw std::logic_error(text);
  }

  state present() const {
    using step = line_rules::step;
    switch (rules.present_step()) {
      case step::trying: return tries;
      case step::parked: return parks;
      case step::blocked: return alarm_ ? pauses : blocked;
      case step::idle: break;
    }
    if (!event_.empty()) return decides;
    return rules.lingers() ? lingers : lives_ ? over : fresh;
  }
  bool reenters(const detail::lock_request& request) const {
    const bool nests = row.nested != detail::kind::nesting::anew;
    return nests && request.bound && !request.one_of_several && request.owner == holder_;
  }
  milliseconds held_elsewhere() {
    // Redis has run the attempt at once, and the answer took its time.
    const bool changes = holder_until_ <= sent_ || one_in(40);
    if (changes) holder_until_ = sent_ + 20ms + up_to(10s);
    // A slow answer does not show that the holder has changed. The next one does.
    if (changes || unnoticed_) limit_.reset();
    unnoticed_ = (changes || unnoticed_) && now - sent_ > 10ms;
    return std::chrono::ceil<milliseconds>(holder_until_ - sent_);
  }
  void owe() {
    if (!line.empty() && rules.listening()) owed_ = true;
  }

  void check_it_waits_for_something() const {
    must(rules.trying() == (in_flight_ || granted_.has_value()), "the line tries while an answer is missing");
    if (!line.empty())
      return must(rules.trying() || alarm_ || releases_ > 0, "a line with waiters waits for something");
    must(!lives_ || rules.over() || releases_ > 0 || (rules.lingers() && alarm_),
         "an empty line is over, lingers or is blocked");
  }

  // A message or an acknowledgement causes one more attempt, at the latest in 10 ms, unless the reason to wait is
  // another one. A busy answer is followed by listening.
  void check_owed(state before, const line_action& action) {
    const bool woken = event_ == "heard" || event_ == "rumoured" || event_ == "subscribed" || event_ == "in_question" ||
                       (event_ == "pushed" && !row.voted);
    const bool answered = reply_ && event_ == "answered" && !reply_->failed;
    const bool found_busy = answered && reply_->value.type == busy && action.then == act::park;
    if (found_busy) must(rules.listening() || rules.blocked(), "a busy answer is followed by listening");
    if (unanswered_now_ && event_ == "answered" && unanswered_ >= 2 && !line.front().request.asks_once())
      must(!action.given_back.empty() && ++backoffs_ > 0, "two unanswered attempts are given back");
    if (!owed_ || !((woken && before == parks) || (found_busy && listened_))) return;
    const auto until = action.then == act::park ? action.until : alarm_.value_or(time_point::max());
    const bool may_wait = around.held_here || around.cool_down_until > now || rules.blocked();
    must(may_wait || (action.then != act::wait && action.then != act::park) || until <= now + 10ms,
         "a message or a change causes one more attempt");
  }

  void check_pause(const line_action& action) {
    const auto pause = action.until - now;
    must(pause <= std::max<nanoseconds>(settings.poll_cap, 1s), "a pause is bounded");
    if (line.empty()) return must(pause == 1s && rules.lingers(), "an empty line lingers for a second");
    if (event_ == "given_back" && rules.blocked())
      return must(pause == backoff(), "the pause of a silent server doubles");
    if (!reply_ || event_ != "answered") return;
    if (reply_->failed) return must(pause >= 20ms && pause <= 1s, "a failure is followed by 20 ms to a second");
    const auto& answer = reply_->value;
    if (answer.type != busy) return;
    if (rules.blocked()) {
      const auto slowest = std::min<nanoseconds>(*answer.split, 1s);
      const auto cap = std::min<nanoseconds>(std::max<nanoseconds>(2 * slowest, settings.poll_cap), 1s);
      return must(pause <= std::min(slowest * (1U << line.front().tries.splits), cap),
                  "the pause after a divided vote is bounded");
    }
    if (line.front().tries.stands) must(pause <= 500ms, "a waiter that stands looks again before its trace fades");
    // A message came during the attempt, and something else than the holder is waited for.
    if (around.held_here || around.cool_down_until > now) return;
    if (row.polls.longest > 0ms && !tracked_) must(pause <= row.polls.longest, "a silent kind is polled");
    if (answer.holder_ttl) must(pause <= *answer.holder_ttl + 2ms, "a holder's TTL bounds the pause");
  }
  nanoseconds backoff() { return std::min<nanoseconds>(20ms * (1 << std::min(backoffs_ - 1, 10)), 1s); }

  void check_contention(const rules_waiter& waiter) const {
    const bool waits_for_holder = news_ && rules.present_step() == line_rules::step::parked;
    must(around.held_here || proof_ >= waiter.since || waits_for_holder, "contention has a proof");
  }

  struct happened {
    std::string event;
    state before;
    act then;
  };
  table& met_;
  std::deque<happened> last_;
  const bool silent_;  // the server seldom answers
  const std::array<owner_id, 3> owners_{owner(), owner(), owner()};
  owner_id holder_ = owners_[0];
  std::string event_;
  std::optional<time_point> alarm_, half_;
  bool lives_ = false, in_flight_ = false, owed_ = false, listened_ = false, follow_up_ = false,
       unanswered_now_ = false;
  bool heard_ = false;      // a message came during the attempt
  bool tracked_ = false;    // the server pushes the next change
  bool forgotten_ = false;  // the server has forgotten its promise during the attempt
  bool news_ = false;       // the last news about the lock: it was held
  time_point proof_{}, sent_{}, granted_at_{}, holder_until_{};
  std::optional<detail::attempt> granted_;  // waits for its replicas
  std::optional<detail::answer<detail::acquire_answer>> reply_;
  std::map<owner_field, bool> fields_;  // true: Redis may have granted it
  std::size_t releases_ = 0;
  int step_ = 0, unanswered_ = 0, backoffs_ = 0;
  flood_limit limit_;
  bool unnoticed_ = false;  // the holder has changed, and the answer came late
};

}  // namespace

TEST_CASE("random events break no obligation of a line, and cause the actions of the state table") {
  table met;
  const auto semaphore = kind_of_several();
  const detail::kind* const kinds[] = {&detail::plain_lock, &detail::simple_lock, &detail::red_plain_lock,
                                       &detail::red_simple_lock, &semaphore};
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    simulated_line line(*kinds[seed % std::size(kinds)], seed, met);
    INFO("seed " << seed);
    REQUIRE_NOTHROW([&] {
      for (int step = 0; step < 10'000; ++step) line.step();
    }());
  }
  // The table of line_rules.cpp. "decides": inside a decision a waiter leaves, or its hold wakes the line.
  //                        new  lingers  over  tries  parks  blocked  pauses  decides
  const std::string next = "send reenter park ", next_or_rest = next + "rest ";
  const std::map<std::string, std::array<std::string, states>> expected{
      {"joined", {next, next, next, "", "", "rest ", "", ""}},
      {"woken", {"", "wait ", "wait ", "wait ", "wait " + next_or_rest, "wait ", "wait ", "wait "}},
      {"heard", {"", "wait ", "", "wait ", "wait send park rest ", "wait ", "wait ", ""}},
      {"rumoured", {"", "wait ", "", "wait ", "wait send park rest ", "wait ", "wait ", ""}},
      {"pushed", {"", "wait ", "wait ", "wait ", "wait send park rest ", "wait ", "wait ", ""}},
      {"in_question", {"", "wait ", "wait ", "wait ", "wait park ", "wait ", "wait ", ""}},
      {"subscribed", {"", "wait ", "", "wait ", "wait " + next_or_rest, "wait ", "wait ", ""}},
      {"unsubscribed", {"", "wait ", "", "done ", "done ", "wait done ", "done ", ""}},
      {"alarm", {"", "rest ", "", "", next_or_rest, "", next_or_rest, ""}},
      {"first_try_refused", {"", "", "", "send ", "", "", "", ""}},
      {"answered", {"", "", "", "send confirm grant reenter done park rest ", "", "", "", ""}},
      {"replicated", {"", "", "", "grant done park ", "", "", "", ""}},
      {"given_back", {"", "", "", "wait ", "wait ", "wait " + next_or_rest, "wait ", ""}},
      {"timed_out", {"", "", "", "done silent ", "done silent ", "send done silent ", "send done silent ", ""}},
      {"left",
       {"", "", "", "wait " + next_or_rest, "wait send park rest ", "wait rest ", "wait park rest ", next_or_rest}},
      {"stop_lingering", {"", "rest ", "", "", "", "rest ", "", ""}}};
  REQUIRE(met.size() == expected.size());
  for (const auto& [event, of_states] : expected)
    for (std::size_t in = 0; in < states; ++in) {
      std::string actions;
      for (const auto then : met[event][in]) actions += act_names[then] + " ";
      INFO(event << " in a line that " << state_names[in]);
      CHECK(actions == of_states[in]);
    }
}
