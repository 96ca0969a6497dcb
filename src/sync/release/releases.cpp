// SPDX-License-Identifier: BSL-1.0
#include "sync/release/releases.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "sync/command/script_command.hpp"

namespace holdfast::detail {
namespace {

/// A place that nobody shows again has ended by then. See fair_lock.cpp.
constexpr milliseconds place_lives(5000);

// Short enough to need no memory.
failure without_memory() { return {errc::unconfirmed, "no memory"}; }

}  // namespace

/// The common state of the tasks of one release at several primaries.
class releases::joint {
 public:
  /// `whole`: it releases a lock that may be held, and not an attempt that no majority granted.
  joint(std::size_t tasks, std::size_t primaries, bool whole, handler done, function<void()> tried)
      : tasks_(tasks), needed_(vote_count::majority(primaries)), minority_(primaries - needed_), whole_(whole),
        done_(std::move(done)), tried_(std::move(tried)), not_ours_(primaries - tasks) {
    HOLDFAST_ASSERT(tasks > 0 || !done_);
  }

  // A majority of equal answers is the answer. If all have answered without one, the caller gets unconfirmed.
  void tell(const std::optional<failure>& failed) {
    const auto error = redis::error_of(failed);
    const bool released = !error && ++released_ == needed_;
    const bool not_ours = error == errc::lost && ++not_ours_ == needed_;
    const bool refused = error && error != errc::lost && error != errc::unconfirmed && ++refused_ == needed_;
    // The caller gets the first failure: later ones are often its consequence.
    if (error && error != errc::lost && !failed_) failed_ = redis::failure_with(errc::unconfirmed, failed->detail);
    const bool all = ++reported_ == tasks_;
    if (!released && !not_ours && !refused && !all) return;
    settled_ = settled_ || released || not_ours || refused;
    if (!done_) return;
    const auto done = std::exchange(done_, {});
    if (released || not_ours || refused) return done(failed);
    done(failed_ ? failed_ : redis::failure_with(errc::unconfirmed, "the primaries do not agree"));
  }
  // A release of few tasks may have nothing to wait for, so this is asked once before any answer.
  void begun() { tell_tried(); }
  void tried() {
    ++had_it_;
    tell_tried();
  }
  /// The event of the whole release, if this end of one task decides it.
  std::optional<event_kind> ended(bool freed) {
    ++over_;
    const bool enough = freed && ++freed_ == std::min(needed_, tasks_);
    // The result of the whole release is known already. A late end at another primary is no event.
    if (settled_) return std::nullopt;
    settled_ = enough;
    if (enough) return event_kind::released_late;
    return over_ == tasks_ ? std::optional(event_kind::release_given_up) : std::nullopt;
  }
  bool waited_for() const noexcept { return static_cast<bool>(done_); }
  /// True once: at the first task that has freed the field, or at the last task.
  bool ends_turn(bool freed) noexcept { return (freed || over_ == tasks_) && !std::exchange(turn_over_, true); }
  /// The lock may be free now, and this is the first to know.
  bool first_end() noexcept { return std::exchange(whole_, false); }

 private:
  // A field that is left at a minority of the primaries keeps nobody from the lock. So the next attempt may begin.
  void tell_tried() {
    if (tried_ && had_it_ + minority_ >= tasks_) std::exchange(tried_, {})();
  }

  const std::size_t tasks_, needed_, minority_;
  bool whole_;
  handler done_;  // empty: nobody waits (any more)
  function<void()> tried_;
  std::size_t reported_ = 0, released_ = 0, refused_ = 0, had_it_ = 0, over_ = 0, freed_ = 0;
  std::size_t not_ours_;  // answers, and primaries that are known not to have the field
  bool settled_ = false, turn_over_ = false;
  std::optional<failure> failed_;
};

class releases::task final : public script_command {
 public:
  task(releases& to, release_host& name, shared_keys lock, owner_field owner_field, milliseconds time)
      : of(name), keys(std::move(lock)), field(owner_field), ttl(time),
        backoff(milliseconds(20), std::chrono::seconds(1)), pause(to.env_.alarms), to_(to) {}
  /// A task like the given one, for one of several primaries.
  task(const task& like, std::size_t where, std::shared_ptr<joint> all)
      : task(like.to_, like.of, like.keys, like.field, like.ttl) {
    of_hold = like.of_hold;
    wishes = like.wishes;
    was_answered = like.was_answered;
    valid = like.valid;
    answer_by = like.answer_by;
    at = where;
    if (all->waited_for()) done = [all](const std::optional<failure>& failed) { all->tell(failed); };
    tried = [all] { all->tried(); };
    one_of = std::move(all);
  }

  bool listed() const noexcept { return membership.hook.is_linked(); }

  release_host& of;
  const shared_keys keys;
  const owner_field field;
  const milliseconds ttl;
  std::size_t at = 0;             // number of the primary
  std::shared_ptr<joint> one_of;  // null: there is one primary
  time_point valid{};             // a repetition that is answered "not yours" before this instant has released
  time_point began{};
  time_point answer_by{};  // until when `done` waits, if the command is written at once
  time_point give_up{};
  bool may_have_run = false;             // a copy was written and not answered
  std::optional<std::uint64_t> went_to;  // the server of that copy; 0: unknown, or several
  bool repeated = false;
  bool of_hold = false;                   // it releases a hold, not an attempt
  departure wishes{};                     // of a kind with a queue
  bool of_places = false;                 // of a kind with an order: it is leave_places()
  renewal next{};                         // the same: the hold of the next waiter; its field is empty: there is none
  std::optional<ride_answer> ride;        // the answer for it
  time_point ride_sent{};                 // when the answered copy was sent
  std::uint64_t ride_server = 0;          // the server that answered
  bool was_answered = false;              // another server has answered it before
  std::optional<std::uint64_t> heard_by;  // number of subscribers that got the message; empty: nothing was freed
  std::string last_failure;               // the detail of the last copy
  handler done;                           // empty: nobody waits (any more)
  function<void()> tried;                 // empty: nobody asks (any more)
  retry_backoff backoff;
  timer pause;  // before the next copy; or, with one late, until it is given up
  member membership;

  // Decision: an unlock has one budget, at most a command timeout. Time without a connection counts, and a second copy
  // has what the first one left. Time in the queue of a living connection does not count: the server answers others.
  void written(time_point now, nanoseconds left) noexcept override {
    script_command::written(now, left);
    if (done) answer_by = std::max(answer_by, now + left);
  }

 private:
  void on_answer(const outcome& outcome) override {
    // abandon() or on_late() may have ended the task before. An answer to an ended task changes nothing.
    if (listed()) to_.answered(*this, outcome);
  }
  void late(const outcome& outcome) override {
    if (listed()) to_.on_late(*this, outcome.detail);
  }
  std::optional<nanoseconds> time_left_for_copies() const override {
    return done ? std::optional(answer_by - to_.env_.now()) : std::nullopt;
  }

  releases& to_;
};

// Nothing is held, so the observer hears nothing.
void releases::leave_places(release_host& of, shared_keys keys, owner_field place) {
  auto given = make_pooled<task>(env_.blocks, *this, of, std::move(keys), place, place_lives);
  given->of_places = given->was_answered = true;
  begin(std::move(given), env_.now());
}

releases::~releases() {
  while (!under_way_.empty()) take_out(*under_way_.front().kept);
}

void releases::release(release_host& of, shared_keys keys, owner_field field, milliseconds ttl, time_point now,
                       time_point valid, time_point answer_by, primary_set at, handler&& done) {
  auto given = make_pooled<task>(env_.blocks, *this, of, std::move(keys), field, ttl);
  given->of_hold = true;
  given->valid = valid;
  given->answer_by = answer_by;
  given->done = std::move(done);
  start(std::move(given), at, now);
}

void releases::release_in_background(release_host& of, shared_keys keys, owner_field field, milliseconds ttl,
                                     function<void()> tried, primary_set at) {
  auto given = make_pooled<task>(env_.blocks, *this, of, std::move(keys), field, ttl);
  given->tried = std::move(tried);
  start(std::move(given), at, env_.now());
}

void releases::found_gone(const shared_keys& keys, const owner_field& field, milliseconds ttl,
                          time_point now) noexcept {
  answered_.note({keys, field, server_of(0, keys), now, now + ttl, 0});
}

void releases::repeat(release_host& of, const answered_releases::entry& release) {
  const auto now = env_.now();
  const auto left = std::chrono::ceil<milliseconds>(release.gone_by - now) - env_.settings.command_timeout;
  auto given = make_pooled<task>(env_.blocks, *this, of, release.keys, release.field, std::max(left, milliseconds(10)));
  // The caller of this release was answered long ago. Its repetition is reported only if it frees something.
  given->was_answered = true;
  start(std::move(given), only(release.primary), now);
}

std::uint64_t releases::server_of(std::size_t primary, const shared_keys& keys) const {
  return env_.servers.primary(primary).server_of(keys->lock);
}

// Slots move by the thousand while a cluster is resharded. The group of an entry is computed at the first move, and not
// before: most releases never see one.
bool releases::is_in(std::optional<key_group> group, answered_releases::entry& released) const {
  if (!group) return true;
  if (!released.group) released.group = env_.servers.group_of(released.keys->lock);
  return *released.group == *group;
}

bool releases::answered_elsewhere(const answered_releases::entry& release) const {
  // The run of a server counts, not its address: a restart may have lost the end of the file.
  return release.server == 0 || release.server != server_of(release.primary, release.keys);
}

void releases::start(std::shared_ptr<task> given, primary_set at, time_point now) {
  constexpr std::size_t counts_of_shared_ptr = 2 * sizeof(void*);
  static_assert(sizeof(task) + counts_of_shared_ptr <= block_pool::largest, "each unlock has one");
  if (given->keys->of.queue) given->wishes = given->of.departs(*given->keys, given->of_hold);
  if (given->keys->of.ordered() && given->of_hold) {
    const auto rider = given->of.rides();
    given->next = {given->keys.get(), rider.next, {rider.ttl}};
  }
  const auto primaries = env_.servers.primaries();
  // One primary needs no common object: a pair of lock and unlock allocates only the task.
  if (primaries == 1) return begin(std::move(given), now);
  std::vector<std::size_t> asked;
  for (std::size_t n = 0; n < primaries; ++n)
    if ((at & only(n)) != 0) asked.push_back(n);
  const auto all = std::make_shared<joint>(asked.size(), primaries, !given->tried || at == everywhere,
                                           std::move(given->done), std::move(given->tried));
  std::vector<std::shared_ptr<task>> each;
  for (const auto n : asked) each.push_back(std::make_shared<task>(*given, n, all));
  // All tasks exist before the first one is sent, so that missing memory cannot stop half of a release.
  for (auto& task : each) begin(std::move(task), now);
  all->begun();
}

void releases::begin(std::shared_ptr<task> given, time_point now) {
  auto& task = *given;
  task.began = now;
  // After one TTL without renewal the key is gone. A command that was delayed on its way may have set it later, by up
  // to a command timeout.
  task.give_up = task.began + env_.settings.command_timeout + task.ttl;
  // The list owns the task before anything is sent, because an answer may come inside the call.
  under_way_.push_back(task.membership);
  task.membership.kept = std::move(given);
  task.of.release_begins();
  try {
    send(task, now);
  } catch (...) {
    // The other primaries go on. Their common result counts this task as failed.
    if (task.one_of) return end(task, without_memory());
    const auto given_up = take_out(task);
    const ride_end ride{.next = task.next.field, .ttl = task.next.wanted.ttl, .answer = {}};
    if (!ride.next.empty()) if_memory([&] { task.of.rode(ride); });
    task.of.release_ends({.ends_turn = task.of_hold, .of_places = task.of_places, .unanswered = true});
    throw;
  }
}

// A repetition has the wishes of the first copy, which may have run. But a waiter that came since keeps the place.
// A waiter that waits no more has released its field since.
call releases::command_of(task& task) {
  const auto& row = task.keys->of;
  if (task.of_places) return row.places.leave(*task.keys, task.field);
  if (!task.next.field.empty() && (!task.repeated || task.of.still_rides(task.next.field)))
    return row.places.release.make(*task.keys, task.field, task.next);
  if (!row.queue) return row.release.make(*task.keys, task.field);
  auto wishes = task.wishes;
  if (task.repeated && task.of.keeps_place(*task.keys)) wishes.leave = false;
  return row.queue.release(*task.keys, task.field, wishes);
}

// The command waits for its reply while its connection goes on answering. Only the end of the connection is a reason to
// send once more. A second copy behind the first one would run after it anyway.
void releases::send(task& task, time_point now) {
  if (task.done && now >= task.answer_by)
    tell_unconfirmed(task, task.repeated ? task.last_failure : "Redis did not answer what came before it in time");
  const auto timeout = task.done ? task.answer_by - now : command_budget(env_.settings, task.ttl);
  task.script_command::send(
      env_.servers.primary(task.at), command_of(task),
      {.timeout = timeout, .rank = urgency::obligation, .waits_for_reply = true, .tell_late = true});
}

void releases::on_late(task& task, const std::string& detail) {
  if (task.done) tell_unconfirmed(task, detail);
  const auto give_up = [this, &task, detail] {
    task.withdraw();
    end(task, redis::failure_with(errc::unconfirmed, detail));
  };
  // The copy may still run and be answered, so the task waits on until the key must be gone.
  if (!if_memory([&] { task.pause.start(std::max(task.give_up, env_.now()), give_up); })) give_up();
}

answer<release_answer> releases::read(task& task, const outcome& outcome) {
  const auto& row = task.keys->of;
  if (!row.ordered()) return row.release.read(outcome);
  if (task.of_places) return {row.places.stand.read(outcome).failed, {}};
  auto ride = row.places.release.read(outcome);
  if (ride.failed) return {std::move(ride.failed), {}};
  task.ride_sent = outcome.sent;
  task.ride_server = outcome.server;
  task.ride = std::move(ride.value);
  return {{}, task.ride->told};
}

void releases::answered(task& task, const outcome& outcome) {
  task.pause.stop();
  // The copy has run, or its connection has ended. A later acquire runs behind it, and need not wait any longer.
  if (task.tried && (!outcome.error || outcome.error == errc::unconfirmed)) std::exchange(task.tried, {})();
  if (outcome.ran_in_part) {
    task.may_have_run = true;
    task.went_to = 0;
  }
  if (outcome.error) return again(task, outcome);
  const auto reply = read(task, outcome);
  if (reply.failed) {
    // The topology has paused, and a longer pause would outlast the move of the slot.
    if (wants_one_key(outcome)) task.backoff.reset();
    if (reply.failed->mends_itself()) return again(task, {reply.failed->code, {}, reply.failed->detail});
    return end(task, reply.failed);
  }
  if (task.of_places) return end(task, std::nullopt);
  env_.note_withheld_message(outcome);
  task.heard_by = reply.value;
  // Every answer is kept, also "not yours": a server that takes over may still have the field.
  answered_.note({task.keys, task.field, outcome.server, outcome.sent, task.give_up, task.at});
  if (task.heard_by || !task.done) return end(task, std::nullopt);
  // No other copy was written, so this answer is the truth: the field was gone before.
  if (!task.may_have_run) return end(task, redis::failure_with(errc::lost, not_ours));
  // An earlier copy may have released the field. Within the validity nothing else can have removed it. Afterwards it
  // may have expired, and another server proves nothing about the first one.
  const bool same = task.went_to.value_or(0) != 0 && *task.went_to == outcome.server;
  if (same && env_.now() < task.valid) return end(task, std::nullopt);
  end(task, redis::failure_with(errc::unconfirmed,
                                same ? "the first answer was lost, and the validity ended before the second"
                                     : "the first answer was lost, and another server answered the second"));
}

void releases::again(task& task, const outcome& outcome) {
  // These failures end by themselves. Any other one would be the same at each repetition.
  const auto& why = outcome.error;
  const bool mends =
      why == errc::unreachable || why == errc::unconfirmed || why == errc::server_refused || why == errc::overloaded;
  const auto now = env_.now();
  if (!mends || now >= task.give_up)
    return end(task, redis::failure_with(mends ? errc::unconfirmed : why, outcome.detail));
  if (why == errc::unconfirmed) {
    task.may_have_run = true;
    if (task.went_to.value_or(outcome.server) != outcome.server) task.went_to = 0;
    if (!task.went_to) task.went_to = outcome.server;
  }
  if (task.done && now >= task.answer_by) tell_unconfirmed(task, outcome.detail);
  task.last_failure = outcome.detail;
  // The first repetition has no pause: a connection that was cut is usually replaced at once.
  const auto pause = std::exchange(task.repeated, true) ? task.backoff.next(env_.random) : nanoseconds::zero();
  // The alarm also answers the caller in time, so it comes no later than that.
  const auto when = task.done ? std::min(now + pause, task.answer_by) : now + pause;
  const auto send_again = [this, &task] {
    if (!if_memory([&] { send(task, env_.now()); })) end(task, without_memory());
  };
  task.pause.start(when, send_again);
}

// The caller waits no longer, and the release goes on.
void releases::tell_unconfirmed(task& task, const std::string& detail) {
  std::exchange(task.done, {})(redis::failure_with(errc::unconfirmed, detail));
}

void releases::end(task& task, const std::optional<failure>& failed) {
  const auto ended = take_out(task);
  // The host is notified of the end even if a caller finds no memory.
  each_step step;
  if (task.tried) step([&] { std::exchange(task.tried, {})(); });
  const bool waited_for = static_cast<bool>(task.done);
  // A repetition that finds nothing has changed nothing, so nobody is notified.
  const bool silent = task.was_answered && !task.heard_by;
  if (waited_for) step([&] { std::exchange(task.done, {})(failed); });
  if (task.one_of) {
    if (const auto kind = task.one_of->ended(!failed); kind && !silent) step([&] { report(task, *kind, failed); });
  } else if (!silent && (!waited_for || redis::error_of(failed) == errc::unconfirmed)) {
    step([&] { report(task, failed ? event_kind::release_given_up : event_kind::released_late, failed); });
  }
  const bool rode = !task.next.field.empty();
  if (rode)
    step([&] { task.of.rode({task.next.field, task.next.wanted.ttl, task.ride, task.ride_sent, task.ride_server}); });
  const bool turn_known = task.ride && task.ride->told;
  // With several primaries the host is notified once. An attempt that gives back a minority has freed nothing.
  task.of.release_ends(
      {.may_be_free = !silent && (!task.one_of || task.one_of->first_end()),
       .ends_turn = task.of_hold && (!task.one_of || task.one_of->ends_turn(task.heard_by.has_value())),
       .heard_by = task.heard_by.value_or(0),
       .rode = rode,
       .turn = turn_known ? std::optional<std::string_view>(task.ride->turn) : std::nullopt,
       .of_places = task.of_places,
       .unanswered = redis::error_of(failed) == errc::unconfirmed});
  if (under_way_.empty() && when_idle_) step([&] { std::exchange(when_idle_, {})(); });
  step.rethrow();
}

std::shared_ptr<releases::task> releases::take_out(task& task) {
  HOLDFAST_ASSERT(task.listed());
  under_way_.erase(under_way_.iterator_to(task.membership));
  task.pause.stop();
  return std::move(task.membership.kept);
}

void releases::report(const task& task, event_kind kind, const std::optional<failure>& failed) const {
  if (!env_.settings.observer) return;
  hold_event end{{.kind = kind, .name = task.keys->name}, &task.field};
  if (failed) {
    end.content.reason = failed->code;
    end.content.detail = failed->detail;
  }
  env_.report(std::move(end));
}

void releases::when_idle(function<void()> then) {
  if (under_way_.empty()) return then();
  when_idle_ = std::move(then);
}

void releases::abandon() {
  // The shutdown that calls this does not wait for the releases any more.
  when_idle_ = {};
  while (!under_way_.empty()) {
    auto& task = *under_way_.front().kept;
    task.withdraw();
    task.tried = {};
    end(task, redis::failure_with(errc::unconfirmed, "the client was closed before Redis answered"));
  }
}

}  // namespace holdfast::detail
