// SPDX-License-Identifier: BSL-1.0
#include "sync/several/multi_acquisition.hpp"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/cancelled.hpp"
#include "base/if_memory.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/hold/unlocking.hpp"

namespace holdfast::detail {
namespace {

std::string about_all(std::size_t locks, std::string_view cause = {}) { return about_several("all of", locks, cause); }

void give_up(const std::shared_ptr<lease_record>& lease) {
  if (lease && lease->try_release()) give_up(*lease, {});
}

}  // namespace

// Decision: all of several is the first place in each line, and then one script. A part is an acquisition that sends
// nothing. Where its line would send an attempt, the line calls part_is_first(), and waits as for an answer of Redis.
// Each line is then given its share of the script's answer as if it had asked itself. The line goes on deciding about
// parking, polls, repeated copies and late grants.
//
// Decision: a call that finds the i-th lock busy keeps its first place in the lines before it. All processes have one
// order, so that is safe, and no call of this process can starve it. The parts behind leave their lines, because the
// holder of the i-th lock may want those next.
//
// Decision: the order holds within a process, too. A call for {a, b} may be first in the line of `a` and wait for `b`.
// A holder of `b` that then waits in the line of `a` waits indefinitely. Another process would have got `a`. To let
// that caller pass would starve the call.
//
// Decision: locks that the owner holds are re-entered, and those join first. The deadline belongs to the call. The part
// that is waited for gives the answer when it comes.

// The states of a part. The call is open until done_ is empty; then no part has an acquisition or a lease.
//
//   stage  there     lease  becomes
//   away   none      none   waits: join()
//   waits  its line  none   turn: part_is_first(); had: part_ended() with a lease; away: leave(), or the call fails
//   turn   its line  none   asked: ask(); away: leave(), where an earlier lock is busy
//   asked  its line  none   waits: on_all() tells its line; turn: nothing was granted to it, by a refusal, by a busy
//                           lock or because the command was withdrawn. on_hindered() then moves the busy one to waits
//   had    none      yes    away: begin_anew(), where a lock that was re-entered is lost
//
// A part that waits may be at a hold of its owner, and not in its line. `there` is null until join() returns. A part
// that ends without a lease ends the call, at any stage. Of two parts, the later one waits only where the earlier one
// has its turn or its lease. There are two exceptions: its owner held the later lock already, or a script for both has
// failed and their lines retry. All asked parts belong to one command. asked_ lists them until on_all() tells their
// lines.
//
//   flag            away  waits  turn  asked  had  moved by
//   busy_           yes   yes    yes   yes    yes  set while join() or on_all() calls a line; take_turns() then does
//                                                  nothing. asked: parts that on_all() has not answered yet
//   order_reported_ yes   yes    yes   yes    yes  set once by waits_for(), and never cleared
//   deadline_       yes   yes    yes   yes    yes  runs from begin() to the answer, where there is a deadline

multi_acquisition::multi_acquisition(environment& env, multi_key_host& names, std::vector<shared_keys> of,
                                     std::string run, lock_request request, multi_handler done)
    : multi_key_request(std::move(request)), env_(env), names_(names), run_(std::move(run)), since_(env.now()),
      done_(std::move(done)), deadline_(env.alarms) {
  HOLDFAST_ASSERT(!of.empty());
  HOLDFAST_ASSERT(std::all_of(of.begin(), of.end(), [&](const shared_keys& keys) {
    return env.servers.group_of(keys->lock) == env.servers.group_of(of.front()->lock);
  }));
  parts_.reserve(of.size());
  for (auto& keys : of) parts_.push_back({std::move(keys)});
}

void multi_acquisition::begin() {
  or_without_memory([&] {
    // The order was made for another run of the server, so the caller must make it anew.
    if (moved()) return finish({{}, {.moved = true}});
    if (request.deadline != time_point::max()) deadline_.start(request.deadline, [this] { time_out(); });
    // A re-entry needs no turn, and its lease keeps the hold until the call ends.
    for (std::size_t i = 0; i < parts_.size() && open(); ++i)
      if (names_.nests(*parts_[i].keys, request.owner)) join(i);
    if (open()) take_turns();
  });
}

void multi_acquisition::on_no_memory() {
  busy_ = false;
  // The caller was answered already, so only the entry point can report the lack of memory.
  if (!open()) throw;
  finish({redis::without_memory()});
}

void multi_acquisition::join(std::size_t index) {
  auto& part = parts_[index];
  auto own = request;
  own.whole = this;
  own.part = static_cast<std::uint32_t>(index);
  // The line may call part_is_first() or part_ended() before lock() returns. take_turns() must wait until `there` is
  // set.
  part.now = stage::waits;
  busy_ = true;
  auto there = names_.lock(part.keys, std::move(own),
                           [self = self(), index](lock_answer answer) { self->part_ended(index, std::move(answer)); });
  busy_ = false;
  if (there && there->open()) part.there = std::move(there);
}

// The part is cancelled, so its line releases a field that may have been granted. A lease that the call has is kept.
void multi_acquisition::leave(part& part) {
  if (part.now == stage::had) return;
  part.now = stage::away;
  if (const auto there = std::exchange(part.there, nullptr)) there->cancel();
}

// One line after the other, in the order of all processes: two calls in different orders would wait for each other.
void multi_acquisition::take_turns() {
  if (busy_) return;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].now == stage::away) join(i);
    if (!open()) return;
    if (parts_[i].now == stage::waits || parts_[i].now == stage::asked) return waits_for(i);
  }
  ask();
}

void multi_acquisition::part_is_first(std::size_t index) {
  parts_[index].now = stage::turn;
  if (open()) or_without_memory([&] { take_turns(); });
}

void multi_acquisition::ask() {
  asked_.clear();
  keys_.clear();
  fields_.clear();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& part = parts_[i];
    // The other parts have leases already, by a re-entry or by an earlier script.
    if (part.now != stage::turn) continue;
    asked_.push_back(i);
    keys_.push_back(part.keys);
    fields_.push_back(part.there->seat.tries.field);
  }
  if (asked_.empty()) return all_had();
  const bool once = request.wait == lock_request::wait_mode::once;
  const auto budget = command_budget(env_.settings, request.asked.ttl);
  auto script = keys_.front()->of.acquire_all.make(keys_, request.asked.ttl, fields_);
  send(env_.servers, std::move(script).with_token_ttl(env_.settings.token_ttl),
       {.timeout = once ? since_ + budget - env_.now() : budget,
        .rank = once ? urgency::refusable : urgency::awaited,
        .waits_for_reply = !once});
  for (const auto i : asked_) parts_[i].now = stage::asked;
}

std::optional<nanoseconds> multi_acquisition::time_left_for_copies() const {
  if (request.wait != lock_request::wait_mode::once) return std::nullopt;
  return since_ + command_budget(env_.settings, request.asked.ttl) - env_.now();
}

// A call that was answered meanwhile has released its fields already.
void multi_acquisition::on_answer(const outcome& outcome) {
  if (!open()) return;
  or_without_memory([&] {
    const auto reply = keys_.front()->of.acquire_all.read(outcome, asked_.size());
    if (reply.value.hindered && !reply.failed)
      return on_hindered(asked_[reply.value.hindered->number],
                         {reply.value.hindered->single, !outcome.error, outcome.sent});
    on_all({{reply.failed, {}}, !outcome.error, outcome.sent, only(0), only(0), outcome.server}, reply.value.tokens);
  });
}

// The lines get their answers one after the other, and one of them may end the call. The parts without an answer are
// still `asked` then, so their fields are released.
void multi_acquisition::on_all(const attempt& attempt, const std::vector<std::uint64_t>& tokens) {
  const auto asked = std::exchange(asked_, {});
  const bool refused = attempt.reply.failed && !attempt.reply.failed->may_have_run;
  if (refused)
    for (const auto i : asked) parts_[i].now = stage::turn;
  busy_ = true;
  for (std::size_t n = 0; n < asked.size() && open(); ++n) {
    auto& part = parts_[asked[n]];
    part.now = stage::waits;
    auto own = attempt;
    if (!tokens.empty()) own.reply.value.token = tokens[n];
    // The part's end resets part.there during the call.
    std::shared_ptr(part.there)->tell(own);
  }
  busy_ = false;
  if (open()) take_turns();
}

void multi_acquisition::on_hindered(std::size_t index, const attempt& attempt) {
  // The script takes all or none, so a part that leaves now has nothing to release.
  for (const auto i : asked_) parts_[i].now = stage::turn;
  if (moved()) return finish({{}, {.moved = true}});
  for (std::size_t i = parts_.size(); i-- > index + 1;) leave(parts_[i]);
  auto& part = parts_[index];
  part.now = stage::waits;
  std::shared_ptr(part.there)->tell(attempt);
  if (open() && part.now == stage::waits) waits_for(index);
}

void multi_acquisition::part_ended(std::size_t index, lock_answer answer) {
  auto& part = parts_[index];
  // leave() and finish() cancel a part, and its line may answer with a lease that no call wants any more.
  if (!open() || part.now == stage::away) return give_up(answer.value);
  part.there.reset();
  if (!answer.value) {
    part.now = stage::away;
    if (answer.failed) if_memory([&] { answer.failed->detail = about(part.keys->name, answer.failed->detail); });
    return finish({std::move(answer.failed)});
  }
  part.now = stage::had;
  part.lease = std::move(answer.value);
  or_without_memory([this] { take_turns(); });
}

// Reports a broken order, once: this call waits for a lock while its owner holds a later one. The holder of the first
// may wait for the later one in turn.
void multi_acquisition::waits_for(std::size_t index) {
  const auto& awaited = parts_[index];
  if (order_reported_ || awaited.now != stage::waits || names_.nests(*awaited.keys, request.owner)) return;
  const auto held = std::find_if(parts_.begin() + static_cast<std::ptrdiff_t>(index) + 1, parts_.end(),
                                 [&](const part& later) { return names_.nests(*later.keys, request.owner); });
  if (held == parts_.end()) return;
  order_reported_ = true;
  const auto detail = "its owner holds what comes after it: " + about(held->keys->name, "held");
  env_.report(
      {.kind = event_kind::lock_order_broken, .name = awaited.keys->name, .detail = detail, .owner = request.owner});
}

// True: the server has a new run, so other processes may make another order of the servers.
bool multi_acquisition::moved() const {
  return !run_.empty() && env_.servers.run_of(parts_.front().keys->lock) != run_;
}

// A re-entered hold may have been lost while other locks were waited for. An owner that has another lease of it must
// learn of that. Without another lease the call was nested in nothing, and asks for all locks anew.
void multi_acquisition::all_had() {
  multi_grant grant;
  grant.leases.reserve(parts_.size());
  for (const auto& part : parts_) {
    if (part.lease->state() != lease_state::lost) {
      grant.leases.push_back(part.lease);
      continue;
    }
    if (part.lease->of->count() == 1) return begin_anew();
    return finish({failure{errc::lost, about(part.keys->name, "lost while others were waited for")}});
  }
  finish({{}, std::move(grant)});
}

void multi_acquisition::begin_anew() {
  for (auto& part : parts_) {
    part.now = stage::away;
    give_up(std::exchange(part.lease, nullptr));
  }
  begin();
}

// The part that is waited for knows the reason: contention, silence or a failure. Its answer is the answer of the call.
void multi_acquisition::time_out() {
  or_without_memory([this] {
    const auto waited_for = std::find_if(parts_.begin(), parts_.end(), [](const part& part) {
      return part.there && (part.now == stage::waits || part.now == stage::asked);
    });
    if (waited_for == parts_.end()) return finish({});
    std::shared_ptr(waited_for->there)->time_out();
    HOLDFAST_ASSERT(!open());
  });
}

void multi_acquisition::order_changed() {
  if (open()) finish({{}, {.moved = true}});
}

void multi_acquisition::cancel() { fail(cancelled(), ""); }

void multi_acquisition::fail(error_code error, const char* detail) {
  if (!open()) return;
  failure why{error, {}};
  if_memory([&] { why.detail = about_all(parts_.size(), detail); });
  finish({std::move(why)});
}

// Lack of memory in one part must not keep the others in their lines. The last part leaves first: a waiter that becomes
// the first of an earlier line would still find the later ones occupied.
void multi_acquisition::finish(multi_answer answer) {
  names_.forget(*this);
  deadline_.stop();
  const auto done = std::exchange(done_, {});
  // A command that was never written has granted nothing, so no part has a field to release.
  if (withdraw())
    for (const auto i : asked_) parts_[i].now = stage::turn;
  each_step step;
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    if (const auto there = std::exchange(part->there, nullptr)) step([&] { there->cancel(); });
    if (const auto lease = std::exchange(part->lease, nullptr); answer.value.leases.empty())
      step([&] { give_up(lease); });
  }
  if (answer.value.leases.empty() && !answer.value.moved) step([&] { report_failure(answer); });
  done(std::move(answer));
  step.rethrow();
}

void multi_acquisition::forget_caller() {
  deadline_.stop();
  done_ = {};
}

// A grant is reported by each lock's own acquisition.
void multi_acquisition::report_failure(const multi_answer& answer) const {
  if (!env_.settings.observer) return;
  hold_event event{{.kind = end_of_call(answer.failed), .lock_kind = parts_.front().keys->of.name}};
  report_end(env_, std::move(event), since_, answer.failed, about_all(parts_.size()));
}

}  // namespace holdfast::detail
