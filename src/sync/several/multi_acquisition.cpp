// SPDX-License-Identifier: BSL-1.0
#include "sync/several/multi_acquisition.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/cancelled.hpp"
#include "sync/hold/lease_record.hpp"
#include "sync/hold/unlocking.hpp"

namespace holdfast::detail {
namespace {

std::string about_all(std::size_t locks, std::string_view cause = {}) {
  auto text = "all of " + std::to_string(locks) + " locks";
  if (!cause.empty()) text.append(": ").append(cause);
  return text;
}

void give_up(const std::shared_ptr<lease_record>& lease) {
  if (lease && lease->try_release()) give_up(*lease, {});
}

}  // namespace

// The states of a part. The call is open until done_ is empty; then no part has an acquisition or a lease.
//
//   stage  there     lease  becomes
//   away   none      none   waits: join()
//   waits  its line  none   turn: part_is_first(); had: part_ended() with a lease; away: leave(), or the call fails
//   turn   its line  none   asked: ask(); away: leave(), where an earlier lock is busy
//   asked  its line  none   waits: on_all() or on_hindered() tells its line; turn: nothing was granted to it
//   had    none      yes    away: begin_anew(), where a lock that was re-entered is lost
//
// Of two parts, the later one waits only where the earlier one has its turn or its lease, or where its owner holds
// the later lock already. All asked parts belong to one command, and asked_ lists them.
//
//   flag            away  waits  turn  asked  had  moved by
//   busy_           yes   yes    yes   no     yes  set while a line is joined or told; take_turns() then does nothing
//   told_of_order_  yes   yes    yes   yes    yes  set once by waits_for(), and never cleared
//   deadline_       yes   yes    yes   yes    yes  runs from begin() to the answer, where there is a deadline

multi_acquisition::multi_acquisition(environment& around, multi_key_host& names, std::vector<shared_keys> of,
                                     std::string run, lock_request r, multi_handler done)
    : multi_key_request(std::move(r)), around_(around), names_(names), run_(std::move(run)), since_(around.now()),
      done_(std::move(done)), deadline_(around.alarms) {
  HOLDFAST_ASSERT(!of.empty());
  HOLDFAST_ASSERT(std::all_of(of.begin(), of.end(), [&](const shared_keys& k) {
    return around.servers.group_of(k->lock) == around.servers.group_of(of.front()->lock);
  }));
  parts_.reserve(of.size());
  for (auto& k : of) parts_.push_back({std::move(k)});
}

void multi_acquisition::begin() {
  or_without_memory([&] {
    if (moved()) return finish({.moved = true});
    if (request.deadline != time_point::max()) deadline_.start(request.deadline, [this] { time_out(); });
    for (std::size_t i = 0; i < parts_.size() && open(); ++i)
      if (names_.holds(*parts_[i].keys, request.who)) join(i);
    if (open()) take_turns();
  });
}

template <class Act>
void multi_acquisition::or_without_memory(Act act) {
  const auto keep = self();
  try {
    act();
  } catch (const std::bad_alloc&) {
    busy_ = false;
    if (!open()) throw;  // it was answered
    auto none = without_memory();
    finish({.error = none.error, .detail = std::move(none.detail)});
  }
}

void multi_acquisition::join(std::size_t which) {
  auto& p = parts_[which];
  auto its = request;
  its.whole = this;
  its.part = static_cast<std::uint32_t>(which);
  p.now = stage::waits;
  busy_ = true;
  auto there = names_.lock(p.keys, std::move(its),
                           [self = self(), which](lock_answer a) { self->part_ended(which, std::move(a)); });
  busy_ = false;
  if (there && there->open()) p.there = std::move(there);
}

// As one who is cancelled: what may have been granted to its field is given back.
void multi_acquisition::leave(part& p) {
  if (p.now == stage::had) return;
  p.now = stage::away;
  if (const auto there = std::exchange(p.there, nullptr)) there->cancel();
}

void multi_acquisition::take_turns() {
  if (busy_) return;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].now == stage::away) join(i);
    if (!open()) return;
    if (parts_[i].now == stage::waits || parts_[i].now == stage::asked) return waits_for(i);
  }
  ask();
}

void multi_acquisition::part_is_first(std::size_t which) {
  parts_[which].now = stage::turn;
  if (open()) or_without_memory([&] { take_turns(); });
}

void multi_acquisition::ask() {
  asked_.clear();
  keys_.clear();
  fields_.clear();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& p = parts_[i];
    if (p.now != stage::turn) continue;
    asked_.push_back(i);
    keys_.push_back(p.keys);
    fields_.push_back(p.there->seat.field);
  }
  if (asked_.empty()) return all_had();
  const bool once = request.wait == lock_request::wait_mode::once;
  const auto budget = command_budget(around_.settings, request.asked.ttl);
  auto script = keys_.front()->of.acquire_all.make(keys_, request.asked.ttl, fields_);
  send(around_.servers, std::move(script).with_token_ttl(around_.settings.token_ttl),
       {.timeout = once ? since_ + budget - around_.now() : budget,
        .rank = once ? urgency::refusable : urgency::awaited,
        .waits_for_reply = !once});
  for (const auto i : asked_) parts_[i].now = stage::asked;
}

// What a call that was answered meanwhile was granted is being given back.
std::optional<nanoseconds> multi_acquisition::time_left_for_copies() const {
  if (request.wait != lock_request::wait_mode::once) return std::nullopt;
  return since_ + command_budget(around_.settings, request.asked.ttl) - around_.now();
}

void multi_acquisition::on_answer(const outcome& o) {
  if (!open()) return;
  or_without_memory([&] {
    const auto said = keys_.front()->of.acquire_all.read(o, asked_.size());
    if (said.value.hindered && !said.failed)
      return on_hindered(asked_[said.value.hindered->number], {said.value.hindered->said, !o.error, o.sent});
    on_all({{said.failed, {}}, !o.error, o.sent, only(0), only(0), o.server}, said.value.tokens);
  });
}

// One line after the other is told. Where a line's answer ends the call, those that were not told yet give back.
void multi_acquisition::on_all(const attempt& what, const std::vector<std::uint64_t>& tokens) {
  const auto asked = std::exchange(asked_, {});
  const bool refused = what.said.failed && !what.said.failed->may_have_run;
  if (refused)
    for (const auto i : asked) parts_[i].now = stage::turn;
  busy_ = true;
  for (std::size_t n = 0; n < asked.size() && open(); ++n) {
    auto& p = parts_[asked[n]];
    p.now = stage::waits;
    auto its = what;
    if (!tokens.empty()) its.said.value.token = tokens[n];
    std::shared_ptr(p.there)->tell(its);
  }
  busy_ = false;
  if (open()) take_turns();
}

void multi_acquisition::on_hindered(std::size_t which, const attempt& what) {
  for (const auto i : asked_) parts_[i].now = stage::turn;  // nothing was granted
  if (moved()) return finish({.moved = true});
  for (std::size_t i = parts_.size(); i-- > which + 1;) leave(parts_[i]);
  auto& p = parts_[which];
  p.now = stage::waits;
  std::shared_ptr(p.there)->tell(what);
  if (open() && p.now == stage::waits) waits_for(which);
}

void multi_acquisition::part_ended(std::size_t which, lock_answer a) {
  auto& p = parts_[which];
  if (!open() || p.now == stage::away) return give_up(a.record);  // nobody waits there any more
  p.there.reset();
  if (!a.record) {
    p.now = stage::away;
    return finish({.error = a.error, .detail = a.error ? about(p.keys->name, a.detail) : std::string()});
  }
  p.now = stage::had;
  p.lease = std::move(a.record);
  or_without_memory([this] { take_turns(); });
}

// Whoever has that lock may wait for the later one in turn.
void multi_acquisition::waits_for(std::size_t which) {
  const auto& p = parts_[which];
  if (told_of_order_ || p.now != stage::waits || names_.holds(*p.keys, request.who)) return;
  const auto held = std::find_if(parts_.begin() + static_cast<std::ptrdiff_t>(which) + 1, parts_.end(),
                                 [&](const part& later) { return names_.holds(*later.keys, request.who); });
  if (held == parts_.end()) return;
  told_of_order_ = true;
  const auto detail = "its owner holds what comes after it: " + about(held->keys->name, "held");
  around_.report({.what = event_kind::lock_order_broken, .name = p.keys->name, .detail = detail, .owner = request.who});
}

// What it has asked was answered by the server that is connected now.
bool multi_acquisition::moved() const {
  return !run_.empty() && around_.servers.run_of(parts_.front().keys->lock) != run_;
}

// What was re-entered may have been lost since. That is told to an owner that has another lease of it; without one
// there was nothing to be nested in, and all is asked for anew.
void multi_acquisition::all_had() {
  multi_answer a;
  a.records.reserve(parts_.size());
  for (const auto& p : parts_) {
    if (p.lease->state() != lease_state::lost) {
      a.records.push_back(p.lease);
      continue;
    }
    if (p.lease->of->count() == 1) return begin_anew();
    return finish({.error = errc::lost, .detail = about(p.keys->name, "lost while others were waited for")});
  }
  finish(std::move(a));
}

void multi_acquisition::begin_anew() {
  for (auto& p : parts_) {
    p.now = stage::away;
    give_up(std::exchange(p.lease, nullptr));
  }
  begin();
}

// The part that is waited for knows best why the deadline was not met: its answer is the answer of the call.
void multi_acquisition::time_out() {
  const auto keep = self();
  const auto waited_for = std::find_if(parts_.begin(), parts_.end(), [](const part& p) {
    return p.there && (p.now == stage::waits || p.now == stage::asked);
  });
  if (waited_for == parts_.end()) return fail({}, "");
  or_without_memory([&] { std::shared_ptr(waited_for->there)->time_out(); });
  HOLDFAST_ASSERT(!open());
}

void multi_acquisition::order_changed() {
  if (open()) finish({.moved = true});
}

void multi_acquisition::cancel() { fail(cancelled(), ""); }

void multi_acquisition::fail(error_code error, const char* detail) {
  if (!open()) return;
  finish({.error = error, .detail = error ? about_all(parts_.size(), detail) : std::string()});
}

// Each leaves and gives back, also where one finds no memory to. The last first: when the first leaves, who comes next
// would wait for the others.
void multi_acquisition::finish(multi_answer a) {
  const auto keep = self();
  names_.forget(*this);
  deadline_.stop();
  const auto done = std::exchange(done_, {});
  if (withdraw())
    for (const auto i : asked_) parts_[i].now = stage::turn;
  std::exception_ptr no_memory;
  const auto hear_of = [&](auto act) {
    try {
      act();
    } catch (const std::bad_alloc&) {
      no_memory = std::current_exception();
    }
  };
  for (auto p = parts_.rbegin(); p != parts_.rend(); ++p) {
    if (const auto there = std::exchange(p->there, nullptr)) hear_of([&] { there->cancel(); });
    if (const auto lease = std::exchange(p->lease, nullptr); a.records.empty()) hear_of([&] { give_up(lease); });
  }
  if (a.records.empty() && !a.moved) hear_of([&] { report_failure(a); });
  done(std::move(a));
  if (no_memory) std::rethrow_exception(no_memory);
}

void multi_acquisition::forget_caller() {
  deadline_.stop();
  done_ = {};
}

// Of what was granted each lock tells itself.
void multi_acquisition::report_failure(const multi_answer& a) const {
  if (!around_.settings.observer) return;
  hold_event e{{.what = end_of_call(a.error), .lock_kind = parts_.front().keys->of.name}};
  e.what.reason = a.error;
  e.what.waited = around_.now() - since_;
  const auto all = about_all(parts_.size());
  e.what.detail = a.detail.empty() ? all : a.detail;
  e.what.owner = request.who;
  e.what.ttl = request.asked.ttl;
  around_.report(std::move(e));
}

}  // namespace holdfast::detail
