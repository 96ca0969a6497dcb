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
    case verb::read: return "read";
    case verb::write: return "write";
    case verb::unlock: return "unlock";
  }
  return {};
}

std::string outcome_of(const std::optional<detail::failure>& failed, std::string_view success) {
  return failed ? failed->code.message() : std::string(success);
}

}  // namespace

// A caller that has not got its lease has nothing to unlock.
std::optional<std::string> caller::next() {
  if (waits()) return std::nullopt;
  while (at_ < plays_.acts.size() && plays_.acts[at_] == verb::unlock && leases_.empty()) ++at_;
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
  called == verb::unlock ? unlock() : lock(called);
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
  leases_.push_back(answer.value);
  ++acts_for_.leases;
  go_on_at_once();
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
  const auto lease = leases_.back();
  leases_.pop_back();
  --acts_for_.leases;
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
