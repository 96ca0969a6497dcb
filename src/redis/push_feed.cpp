// SPDX-License-Identifier: BSL-1.0
#include "redis/push_feed.hpp"

#include <utility>

#include "base/if_memory.hpp"

namespace holdfast::redis {

push_feed::push_feed(const io_services& services, std::shared_ptr<connection> commands,
                     std::shared_ptr<pubsub> channels)
    : services_(services), commands_(std::move(commands)), channels_(std::move(channels)), notice_(services.alarms) {
  channels_->on_pushes(*this);
  commands_->on_pushes_changed([this] { on_state(); });
}

void push_feed::start() {
  if (started_ || closed_ || refused_on_ == commands_->times_up()) return;
  if (auto why = commands_->unfit_for_pushes()) return refuse_soon(*std::move(why));
  started_ = true;
  commands_->keep_for_pushes(true);
  channels_->follow_pushes(true);
  if (ready_) commands_->redirect_pushes(ready_);
}

void push_feed::stop() {
  if (!std::exchange(started_, false) || closed_) return;
  channels_->follow_pushes(false);
  commands_->keep_for_pushes(false);
}

// No pub/sub connection is made for a server that would not push. The observer is not called inside start().
void push_feed::refuse_soon(failure why) {
  refused_on_ = commands_->times_up();
  services_.post([self = shared_from_this(), why = std::move(why)] {
    if (!self->closed_) self->commands_->report_no_pushes(why);
  });
}

// The connections may live a little longer, in their handlers.
void push_feed::close() {
  closed_ = true;
  notice_.stop();
  commands_->on_pushes_changed({});
}

void push_feed::on_push_ready(const handshake::identity& client) {
  ready_ = client;
  if (started_) commands_->redirect_pushes(client);
}

void push_feed::on_push_lost() {
  ready_.reset();
  commands_->redirect_pushes({});
}

// The observer may close the client, and so drop the last reference to this feed.
void push_feed::on_push_refused(const failure& why) {
  const auto self = shared_from_this();
  const bool passes = why.mends_itself() && why.is_answer();  // it is loading, for example
  if (!passes) {
    refused_on_ = commands_->times_up();
    commands_->report_no_pushes(why);
  }
  give_up();
}

void push_feed::on_pushed(const std::vector<std::string>& keys) {
  if (keys.empty()) return any_changed();
  const auto self = shared_from_this();
  detail::each_step step;
  for (const auto& key : keys)
    step([&] {
      if (!closed_ && listener_) listener_(key);
    });
  step.rethrow();
}

void push_feed::on_state() {
  const auto state = commands_->pushes();
  if (state == push_state::refused) refused_on_ = commands_->times_up();
  if (state == push_state::refused || state == push_state::postponed) give_up();
  const bool on = state == push_state::on;
  if (std::exchange(pushed_, on) != on) any_changed();
}

// Waiters ask by themselves from now on: the pub/sub connection is not kept for nothing.
void push_feed::give_up() {
  stop();
  commands_->redirect_pushes({});
}

// A timer needs no memory, and is never inside a call. Several reasons make one notice.
void push_feed::any_changed() noexcept {
  if (closed_ || notice_.due()) return;
  notice_.start(services_.now(), [this] {
    const auto self = shared_from_this();
    if (listener_) listener_({});
  });
}

}  // namespace holdfast::redis
