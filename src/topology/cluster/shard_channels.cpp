// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/shard_channels.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "redis/subscriber_list.hpp"
#include "topology/cluster/shard_route.hpp"

namespace holdfast::detail {

struct shard_channels::member {
  member(std::weak_ptr<shard_channels> h, std::string_view name, subscriber& w)
      : home(std::move(h)), channel(name), who(w) {}
  member(const member&) = delete;
  member& operator=(const member&) = delete;
  ~member() {
    if (!joined) return;
    if (const auto h = home.lock()) h->leave(*this);
  }

  const std::weak_ptr<shard_channels> home;
  const std::string channel;
  subscriber& who;
  bool joined = false;
  bool told = false;  // that it is subscribed: messages may come
};

/// A channel's subscription by one way.
struct shard_channels::leg final : subscriber {
  leg(shard_channels& h, channel& c) : home(h), of(c) {}

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
  channel(shard_channels& home, std::string_view n) : name(n) {
    for (std::size_t i = 0; i < home.ways_.size(); ++i) legs.push_back(std::make_unique<leg>(home, *this));
  }

  void leave() {
    for (const auto& l : legs) {
      l->kept.reset();
      l->acknowledged = false;
    }
  }

  const std::string name;
  redis::subscriber_list<member> members;
  shard_route route;
  std::vector<std::unique_ptr<leg>> legs;
  std::optional<time_point> paused_until;
};

// The last one who listens may go while it is told, and would take the channel with it without these references.
void shard_channels::leg::on_subscribed() {
  const auto home_alive = home.shared_from_this();
  const auto channel_alive = of.shared_from_this();
  home.on_subscribed(*this);
}

void shard_channels::leg::on_message(std::string_view payload) {
  const auto home_alive = home.shared_from_this();
  const auto channel_alive = of.shared_from_this();
  home.tell_all(of, [payload](member& m) {
    if (m.told) m.who.on_message(payload);
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
  home.tell_all(of, [&](member& m) { m.who.on_no_messages(error, detail); });
}

shard_channels::shard_channels(const redis::io_services& given, environment around, std::vector<way> ways)
    : given_(given), around_(std::move(around)), ways_(std::move(ways)), next_pause_(given.alarms) {
  HOLDFAST_ASSERT(!ways_.empty());
}

shard_channels::~shard_channels() { close(); }

subscription shard_channels::subscribe(std::string_view channel_name, subscriber& who) {
  if (closed_) return nullptr;
  const auto m = std::make_shared<member>(weak_from_this(), channel_name, who);
  auto found = channels_.find(channel_name);
  const bool first = found == channels_.end();
  if (first) found = channels_.emplace(channel_name, std::make_shared<channel>(*this, channel_name)).first;
  const auto c = found->second;
  try {
    c->members.join(*m);
    m->joined = true;
  } catch (...) {
    if (first) channels_.erase(found);
    throw;
  }
  if (c->route.live()) greet_late_comer(m);
  // Whoever comes after a refusal wants to know whether it holds; so do the others then.
  const bool try_again = c->route.is_refused();
  if (try_again) c->route.gone();
  if (first || try_again) look(*c);
  return m;
}

void shard_channels::greet_late_comer(std::weak_ptr<member> who) {
  given_.post([self = shared_from_this(), this, who = std::move(who)] {
    const auto m = who.lock();
    if (!m || closed_ || m->told) return;
    const auto c = channels_.find(m->channel);
    if (c == channels_.end() || !c->second->route.live()) return;  // it will be told with the others
    m->told = true;
    m->who.on_subscribed();
  });
}

void shard_channels::leave(member& who) {
  const auto found = channels_.find(who.channel);
  if (found == channels_.end()) return;  // closed
  const auto c = found->second;
  c->members.leave(who);
  if (!c->members.empty()) return;
  stop_pause(*c);
  channels_.erase(found);
  c->leave();
}

void shard_channels::moved(node_id node, std::string_view name) {
  const auto found = channels_.find(name);
  if (found == channels_.end() || found->second->route.node() != node) return;
  found->second->route.moved(given_.now());
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
    auto& c = *each.second;
    if (c.route.node() != node) continue;
    c.route.gone();
    step([&] { look(c); });
  }
  step.rethrow();
}

void shard_channels::tell_homeless(const redis::failure& why) {
  std::vector<std::weak_ptr<channel>> homeless;
  for (const auto& [name, c] : channels_)
    if (c->route.node() == shard_route::nobody) homeless.push_back(c);
  for (const auto& each : homeless)
    if (const auto c = each.lock()) tell_all(*c, [&](member& m) { m.who.on_subscribe_failed(why.code, why.detail); });
}

bool shard_channels::any_at(node_id node) const noexcept {
  return std::any_of(channels_.begin(), channels_.end(),
                     [node](const auto& c) { return c.second->route.node() == node; });
}

bool shard_channels::any_homeless() const noexcept { return any_at(shard_route::nobody); }

void shard_channels::look(channel& c) {
  using kind = shard_route::step::kind;
  const auto next = c.route.look(around_.owner(c.name), given_.now());
  if (next.what == kind::stay) return;
  stop_pause(c);
  c.leave();
  try {
    if (next.what == kind::ask) return ask(c, next.node);
    if (next.what == kind::wait) pause(c, next.until);
  } catch (...) {  // the channel is at no node, and is looked at with the next map
    stop_pause(c);
    c.leave();
    c.route.gone();
    throw;
  }
}

void shard_channels::ask(channel& c, node_id node) {
  for (std::size_t i = 0; i < ways_.size(); ++i)
    c.legs[i]->kept = around_.subscribe(node, ways_[i], c.name, *c.legs[i]);
}

void shard_channels::pause(channel& c, time_point until) {
  c.paused_until = until;
  pauses_.emplace(until, &c);
  if (!next_pause_.due() || until < *next_pause_.due()) next_pause_.start(until, [this] { on_pause_over(); });
}

void shard_channels::stop_pause(channel& c) {
  if (const auto until = std::exchange(c.paused_until, std::nullopt)) pauses_.erase({*until, &c});
  if (pauses_.empty()) next_pause_.stop();
}

void shard_channels::on_pause_over() {
  const auto now = given_.now();
  each_step step;
  while (!pauses_.empty() && pauses_.begin()->first <= now) step([this] { look(*pauses_.begin()->second); });
  if (!pauses_.empty()) next_pause_.start(pauses_.begin()->first, [this] { on_pause_over(); });
  step.rethrow();
}

void shard_channels::on_subscribed(leg& by) {
  auto& c = by.of;
  by.acknowledged = true;
  if (!std::all_of(c.legs.begin(), c.legs.end(), [](const auto& l) { return l->acknowledged; })) return;
  c.route.acknowledged();
  tell_all(c, [](member& m) {
    m.told = true;
    m.who.on_subscribed();
  });
}

void shard_channels::tell_failed(channel& c, error_code error, const std::string& detail) {
  c.route.refused();
  tell_all(c, [&](member& m) { m.who.on_subscribe_failed(error, detail); });
}

template <class What>
void shard_channels::tell_all(channel& c, What what) {
  c.members.tell(what, [this] { return !closed_; });
}

void shard_channels::close() {
  closed_ = true;
  next_pause_.stop();
  pauses_.clear();
  const auto all = std::exchange(channels_, {});
  for (const auto& [name, c] : all) c->leave();
}

}  // namespace holdfast::detail
