// SPDX-License-Identifier: BSL-1.0
// A node's subscriptions and messages.
#include <algorithm>
#include <utility>

#include "redis/subscription_table.hpp"
#include "testing/sim/node.hpp"

namespace holdfast::sim {
namespace {

using kind = reply::kind;

reply push_of(const std::string& text, const std::string& channel, reply last) {
  return {kind::array, 0, {}, {string_reply(text), string_reply(channel), std::move(last)}};
}

reply count_of(const std::set<std::string, std::less<>>& channels) {
  return integer_reply(static_cast<long long>(channels.size()));
}

}  // namespace

std::vector<reply> node::subscribe(session& session, const std::string& name, const arguments& args) {
  auto& channels = name == "ssubscribe" || name == "sunsubscribe" ? session.sharded : session.subscribed;
  const bool on = name == "subscribe" || name == "ssubscribe";
  arguments names(args.begin() + 1, args.end());
  if (!on && names.empty()) names.assign(channels.begin(), channels.end());
  std::vector<reply> answers;
  for (const auto& channel : names) {
    on ? void(channels.insert(channel)) : void(channels.erase(channel));
    answers.push_back(push_of(name, channel, count_of(channels)));
  }
  if (answers.empty()) answers.push_back({kind::array, 0, {}, {string_reply(name), reply{}, integer_reply(0)}});
  return answers;
}

void node::end_foreign_subscriptions() {
  for (auto& [id, session] : sessions_)
    for (auto channel = session.sharded.begin(); channel != session.sharded.end();) {
      if (slots_->owner(slot_of(*channel)) == slots_->self()) {
        ++channel;
        continue;
      }
      const auto name = *channel;
      channel = session.sharded.erase(channel);
      send_(id, push_of("sunsubscribe", name, count_of(session.sharded)));
    }
}

long long node::publish(std::string_view channel, std::string_view payload, bool sharded) {
  on_publish(channel, payload);
  if (!sharded) on_broadcast(channel, payload);
  return hand_out(channel, payload, sharded);
}

void node::deliver(std::string_view channel, std::string_view payload) { hand_out(channel, payload, false); }

long long node::hand_out(std::string_view channel, std::string_view payload, bool sharded) {
  long long receivers = 0;
  for (const auto& [id, session] : sessions_) {
    if (!(sharded ? session.sharded : session.subscribed).contains(channel)) continue;
    ++receivers;
    send_(id, push_of(sharded ? "smessage" : "message", std::string(channel), string_reply(std::string(payload))));
  }
  return receivers;
}

long long node::subscribers(std::string_view channel, bool sharded) const {
  return std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& each) {
    return (sharded ? each.second.sharded : each.second.subscribed).contains(channel);
  });
}

std::size_t node::subscriptions() const {
  std::size_t n = 0;
  for (const auto& [id, session] : sessions_)
    n += session.subscribed.size() + session.sharded.size() - session.subscribed.count(redis::push_channel);
  return n;
}

}  // namespace holdfast::sim
