// SPDX-License-Identifier: BSL-1.0
#include "sync/latches.hpp"

#include <memory>
#include <utility>

#include "protocol/derived_keys.hpp"
#include "protocol/latch/countdown_latch.hpp"
#include "sync/command/ask_twice.hpp"
#include "sync/command/send_once.hpp"

namespace holdfast::detail {
namespace {

/// A caller that waits, for observers. It is counted until its wait ends, or its client.
class counted_waiter {
 public:
  counted_waiter(const environment& env, shared_keys keys) : env_(env), keys_(std::move(keys)) {
    env_.count(measurement_kind::wait_began, *keys_);
  }
  counted_waiter(const counted_waiter&) = delete;
  counted_waiter& operator=(const counted_waiter&) = delete;
  ~counted_waiter() { env_.count(measurement_kind::wait_ended, *keys_); }

 private:
  const environment& env_;
  const shared_keys keys_;
};

sight read_sight(const redis::outcome& outcome) {
  auto counted = latch_steps::read_count(outcome);
  return {.failed = std::move(counted.failed), .is_so = counted.value == 0};
}

}  // namespace

void latches::try_set(const shared_keys& keys, std::uint32_t count, const owner_field& field,
                      answer_handler<bool> done) {
  if (parts_.closed()) return done({failure{errc::shutting_down, {}}, {}});
  // The closures keep the operands, because a call refers to them until it is answered.
  const auto change = std::make_shared<const latch_call_keys>(*keys, count, mark_ttl(), field);
  const auto may_have_run = std::make_shared<bool>(false);
  auto send = [this, change, may_have_run](time_point end, topology::handler then) {
    auto heard = [may_have_run, then = std::move(then)](const outcome& outcome) {
      *may_have_run |= outcome.error == errc::unconfirmed;
      then(outcome);
    };
    send_until(parts_.env, end, latch_steps::try_set(*change), urgency::refusable, std::move(heard));
  };
  auto answered = [this, change, may_have_run,
                   done = parts_.calls.until_closed(errc::shutting_down, std::move(done))](const outcome& outcome) {
    auto reply = latch_steps::read_set(outcome);
    if (!reply.failed)
      parts_.env.note_withheld_message(outcome);
    else if (*may_have_run)
      reply.failed->code = errc::unconfirmed;
    done(std::move(reply));
  };
  ask_twice(parts_.env, parts_.env.settings.command_timeout, std::move(send), std::move(answered));
}

void latches::count_down(const shared_keys& keys, std::uint32_t n, const owner_field& field, done_handler done) {
  if (parts_.closed()) return done(failure{errc::shutting_down, {}});
  const auto now = parts_.env.now();
  const auto answer_by = now + parts_.env.settings.command_timeout;
  parts_.freeing.release(*this, std::make_shared<const latch_call_keys>(*keys, n, mark_ttl(), field), field,
                         repeated_for, now, answer_by, answer_by, everywhere,
                         [done = std::move(done)](const std::optional<failure>& failed) { done(failed); });
}

void latches::count(const shared_keys& keys, answer_handler<std::uint32_t> done) const {
  if (parts_.closed()) return done({failure{errc::shutting_down, {}}, {}});
  auto send = [this, keys](time_point end, topology::handler then) {
    send_until(parts_.env, end, latch_steps::count(*keys), urgency::refusable, std::move(then));
  };
  auto answered = [done = parts_.calls.until_closed(errc::shutting_down, std::move(done))](const outcome& outcome) {
    done(latch_steps::read_count(outcome));
  };
  ask_twice(parts_.env, parts_.env.settings.command_timeout, std::move(send), std::move(answered));
}

cancellable_ptr latches::wait(const shared_keys& keys, time_point deadline, answer_handler<bool> done) {
  if (parts_.closed() || draining_) {
    done({failure{errc::shutting_down, draining_ ? nobody_waits : ""}, {}});
    return nullptr;
  }
  auto counted = [waiter = std::make_unique<counted_waiter>(parts_.env, keys),
                  done = std::move(done)](answer<bool>&& open) mutable {
    waiter.reset();
    done(std::move(open));
  };
  return waiting_.begin(parts_.env, {keys, channel_of(*keys), latch_steps::count, read_sight}, deadline,
                        std::move(counted));
}

void latches::drain() {
  draining_ = true;
  waiting_.fail_all(errc::shutting_down, nobody_waits);
}

void latches::close() { waiting_.fail_all(errc::shutting_down, ""); }

}  // namespace holdfast::detail
