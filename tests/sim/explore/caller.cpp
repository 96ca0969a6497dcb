// SPDX-License-Identifier: BSL-1.0
#include "sim/explore/caller.hpp"

#include <utility>

#include "api/arguments.hpp"

namespace holdfast::sim::explore {
namespace {

using wait_mode = detail::lock_request::wait_mode;

std::string_view name_of(verb called) {
  switch (called) {
    case verb::lock: return "lock";
    case verb::try_lock: return "try_lock";
    case verb::lock_any: return "lock_any";
    case verb::read: return "read";
    case verb::write: return "write";
    case verb::downgrade: return "downgrade";
    case verb::unlock: return "unlock";
  }
  return {};
}

std::string outcome_of(const std::optional<detail::failure>& failed, std::string_view success) {
  return failed ? failed->code.message() : std::string(success);
}

}  // namespace

// A caller that has not got its lease has nothing to unlock or to downgrade.
std::optional<std::string> caller::next() {
  if (waits()) return std::nullopt;
  const auto gives_up = [](verb each) { return each == verb::unlock || each == verb::downgrade; };
  while (at_ < plays_.acts.size() && gives_up(plays_.acts[at_]) && leases_.empty()) ++at_;
  if (at_ == plays_.acts.size()) return std::nullopt;
  return std::string(name_of(plays_.acts[at_])) + ' ' + std::to_string(at_);
}

bool caller::yields_to(const caller& inner) {
  const bool unlocks = next() && plays_.acts[at_] == verb::unlock;
  return plays_.outer && unlocks && &inner != this && &inner.acts_for_ == &acts_for_;
}

void caller::act() {
  const auto called = plays_.acts[at_++];
  note(name_of(called));
  switch (called) {
    case verb::unlock: return unlock();
    case verb::lock_any: return lock_any();
    case verb::downgrade: return downgrade();
    default: return lock(called);
  }
}

void caller::lock(verb called) {
  const bool writes = called == verb::write, shared = writes || called == verb::read;
  const auto keys =
      shared ? std::make_shared<const detail::lock_keys>(writes ? detail::shared_writer : detail::shared_reader,
                                                         name_->name, detail::naming{.prefix = {}, .word = name_->word})
             : name_;
  const detail::lock_request request{.owner = acts_for_.self,
                                     .bound = true,
                                     .wait = called == verb::try_lock ? wait_mode::once : wait_mode::forever,
                                     .amount = plays_.permits,
                                     .asked = detail::resolve_terms(client_.settings(), {.renew = plays_.renews})};
  const auto text = std::string(name_of(called)) + ' ' + name_->name;
  const auto call = called == verb::try_lock ? judge_.begin_try(client_, name_->name, text)
                    : shared                 ? judge_.begin_wait_for_shared(client_, name_->name, writes, text)
                    : name_->of.semaphore.make
                        ? judge_.begin_wait_for_permits(client_, name_->name, plays_.permits, text)
                        : judge_.begin_wait(client_, {name_->name}, text);
  ++unanswered_;
  waits_for_lock_ = true;
  const auto answered = std::make_shared<bool>(false);
  auto place = client_.locks().lock(
      keys, request, [self = shared_from_this(), call, keys, answered](const detail::lock_answer& answer) {
        *answered = true;
        self->on_answer(call, *keys, keys->of.fenced(), answer);
      });
  if (!*answered) place_ = std::move(place);
}

void caller::on_answer(std::uint64_t call, const detail::lock_keys& keys, bool fenced,
                       const detail::lock_answer& answer) {
  --unanswered_;
  waits_for_lock_ = false;
  place_.reset();
  if (redis::error_of(answer.failed) == errc::lost) judge_.lost_to_caller(client_, keys, acts_for_.leases > 0);
  judge_.answered(call);
  note(outcome_of(answer.failed, answer.value ? "granted" : "busy"));
  if (!answer.value) return;
  judge_.granted(client_, answer.value, fenced);
  take(answer.value);
  go_on_at_once();
}

void caller::take(const record_ptr& lease) {
  leases_.push_back(lease);
  ++acts_for_.leases;
}

record_ptr caller::give_up() {
  const auto lease = leases_.back();
  leases_.pop_back();
  --acts_for_.leases;
  return lease;
}

// The list has one lock: a part of lock_any() never re-enters, and that is enough here.
void caller::lock_any() {
  const detail::lock_request request{.owner = acts_for_.self,
                                     .bound = true,
                                     .wait = wait_mode::forever,
                                     .asked = detail::resolve_terms(client_.settings(), {.renew = plays_.renews})};
  const auto call = judge_.begin_wait(client_, {name_->name}, "lock_any " + name_->name);
  ++unanswered_;
  waits_for_lock_ = true;
  const auto answered = std::make_shared<bool>(false);
  auto place = client_.locks().lock_any({name_}, request,
                                        [self = shared_from_this(), call, answered](const detail::lock_answer& answer) {
                                          *answered = true;
                                          self->on_answer(call, *self->name_, self->name_->of.fenced(), answer);
                                        });
  if (!*answered) place_ = std::move(place);
}

// The caller cannot unlock the write lease until the answer. Its owner has that lease all the same.
void caller::downgrade() {
  const auto write = give_up();
  ++acts_for_.leases;
  const auto reader = std::make_shared<const detail::lock_keys>(detail::shared_reader, name_->name,
                                                                detail::naming{.prefix = {}, .word = name_->word});
  const auto call = judge_.begin(client_, "downgrade " + name_->name);
  judge_.begin_downgrade(write);
  ++unanswered_;
  waits_for_lock_ = true;
  const auto answered = std::make_shared<bool>(false);
  auto place = client_.locks().downgrade(
      write, reader, [self = shared_from_this(), call, write, answered](const detail::lock_answer& answer) {
        *answered = true;
        --self->unanswered_;
        self->waits_for_lock_ = false;
        self->place_.reset();
        self->judge_.answered(call);
        self->note(outcome_of(answer.failed, "reads"));
        self->judge_.end_downgrade(write, answer.value != nullptr);
        --self->acts_for_.leases;
        if (answer.value) self->judge_.granted(self->client_, answer.value, false);
        self->take(answer.value ? answer.value : write);
        self->go_on_at_once();
      });
  if (!*answered) place_ = std::move(place);
}

void caller::go_on_at_once() {
  if (plays_.at_once && next()) act();
}

void caller::cancel() {
  note("cancel");
  plays_.may_cancel = false;
  const auto keep = place_;
  keep->cancel();
}

void caller::unlock() {
  const auto lease = give_up();
  const auto call = judge_.begin(client_, "unlock " + name_->name);
  judge_.released(lease);
  ++unanswered_;
  client_.locks().unlock(lease, [self = shared_from_this(), call, lease](const std::optional<detail::failure>& failed) {
    --self->unanswered_;
    self->judge_.answered(call);
    self->judge_.unlocked(self->client_, *lease->of->keys(), redis::error_of(failed));
    self->note(outcome_of(failed, "released"));
    self->go_on_at_once();
  });
}

}  // namespace holdfast::sim::explore
