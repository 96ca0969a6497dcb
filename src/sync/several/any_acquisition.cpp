// SPDX-License-Identifier: BSL-1.0
#include "sync/several/any_acquisition.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/assert.hpp"
#include "base/cancelled.hpp"
#include "base/if_memory.hpp"
#include "sync/hold/lease_record.hpp"

namespace holdfast::detail {
namespace {

std::string about_any(std::size_t locks, std::string_view cause = {}) { return about_several("any of", locks, cause); }

/// True: another lock of the same server need not have this failure.
bool of_one_lock(const failure& why) { return why.code == errc::corrupt_lock || why.code == errc::no_permission; }

}  // namespace

// Decision: any one of several is one script, and then a waiter in each line. The script asks for all locks that this
// client neither holds nor waits for, in one round trip. Where none is free, the call has an acquisition in each line.
// These begin with the subscription, because the script's answer is a moment old. The call then waits in the same order
// as every other caller, and the lines handle outages, polls and ambiguous answers.
//
// Decision: the script is not repeated. To recognise its own field it would have to look at all names before it takes
// one. An answer that does not come is followed by a release of each name. The call joins the lines when Redis may have
// received those, for the reason that blocks a line.
//
// Decision: a lock that is corrupt or forbidden leaves the other parts waiting. A failure of the whole server ends the
// call at once.
//
// Decision: keys of several slots have a script for each slot, one after the other, until the first grant. A slot whose
// server does not answer delays no other. All scripts of a try_lock() share one command timeout.

// The states of the call. It asks one group of keys after the other, then it waits in lines.
//
//   state      under_way_  pending_giveback_  alarm_    parts_  ends by
//   asks       yes         any       deadline  none    on_answer(): the next group, confirms, frees, lines or answered
//   confirms   yes         any       deadline  none    on_replicas(): answered, the next group, frees or lines
//   frees      no          > 0       deadline  none    on_tried(): lines
//   lines      no          0         no        some    part_ended(): a grant, a failure of the server, or the last part
//   answered   any         any       no        none    nothing; an answer that comes yet finds its locks given back
//
// Each state but "answered" also ends by fail(): the alarm, a cancellation, a drain or the end of the client. In
// "lines" each part has the deadline. A try_lock() knows neither "frees" nor "lines", so its releases may outlive it.
// Without a deadline there is no alarm. A call whose names are all touched begins in "lines". Lack of memory answers in
// each state.
//
//   flag         asks, confirms, frees              lines                          moved by
//   found_busy_  a group had no free lock           a part did not get it in time  go_on(), part_ended(); cleared by
//                                                                                  join_lines()
//   failed_      a group failed, for a try_lock()   the first part that failed     on_failed(), part_ended()
//   taken_       those that Redis has called busy   their parts begin by listening go_on()
//   waiting_     0                                  parts that have not ended      join_lines(), part_ended()

any_acquisition::any_acquisition(environment& env, multi_key_host& names, std::vector<shared_keys> of,
                                 lock_request request, lock_handler done)
    : multi_key_request(std::move(request)), env_(env), names_(names), since_(env.now()), of_(std::move(of)),
      done_(std::move(done)), alarm_(env.alarms) {
  HOLDFAST_ASSERT(!of_.empty());
  // The script takes the first free lock. Callers with one list would all fight for its beginning.
  const auto first = static_cast<std::ptrdiff_t>(env.random.next() % of_.size());
  std::rotate(of_.begin(), of_.begin() + first, of_.end());
  order_by_group();
}

// Groups keep the order of their first keys. Groups whose server is in an outage come last, because each may cost a
// command timeout.
void any_acquisition::order_by_group() {
  const auto group = group_of(of_.front());
  if (std::all_of(of_.begin(), of_.end(), [&](const shared_keys& keys) { return group_of(keys) == group; })) return;
  one_group_ = false;
  std::unordered_map<key_group, std::pair<bool, std::size_t>> places;
  std::vector<std::pair<std::pair<bool, std::size_t>, shared_keys>> all;
  for (auto& keys : of_) {
    const std::pair last{env_.servers.in_outage(keys->lock), places.size()};
    const auto place = places.try_emplace(group_of(keys), last).first->second;
    all.emplace_back(place, std::move(keys));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
  std::transform(all.begin(), all.end(), of_.begin(), [](auto& each) { return std::move(each.second); });
}

void any_acquisition::begin() { ask_next(); }

// Locks that this client holds or waits for are skipped: the call must not overtake earlier waiters. A group without
// other locks costs no command.
void any_acquisition::ask_next() {
  asked_.clear();
  while (asked_.empty() && next_ < of_.size()) {
    const auto group = group_of(of_[next_]);
    for (; next_ < of_.size() && group_of(of_[next_]) == group; ++next_)
      if (names_.untouched(*of_[next_])) asked_.push_back(of_[next_]);
  }
  if (!asked_.empty()) return ask();
  if (asks_once()) return finish(nothing_had());
  // A release that Redis has not received may free nothing for other clients, as in a line that is blocked.
  if (pending_giveback_ == 0) wait_in_lines();
}

// All scripts of a try_lock() share its time. With several groups no script waits through an outage, because the next
// one may go to a healthy server.
void any_acquisition::ask() {
  // No field is used twice, so a late copy or release of an earlier script never meets a later grant.
  field_ = names_.new_field();
  const auto& asked = request.asked;
  const bool first = !found_busy_ && !failed_;
  const auto budget = command_budget(env_.settings, asked.ttl);
  const delivery delivery{.timeout = first || !asks_once() ? budget : since_ + budget - env_.now(),
                          .rank = asks_once() ? urgency::refusable : urgency::awaited,
                          .waits_for_reply = one_group_ && !asks_once()};
  if (delivery.timeout <= nanoseconds::zero()) return finish(nothing_had());
  if (request.deadline != time_point::max())
    alarm_.start(request.deadline, [this] { or_without_memory([this] { time_out(); }); });
  auto script = of_.front()->of.acquire_any.make(asked_, asked.ttl, field_);
  send(env_.servers, std::move(script).with_token_ttl(env_.settings.token_ttl), delivery);
  under_way_ = true;
  if (env_.notices) env_.notices->waits_for_redis(noticed_, asked_.front(), since_);
}

std::optional<nanoseconds> any_acquisition::time_left_for_copies() const {
  if (!asks_once()) return std::nullopt;
  return since_ + command_budget(env_.settings, request.asked.ttl) - env_.now();
}

void any_acquisition::on_no_memory() {
  if (open()) finish({redis::without_memory()});
}

void any_acquisition::on_answer(const outcome& outcome) {
  under_way_ = false;
  // An answered call has released all names of this script already.
  if (open()) or_without_memory([&] { go_on(outcome); });
}

void any_acquisition::go_on(const outcome& outcome) {
  const auto reply = of_.front()->of.acquire_any.read(outcome, asked_.size());
  if (reply.failed) return on_failed(*reply.failed);
  if (reply.value.number) {
    const auto index = *reply.value.number;
    if (request.asked.min_replicas > 0) return wait_for_replicas(index, reply.value.token, outcome);
    return on_granted(index, reply.value.token, outcome.sent);
  }
  found_busy_ = true;
  taken_.insert(taken_.end(), asked_.begin(), asked_.end());
  ask_next();
}

void any_acquisition::wait_for_replicas(std::size_t index, std::optional<std::uint64_t> token, const outcome& outcome) {
  under_way_ = true;
  const auto& asked = request.asked;
  auto then = [this, self = self(), index, token, sent = outcome.sent](const std::optional<failure>& too_few) {
    under_way_ = false;
    // An answered call has released the grant already.
    if (open()) or_without_memory([&] { on_replicas(index, token, sent, too_few); });
  };
  const bool waits = if_memory([&] {
    env_.when_replicated(asked_[index]->lock, asked.min_replicas, outcome.server,
                         valid_until(outcome.sent, asked.ttl, env_.settings.drift), std::move(then));
  });
  if (waits) return;
  under_way_ = false;
  give_back({&asked_[index], 1});
  finish({redis::without_memory()});
}

void any_acquisition::on_replicas(std::size_t index, std::optional<std::uint64_t> token, time_point sent,
                                  const std::optional<failure>& too_few) {
  if (!too_few) return on_granted(index, token, sent);
  give_back({&asked_[index], 1});
  env_.report({.kind = event_kind::not_replicated,
               .name = asked_[index]->name,
               .reason = too_few->code,
               .detail = too_few->detail,
               .owner = request.owner,
               .ttl = request.asked.ttl});
  on_failed(*too_few);
}

void any_acquisition::on_granted(std::size_t index, std::optional<std::uint64_t> token, time_point sent) {
  const auto& keys = asked_[index];
  const auto now = env_.now();
  const auto ttl = request.asked.ttl;
  // The validity counts from the time of sending, so a slow answer can bring a grant that is nearly over.
  if (now >= valid_until(sent, ttl, env_.settings.drift) - min_validity(ttl)) {
    give_back({&keys, 1});
    return on_failed({errc::unreachable, "the grant came too late to be of use"});
  }
  lock_answer answer;
  try {
    answer.value =
        names_.granted(keys, request, field_, {.reply = {{}, {.token = token}}, .answered = true, .sent = sent}, now);
  } catch (const std::bad_alloc&) {
    give_back({&keys, 1});
    answer.failed = redis::without_memory();
  }
  finish(std::move(answer));
}

// The script is not sent twice, see the decision above. In an outage the lines wait and retry. The next group may be of
// a healthy server.
void any_acquisition::on_failed(const failure& why) {
  if (why.may_have_run) give_back(asked_);
  // Redis checks the permission for every key before it runs a script, so one forbidden key refuses all. In the lines
  // each key has a command of its own.
  const bool in_lines = why.mends_itself() || why.code == errc::no_permission;
  failure failed{why.code, about_any(of_.size(), why.detail)};
  if (!in_lines) return finish({std::move(failed)});
  if (asks_once() && !failed_) failed_ = std::move(failed);
  ask_next();
}

lock_answer any_acquisition::nothing_had() { return found_busy_ ? lock_answer() : lock_answer{std::move(failed_)}; }

// Without memory for the release the key ends with its TTL.
void any_acquisition::give_back(std::span<const shared_keys> locks) noexcept {
  const auto tried = [id = weak_from_this()] {
    if (const auto still = id.lock()) static_cast<any_acquisition&>(*still).on_tried();
  };
  for (const auto& keys : locks) {
    ++pending_giveback_;
    try {
      names_.give_back(keys, field_, request.asked.ttl, tried);
    } catch (const std::bad_alloc&) {
      --pending_giveback_;
    }
  }
}

void any_acquisition::on_tried() {
  HOLDFAST_ASSERT(pending_giveback_ > 0);
  if (--pending_giveback_ == 0 && open() && !under_way_) wait_in_lines();
}

// Contention needs an answer of every server that was asked. One silent server may have had a free lock.
void any_acquisition::time_out() {
  const auto asked = of_.begin() + static_cast<std::ptrdiff_t>(next_);
  auto why = silence(since_);
  for (auto position = of_.begin(); position != asked && !why; ++position)
    if (!env_.servers.answering((*position)->lock)) why = env_.servers.trouble((*position)->lock);
  give_up(std::move(why));
}

void any_acquisition::wait_in_lines() {
  // Each part has the deadline and the notice from now on.
  alarm_.stop();
  noticed_.end();
  or_without_memory([this] { join_lines(); });
}

void any_acquisition::join_lines() {
  parts_.reserve(of_.size());
  waiting_ = of_.size();
  auto part = request;
  part.one_of_several = true;
  found_busy_ = false;
  // taken_ has the order of of_, so one pass over both is enough.
  auto taken = taken_.begin();
  for (const auto& keys : of_) {
    part.found_taken = taken != taken_.end() && *taken == keys;
    if (part.found_taken) ++taken;
    auto waiter = names_.lock(
        keys, part, [self = self(), at = keys.get()](lock_answer answer) { self->part_ended(*at, std::move(answer)); });
    // The part may have been granted at once, and that has answered the call.
    if (!open()) return;
    if (waiter) parts_.push_back(std::move(waiter));
  }
}

void any_acquisition::part_ended(const lock_keys& keys, lock_answer answer) {
  // The call is answered: finish() cancels the other parts, and each of them ends here.
  if (!open()) return;
  HOLDFAST_ASSERT(waiting_ > 0);
  --waiting_;
  auto& failed = answer.failed;
  if (failed) if_memory([&] { failed->detail = about(keys.name, failed->detail); });
  if (answer.value || (failed && !of_one_lock(*failed))) return finish(std::move(answer));
  if (!failed) found_busy_ = true;
  if (failed && !failed_) failed_ = std::move(failed);
  if (waiting_ == 0) finish(nothing_had());
}

void any_acquisition::cancel() { fail(cancelled(), ""); }

void any_acquisition::fail(error_code error, const char* detail) {
  if (open()) give_up(failure{error, detail});
}

void any_acquisition::give_up(std::optional<failure> why) {
  if (under_way_ && !withdraw()) give_back(asked_);
  if (why) if_memory([&] { why->detail = about_any(of_.size(), why->detail); });
  finish({std::move(why)});
}

// The other parts leave before the caller is answered: an owner of one lock must wait for no other. Lack of memory in
// one part must not keep the others in their lines.
void any_acquisition::finish(lock_answer answer) {
  names_.forget(*this);
  alarm_.stop();
  noticed_.end();
  const auto done = std::exchange(done_, {});
  each_step step;
  for (const auto& part : std::exchange(parts_, {})) step([&] { part->cancel(); });
  step([&] { report(answer); });
  done(std::move(answer));
  step.rethrow();
}

void any_acquisition::forget_caller() {
  alarm_.stop();
  noticed_.end();
  done_ = {};
}

void any_acquisition::report(const lock_answer& answer) const {
  if (!env_.settings.observer) return;
  auto event = answer.value ? event_of(event_kind::acquired, *answer.value->of, env_.now())
                            : hold_event{{.kind = end_of_call(answer.failed), .lock_kind = of_.front()->of.name}};
  report_end(env_, std::move(event), since_, answer.failed, about_any(of_.size()));
}

}  // namespace holdfast::detail
