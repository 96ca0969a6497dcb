// SPDX-License-Identifier: BSL-1.0
#include "sync/inquiry/permission_probe.hpp"

#include <utility>

#include "base/assert.hpp"
#include "protocol/derived_keys.hpp"
#include "sync/command/ask_twice.hpp"
#include "sync/command/send_once.hpp"

namespace holdfast::detail {

permission_probe::permission_probe(environment& env, const kind& kind, const std::string& name, owner_field field,
                                   done_handler done)
    : env_(env), done_(std::move(done)), keys_(kind, name, {.prefix = {}, .word = env.word}), field_(field),
      alarm_(env.alarms) {
  // next() uses set_hold_count, which only re-entrant kinds have.
  HOLDFAST_ASSERT(kind.set_hold_count.make);
}

void permission_probe::begin(time_point deadline) {
  deadline_ = deadline;
  // SUBSCRIBE goes over its own connection, so it takes no time from the scripts.
  subscription_ = env_.servers.subscribe(channel_of(keys_), *this);
  alarm_.start(deadline_, [this] { time_out(); });
  send_next();
}

void permission_probe::end(const std::optional<failure>& failed) {
  if (over()) return;
  // The handler may destroy this probe. Nothing is touched after the call.
  const auto done = std::move(done_);
  forget_caller();
  done(failed);
}

void permission_probe::forget_caller() {
  alarm_.stop();
  subscription_.reset();
  done_ = {};
}

void permission_probe::on_subscribed() {
  subscribed_ = true;
  end_if_done();
}

call permission_probe::next() const {
  // Short: a probe that breaks off leaves a key behind.
  constexpr milliseconds ttl{1000};
  const auto& row = keys_.of;
  switch (answers_) {
    case 0: return row.acquire.make(keys_, ttl, field_);
    case 1: return row.set_hold_count.make(keys_, {ttl}, field_, 2);
    case 2: return row.renew.make_one(keys_, {ttl}, field_);
    default: return row.release.make(keys_, field_);
  }
}

void permission_probe::send_next() {
  auto send = [self = shared_from_this()](time_point end, topology::handler then) {
    send_until(self->env_, end, self->next(), urgency::refusable, std::move(then));
  };
  auto heard = [self = shared_from_this()](const outcome& outcome) { self->answered(outcome); };
  // A lost connection proves no missing permission, so each script has a second try.
  ask_twice(env_, deadline_ - env_.now(), std::move(send), std::move(heard));
}

void permission_probe::answered(const outcome& outcome) {
  if (over()) return;
  // A release succeeds even if PUBLISH is refused: the refusal is in the answer's text.
  for (const auto& refused : {refusal_in(outcome), withheld_message(outcome)})
    if (refused) return end(refused);
  if (++answers_ < all_scripts) return send_next();
  ask_for_replicas(outcome.server);
}

// A server without WAIT, or without enough replicas, is found now and not by the first lock.
void permission_probe::ask_for_replicas(std::uint64_t server) {
  const auto wanted = env_.settings.min_replicas;
  if (wanted > 0)
    return env_.when_replicated(keys_.lock, wanted, server, time_point::max(),
                                [self = shared_from_this()](const std::optional<failure>& too_few) {
                                  if (too_few) return self->end(too_few);
                                  self->replicated_ = true;
                                  self->end_if_done();
                                });
  replicated_ = true;
  end_if_done();
}

void permission_probe::end_if_done() {
  if (replicated_ && subscribed_) end(std::nullopt);
}

// The probe has an alarm of its own, because the subscription has no deadline. A missing acknowledgement is named as
// such: the server is reachable then, and only the other connection is not.
void permission_probe::time_out() {
  if (replicated_) return end(failure{errc::unreachable, "SUBSCRIBE was not acknowledged in time"});
  end(env_.servers.trouble(keys_.lock));
}

}  // namespace holdfast::detail
