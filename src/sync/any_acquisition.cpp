// SPDX-License-Identifier: BSL-1.0
#include "sync/any_acquisition.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/cancelled.hpp"
#include "sync/lease_record.hpp"
#include "sync/registry.hpp"

namespace holdfast::detail {
namespace {

std::string about_any(std::size_t locks, std::string_view cause = {}) {
  auto text = "any of " + std::to_string(locks) + " locks";
  if (!cause.empty()) text.append(": ").append(cause);
  return text;
}

/// A failure that another lock of the same server need not have.
bool of_one_lock(const error_code& e) { return e == errc::corrupt_lock || e == errc::no_permission; }

}  // namespace

any_acquisition::any_acquisition(surroundings& around, registry& names, std::vector<shared_keys> of, lock_request r,
                                 lock_handler done)
    : request(std::move(r)), around_(around), names_(names), since_(around.now()), of_(std::move(of)),
      done_(std::move(done)), alarm_(around.alarms) {
  HOLDFAST_ASSERT(!of_.empty());
  const auto first = static_cast<std::ptrdiff_t>(around.random.next() % of_.size());
  std::rotate(of_.begin(), of_.begin() + first, of_.end());
}

void any_acquisition::begin() {
  std::copy_if(of_.begin(), of_.end(), std::back_inserter(asked_),
               [&](const shared_keys& k) { return names_.untouched(*k); });
  if (!asked_.empty()) return ask();
  if (asks_once()) return finish({});
  wait_in_lines();
}

void any_acquisition::ask() {
  field_ = names_.new_field();
  const auto& asked = request.asked;
  const delivery how{.timeout = command_budget(around_.settings, asked.ttl),
                     .rank = asks_once() ? urgency::refusable : urgency::patient,
                     .patient = !asks_once()};
  if (request.deadline != time_point::max()) alarm_.start(request.deadline, [this] { time_out(); });
  send(around_.servers, of_.front()->of.acquire_any.make(asked_, asked.ttl, field_), how);
  under_way_ = true;
}

void any_acquisition::on_answer(const outcome& o) {
  under_way_ = false;
  if (!open()) return;  // what it was granted is being given back
  const auto said = of_.front()->of.acquire_any.read(o, asked_.size());
  if (said.failed) return on_failed(*said.failed);
  if (said.value.number) return on_granted(*said.value.number, said.value.token, o.sent);
  found_taken_ = true;
  if (asks_once()) return finish({});
  wait_in_lines();
}

void any_acquisition::on_granted(std::size_t which, std::optional<std::uint64_t> token, time_point sent) {
  const auto& its = asked_[which];
  const auto now = around_.now();
  const auto ttl = request.asked.ttl;
  if (now >= valid_until(sent, ttl, around_.settings.drift) - min_validity(ttl)) {
    give_back({&its, 1});
    return on_failed({errc::unreachable, "the grant came too late to be of use"});
  }
  lock_answer a;
  try {
    a.record = names_.granted(its, request, {field_, token, sent, now});
  } catch (const std::bad_alloc&) {
    give_back({&its, 1});
    a = without_memory();
  }
  finish(std::move(a));
}

// It does not ask twice: the script does not know its own field again. The lines do what is to be done in an outage.
void any_acquisition::on_failed(const failure& why) {
  if (why.may_have_run) give_back(asked_);
  if (asks_once() || !why.mends_itself()) return finish({why.code, about_any(of_.size(), why.detail), nullptr});
  if (untried_ == 0) wait_in_lines();
}

// Where there is no memory for it, the key ends with its TTL.
void any_acquisition::give_back(std::span<const shared_keys> which) noexcept {
  const auto tried = [id = weak_from_this()] {
    if (const auto still = id.lock()) static_cast<any_acquisition&>(*still).on_tried();
  };
  for (const auto& k : which) {
    ++untried_;
    try {
      names_.give_back(k, field_, request.asked.ttl, tried);
    } catch (const std::bad_alloc&) {
      --untried_;
    }
  }
}

void any_acquisition::on_tried() {
  HOLDFAST_ASSERT(untried_ > 0);
  if (--untried_ == 0 && open() && !under_way_) wait_in_lines();
}

void any_acquisition::time_out() {
  const auto& key = of_.front()->lock;
  if (around_.servers.answering(key)) return fail({}, "");
  const auto why = around_.servers.trouble(key);
  fail(errc::unreachable, why.detail.c_str());
}

void any_acquisition::wait_in_lines() {
  alarm_.stop();
  const auto keep = self();
  try {
    join_lines();
  } catch (const std::bad_alloc&) {
    if (open()) finish(without_memory());
  }
}

void any_acquisition::join_lines() {
  parts_.reserve(of_.size());
  waiting_ = of_.size();
  auto part = request;
  part.one_of_several = true;
  auto asked = asked_.begin();  // in the order of of_
  for (const auto& k : of_) {
    const bool was_asked = asked != asked_.end() && *asked == k;
    if (was_asked) ++asked;
    part.found_taken = was_asked && found_taken_;
    auto its = names_.lock(k, part, [self = self(), k](lock_answer a) { self->part_ended(*k, std::move(a)); });
    if (!open()) return;
    if (its) parts_.push_back(std::move(its));
  }
}

void any_acquisition::part_ended(const lock_keys& which, lock_answer a) {
  if (!open()) return;  // another was granted, or nobody waits any more
  HOLDFAST_ASSERT(waiting_ > 0);
  --waiting_;
  if (a.record) return finish(std::move(a));
  if (a.error) a.detail = about(which.name, a.detail);
  if (a.error && !of_one_lock(a.error)) return finish(std::move(a));
  if (!a.error) in_vain_ = true;
  if (a.error && !failed_.error) failed_ = std::move(a);
  if (waiting_ == 0) finish(in_vain_ ? lock_answer() : std::move(failed_));
}

void any_acquisition::cancel() { fail(cancelled(), ""); }

void any_acquisition::fail(error_code error, const char* detail) {
  if (!open()) return;
  const auto keep = self();
  if (under_way_ && !withdraw()) give_back(asked_);
  finish({error, error ? about_any(of_.size(), detail) : std::string(), nullptr});
}

// The others leave first: whoever has one lock waits for no other. Each does, also where one finds no memory to.
void any_acquisition::finish(lock_answer a) {
  const auto keep = self();
  names_.forget(*this);
  alarm_.stop();
  const auto done = std::exchange(done_, {});
  std::exception_ptr no_memory;
  const auto hear_of = [&](auto act) {
    try {
      act();
    } catch (const std::bad_alloc&) {
      no_memory = std::current_exception();
    }
  };
  for (const auto& p : std::exchange(parts_, {})) hear_of([&] { p->cancel(); });
  hear_of([&] { report(a); });
  done(std::move(a));
  if (no_memory) std::rethrow_exception(no_memory);
}

void any_acquisition::forget_caller() {
  alarm_.stop();
  done_ = {};
}

void any_acquisition::report(const lock_answer& a) const {
  if (!around_.settings.observer) return;
  auto e = a.record ? event_of(event::kind::acquired, *a.record->of, around_.now())
                    : hold_event{{.what = end_of_call(a.error)}};
  e.what.reason = a.error;
  e.what.waited = around_.now() - since_;
  const auto all = about_any(of_.size());
  e.what.detail = a.detail.empty() ? all : a.detail;
  e.what.owner = request.who;
  e.what.ttl = request.asked.ttl;
  around_.report(e);
}

}  // namespace holdfast::detail
