// SPDX-License-Identifier: BSL-1.0
#include "sync/lookout/lookout.hpp"

#include <utility>

#include "base/cancelled.hpp"
#include "base/if_memory.hpp"
#include "sync/command/ask_twice.hpp"
#include "sync/command/send_once.hpp"

namespace holdfast::detail {

lookout::lookout(environment& env, lookouts& all, lookout_question question, time_point deadline,
                 answer_handler<bool> done)
    : env_(env), all_(all), question_(std::move(question)), began_(env.now()),
      rules_(env.settings, env.random, deadline), done_(std::move(done)), alarm_(env.alarms) {}

void lookout::cancel() { end({failure{cancelled(), {}}, {}}); }

void lookout::forget_caller() noexcept {
  alarm_.stop();
  subscription_.reset();
  done_ = {};
}

// The server's refusal may be an ACL's. Without messages the caller would sleep until the poll cap.
void lookout::on_subscribe_failed(error_code error, const std::string& detail) {
  perform(rules_.unsubscribed({error, detail}));
}

void lookout::perform(const lookout_action& action) {
  using act = lookout_action::act;
  switch (action.then) {
    case act::wait: return;
    case act::look: set_alarm(action.until); return look();
    case act::park: set_alarm(action.until); break;
    case act::answer: return end({action.failed ? std::optional(*action.failed) : std::nullopt, action.is_so});
    case act::silent: return end({env_.servers.silence_since(question_.keys->lock, began_), false});
  }
  // Without memory for the subscription this caller polls. The next look tries again.
  if (rules_.listens() && !subscription_)
    if_memory([this] { subscription_ = env_.servers.subscribe(question_.channel, *this); });
}

void lookout::set_alarm(time_point until) {
  if (until == time_point::max()) return alarm_.stop();
  alarm_.start(until, [this] { perform(rules_.alarm(env_.now())); });
}

void lookout::look() {
  // The closures keep the keys, because a call refers to them until it is answered.
  auto send = [&env = env_, keys = question_.keys, make = question_.make](time_point end, topology::handler then) {
    send_until(env, end, make(*keys), urgency::awaited, std::move(then));
  };
  auto heard = [id = weak_from_this()](const outcome& outcome) {
    if (const auto still = id.lock()) still->answered(outcome);
  };
  const auto ask = [&] { ask_twice(env_, env_.settings.command_timeout, std::move(send), std::move(heard)); };
  if (!if_memory(ask)) perform(rules_.answered({redis::without_memory()}, env_.now()));
}

void lookout::answered(const outcome& outcome) {
  if (!done_) return;
  perform(rules_.answered(question_.read(outcome), env_.now()));
}

void lookout::end(answer<bool> answer) {
  if (!done_) return;
  const auto done = std::move(done_);
  forget_caller();
  const auto self = std::move(*listed_);
  all_.under_way_.erase(listed_);
  done(std::move(answer));
}

lookouts::~lookouts() {
  for (const auto& each : under_way_) each->forget_caller();
}

cancellable_ptr lookouts::begin(environment& env, lookout_question question, time_point deadline,
                                answer_handler<bool> done) {
  const auto caller = std::make_shared<lookout>(env, *this, std::move(question), deadline, std::move(done));
  caller->listed_ = under_way_.insert(under_way_.end(), caller);
  caller->begin();
  return caller->done_ ? caller : nullptr;
}

// Each caller is answered even if one of them finds no memory.
void lookouts::fail_all(error_code error, const char* detail) {
  each_step step;
  while (!under_way_.empty()) step([&] { under_way_.front()->fail(error, detail); });
  step.rethrow();
}

}  // namespace holdfast::detail
