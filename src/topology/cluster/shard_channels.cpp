// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/shard_channels.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "topology/cluster/shard_route.hpp"

namespace holdfast::detail {

/// A channel's subscription by one way.
struct shard_channels::leg final : subscriber {
  leg(shard_channels& hub, channel& channel) : home(hub), of(channel) {}

  void on_subscribed() override;
  void on_message(std::string_view payload) override;
  void on_subscribe_failed(error_code error, const std::string& detail) override;
  void on_no_messages(error_code error, const std::string& detail) override;

  shard_channels& home;
  channel& of;
  subscription kept;
  bool acknowledged = false;
};

struct shard_channels::channel : std::enable_shared_from_this<channel> {
  channel(shard_channels& home, std::string_view text) : name(text) {
    for (std::size_t i = 0; i < home.ways_.size(); ++i) legs.push_back(std::make_unique<leg>(home, *this));
  }

  void leave() {
    for (const auto& leg : legs) {
      leg->kept.reset();
      leg->acknowledged = false;
    }
  }

  const std::string name;
  redis::subscriber_list<member> members;
  shard_route route;
  std::vector<std::unique_ptr<leg>> legs;
  std::optional<time_point> paused_until;
};

// The last subscriber may leave inside its notification. These references keep the channel alive until then.
void shard_channels::leg::on_subscribed() {
  const auto home_alive = home.shared_from_this();
  const auto channel_alive = of.shared_from_this();
  home.on_subscribed(*this);
}

void shard_channels::leg::on_message(std::string_view payload) {
  const auto home_alive = home.shared_from_this();
  const auto channel_alive = of.shared_from_this();
  home.tell_all(of, [payload](member& member) {
    if (member.notified) member.listener.on_message(payload);
  });
}

void shard_channels::leg::on_subscribe_failed(error_code error, const std::string& detail) {
  const auto home_alive = home.shared_from_this();
  const auto channel_alive = of.shared_from_this();
  acknowledged = false;
  home.tell_failed(of, error, detail);
}

void shard_channels::leg::on_no_messages(error_code error, const std::string& detail) {
  const auto home_alive = home.shared_from_this();
  const auto channel_alive = of.shared_from_this();
  acknowledged = false;
  home.tell_all(of, [&](member& member) { member.listener.on_no_messages(error, detail); });
}

shard_channels::shard_channels(const redis::io_services& services, environment env, std::vector<way> ways)
    : services_(services), env_(std::move(env)), ways_(std::move(ways)), next_pause_(services.alarms) {
  HOLDFAST_ASSERT(!ways_.empty());
}

shard_channels::~shard_channels() { close(); }

subscription shard_channels::subscribe(std::string_view channel_name, subscriber& subscriber) {
  if (closed_) return nullptr;
  const auto made = std::make_shared<member>(weak_from_this(), channel_name, subscriber);
  auto found = channels_.find(channel_name);
  const bool first = found == channels_.end();
  if (first) found = channels_.emplace(channel_name, std::make_shared<channel>(*this, channel_name)).first;
  const auto channel = found->second;
  try {
    channel->members.join(*made);
    made->joined = true;
  } catch (...) {
    if (first) channels_.erase(found);
    throw;
  }
  if (channel->route.live()) greet_late_comer(made);
  // A new subscriber after a refusal asks again, for itself and for the others.
  const bool try_again = channel->route.is_refused();
  if (try_again) channel->route.gone();
  if (first || try_again) look(*channel);
  return made;
}

void shard_channels::greet_late_comer(std::weak_ptr<member> member) {
  services_.post([self = shared_from_this(), this, member = std::move(member)] {
    const auto subscriber = member.lock();
    if (!subscriber || closed_ || subscriber->notified) return;
    const auto channel = channels_.find(subscriber->channel);
    if (channel == channels_.end() || !channel->second->route.live()) return;  // it will be told with the others
    subscriber->notified = true;
    subscriber->listener.on_subscribed();
  });
}

void shard_channels::leave(member& member) {
  const auto found = channels_.find(member.channel);
  if (found == channels_.end()) return;  // closed
  const auto channel = found->second;
  channel->members.leave(member);
  if (!channel->members.empty()) return;
  stop_pause(*channel);
  channels_.erase(found);
  channel->leave();
}

void shard_channels::moved(node_id node, std::string_view name) {
  const auto found = channels_.find(name);
  if (found == channels_.end() || found->second->route.node() != node) return;
  found->second->route.moved(services_.now());
  look(*found->second);
}

void shard_channels::map_changed() {
  each_step step;
  for (const auto& each : channels_) step([&] { look(*each.second); });
  step.rethrow();
}

void shard_channels::node_gone(node_id node) {
  each_step step;
  for (const auto& each : channels_) {
    auto& channel = *each.second;
    if (channel.route.node() != node) continue;
    channel.route.gone();
    step([&] { look(channel); });
  }
  step.rethrow();
}

void shard_channels::tell_homeless(const redis::failure& why) {
  std::vector<std::weak_ptr<channel>> homeless;
  for (const auto& [name, channel] : channels_)
    if (channel->route.node() == shard_route::nobody) homeless.push_back(channel);
  for (const auto& each : homeless)
    if (const auto channel = each.lock())
      tell_all(*channel, [&](member& member) { member.listener.on_subscribe_failed(why.code, why.detail); });
}

bool shard_channels::any_at(node_id node) const noexcept {
  return std::any_of(channels_.begin(), channels_.end(),
                     [node](const auto& channel) { return channel.second->route.node() == node; });
}

bool shard_channels::any_homeless() const noexcept { return any_at(shard_route::nobody); }

void shard_channels::look(channel& channel) {
  using kind = shard_route::step::kind;
  const auto next = channel.route.look(env_.owner(channel.name), services_.now());
  if (next.type == kind::stay) return;
  stop_pause(channel);
  channel.leave();
  try {
    if (next.type == kind::ask) return ask(channel, next.node);
    if (next.type == kind::wait) pause(channel, next.until);
  } catch (...) {  // the channel is at no node, and is looked at with the next map
    stop_pause(channel);
    channel.leave();
    channel.route.gone();
    throw;
  }
}

void shard_channels::ask(channel& channel, node_id node) {
  for (std::size_t i = 0; i < ways_.size(); ++i)
    channel.legs[i]->kept = env_.subscribe(node, ways_[i], channel.name, *channel.legs[i]);
}

void shard_channels::pause(channel& channel, time_point until) {
  channel.paused_until = until;
  pauses_.emplace(until, &channel);
  if (!next_pause_.due() || until < *next_pause_.due()) next_pause_.start(until, [this] { on_pause_over(); });
}

void shard_channels::stop_pause(channel& channel) {
  if (const auto until = std::exchange(channel.paused_until, std::nullopt)) pauses_.erase({*until, &channel});
  if (pauses_.empty()) next_pause_.stop();
}

void shard_channels::on_pause_over() {
  const auto now = services_.now();
  each_step step;
  while (!pauses_.empty() && pauses_.begin()->first <= now) step([this] { look(*pauses_.begin()->second); });
  if (!pauses_.empty()) next_pause_.start(pauses_.begin()->first, [this] { on_pause_over(); });
  step.rethrow();
}

void shard_channels::on_subscribed(leg& by) {
  auto& channel = by.of;
  by.acknowledged = true;
  if (!std::all_of(channel.legs.begin(), channel.legs.end(), [](const auto& leg) { return leg->acknowledged; })) return;
  channel.route.acknowledged();
  tell_all(channel, [](member& member) {
    member.notified = true;
    member.listener.on_subscribed();
  });
}

void shard_channels::tell_failed(channel& channel, error_code error, const std::string& detail) {
  channel.route.refused();
  tell_all(channel, [&](member& member) { member.listener.on_subscribe_failed(error, detail); });
}

template <class Action>
void shard_channels::tell_all(channel& channel, Action action) {
  channel.members.tell(action, [this] { return !closed_; });
}

void shard_channels::close() {
  closed_ = true;
  next_pause_.stop();
  pauses_.clear();
  const auto all = std::exchange(channels_, {});
  for (const auto& [name, channel] : all) channel->leave();
}

}  // namespace holdfast::detail
