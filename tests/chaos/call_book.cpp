// SPDX-License-Identifier: BSL-1.0
#include "chaos/call_book.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <sstream>

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto grace = 50ms;       // what an answer may take from the library to its caller
constexpr auto told_before = 60s;  // of the trace
constexpr std::size_t most_lines = 60'000, most_told = 400;
constexpr std::size_t most_reports = 20;  // with a trace

std::string base_of(std::string_view id) { return std::string(id.substr(0, id.find('/'))); }

bool retries(const error_code& e) {
  return e == errc::unreachable || e == errc::server_refused || e == errc::quorum_failed || e == errc::overloaded;
}

/// Since when a call has been cancelled from above.
std::optional<call_instant> cancelled_since(const cancel_scope* scope) {
  std::optional<call_instant> first;
  for (; scope; scope = scope->outer.get())
    if (scope->cancelled && (!first || *scope->cancelled < *first)) first = scope->cancelled;
  return first;
}

bool may_be_cancelled_by_loss(const cancel_scope* scope) {
  for (; scope; scope = scope->outer.get())
    if (scope->by_loss) return true;
  return false;
}

std::string in_ms(std::chrono::nanoseconds t) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << static_cast<double>(t.count()) / 1e6 << " ms";
  return text.str();
}

}  // namespace

call_book::number call_book::begin(call_terms terms) {
  const std::lock_guard lock(guard_);
  add_line(terms.task, "call " + std::to_string(last_ + 1) + ": " + terms.what);
  open_.emplace(++last_, open_call{std::move(terms), steady_clock::now()});
  return last_;
}

void call_book::end(number which, error_code e, std::string_view answer, std::optional<call_instant> own_cancel) {
  const std::lock_guard lock(guard_);
  const auto now = steady_clock::now();
  const auto found = open_.find(which);
  const auto call = std::move(found->second);
  open_.erase(found);
  ++ended_;
  const auto said = e ? e.message() : answer.empty() ? std::string("done") : std::string(answer);
  ++answers_[e ? e.message() : std::string("done")];
  add_line(call.terms.task, "call " + std::to_string(which) + " after " + in_ms(now - call.begun) + ": " + said);
  judge_code(call, e, own_cancel, now);
  auto limit = call.terms.limit ? call.begun + *call.terms.limit : call_instant::max();
  const auto since = call.terms.outlives_cancel ? std::nullopt : cancelled_since(call.terms.scope.get());
  if (own_cancel)
    limit = std::min(limit, *own_cancel);
  else if (since)
    limit = std::min(limit, std::max(*since, call.begun));
  if (limit != call_instant::max() && now > limit + grace) late_.push_back({call, now, limit, said});
}

void call_book::left(number which) {
  const std::lock_guard lock(guard_);
  ++ended_;
  add_line(open_.at(which).terms.task, "call " + std::to_string(which) + " was left by its cancelled coroutine");
  open_.erase(which);
}

void call_book::judge_code(const open_call& c, error_code e, std::optional<call_instant> own_cancel, call_instant now) {
  if (!e || e == errc::lost || e == errc::unconfirmed || e == errc::already_held) return;
  const auto& t = c.terms;
  const bool cancelled = own_cancel || cancelled_since(t.scope.get()) || may_be_cancelled_by_loss(t.scope.get());
  if (e == asio::error::operation_aborted && cancelled) return;
  if (e == errc::not_held && t.throws_not_held) return;
  if (retries(e) && t.throws_retry) {
    const bool silent = e == errc::unreachable || e == errc::quorum_failed;
    if (!silent || !t.not_before_limit || now + 2ms >= c.begun + *t.limit) return;
    return tell("says before its deadline that there was no answer: " + t.what, t.what, t.task);
  }
  tell("an answer that is none of this call: " + e.message() + ": " + t.what, t.what, t.task);
}

void call_book::judge(const late_call& late) {
  const auto excused = held_up(late.limit, late.ended);
  const auto by = late.ended - late.limit;
  if (by <= grace + excused) return;
  const auto& t = late.call.terms;
  tell("late by " + in_ms(by) + " (the process was held up for " + in_ms(excused) + "), after " +
           in_ms(late.ended - late.call.begun) + ", limit " + in_ms(late.limit - late.call.begun) + ": " + t.what +
           ": " + late.answer,
       t.what, t.task);
}

std::chrono::nanoseconds call_book::held_up(call_instant from, call_instant to) const {
  std::chrono::nanoseconds all{};
  for (auto b = beats_.rbegin(); b != beats_.rend() && b->first >= from; ++b)
    if (b->first - b->second <= to) all += b->second;
  return all;
}

void call_book::beat(call_instant now, std::chrono::nanoseconds late) {
  const std::lock_guard lock(guard_);
  beats_.emplace_back(now, late);
  if (late > 20ms) add_line(nobody, "the event loop stood still for " + in_ms(late));
  for (const auto& l : std::exchange(late_, {})) judge(l);
}

void call_book::check_alone(const lease& l) {
  if (!l.held()) return;
  const std::lock_guard lock(guard_);
  const auto id = l.id();
  for (const auto* other : held_[l.name()])
    if (other->id() != id && other->held() && l.held())
      tell("two holders: " + l.name() + ": " + id + " and " + other->id(), l.name(), nobody);
}

void call_book::enter(const lease& l) {
  check_alone(l);
  const std::lock_guard lock(guard_);
  held_[l.name()].push_back(&l);
  released_.erase(base_of(l.id()));
}

void call_book::leave(const lease& l) {
  const std::lock_guard lock(guard_);
  for (auto& [name, leases] : held_) std::erase(leases, &l);
}

void call_book::released(std::string_view id, bool confirmed) {
  const std::lock_guard lock(guard_);
  for (const auto& [name, leases] : held_)
    for (const auto* l : leases)
      if (base_of(l->id()) == base_of(id)) return;  // others hold it still
  released_[base_of(id)] = confirmed;
}

bool call_book::was_released(const std::string& field) const {
  const std::lock_guard lock(guard_);
  const auto found = released_.find(field);
  return found != released_.end() && found->second;
}

void call_book::note(std::size_t task, std::string text) {
  const std::lock_guard lock(guard_);
  add_line(task, std::move(text));
}

void call_book::note_event(std::string_view kind, std::string text) {
  const std::lock_guard lock(guard_);
  ++events_[std::string(kind)];
  add_line(nobody, std::move(text));
}

void call_book::add_line(std::size_t task, std::string text) {
  lines_.push_back({steady_clock::now(), task, std::move(text)});
  if (lines_.size() > most_lines) lines_.pop_front();
}

void call_book::violation(std::string text, std::string_view about) {
  const std::lock_guard lock(guard_);
  tell(std::move(text), about, nobody);
}

// With what the same task, the same names and nobody did before.
void call_book::tell(std::string text, std::string_view about, std::size_t task) {
  ++violations_;
  std::cout << "VIOLATION " << text << '\n';
  if (violations_ > most_reports) return;
  std::set<std::string> names;
  std::istringstream words{std::string(about)};
  for (std::string word; words >> word;)
    if (word.find('.') != word.npos) names.insert(word);
  std::vector<const line*> told;
  for (auto l = lines_.rbegin(); l != lines_.rend() && told.size() < most_told; ++l) {
    if (l->at < steady_clock::now() - told_before) break;
    const bool named = std::any_of(names.begin(), names.end(),
                                   [&](const std::string& n) { return l->text.find(n + ' ') != l->text.npos; });
    const bool of_task = task != nobody && l->task == task;
    const bool of_all = l->task == nobody && l->text.find(" event ") == l->text.npos;
    if (named || of_task || of_all) told.push_back(&*l);
  }
  for (auto l = told.rbegin(); l != told.rend(); ++l) {
    std::cout << "  " << in_ms((*l)->at - start_) << ' ';
    if ((*l)->task != nobody) std::cout << "task " << (*l)->task << ' ';
    std::cout << (*l)->text << '\n';
  }
  std::cout << std::flush;
}

std::size_t call_book::calls() const {
  const std::lock_guard lock(guard_);
  return ended_;
}
std::size_t call_book::open_calls() const {
  const std::lock_guard lock(guard_);
  return open_.size();
}
std::size_t call_book::violations() const {
  const std::lock_guard lock(guard_);
  return violations_;
}

void call_book::tell_open_calls() {
  const std::lock_guard lock(guard_);
  const auto now = steady_clock::now();
  for (const auto& [n, call] : open_)
    tell("does not end: call " + std::to_string(n) + ", since " + in_ms(now - call.begun) + ": " + call.terms.what,
         call.terms.what, call.terms.task);
}

std::string call_book::summary() const {
  const std::lock_guard lock(guard_);
  std::ostringstream text;
  text << ended_ << " calls, " << violations_ << " violations";
  for (const auto& [answer, n] : answers_) text << "; " << answer << ' ' << n;
  text << "; events:";
  for (const auto& [event, n] : events_) text << ' ' << event << ' ' << n;
  return text.str();
}

void call_book::next_round() {
  const std::lock_guard lock(guard_);
  released_.clear();
  beats_.clear();
}

void book_observer::on(const event& e) noexcept {
  try {
    std::ostringstream text;
    text << client_ << " event " << to_string(e.kind) << ' ' << e.name << ' ' << e.id;
    if (e.reason) text << " (" << e.reason.message() << ')';
    if (!e.detail.empty()) text << ' ' << e.detail;
    book_.note_event(to_string(e.kind), text.str());
  } catch (const std::exception&) {  // a line less
  }
}

}  // namespace holdfast::chaos
