// SPDX-License-Identifier: BSL-1.0
#include "redis/subscription_table.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/assert.hpp"

namespace holdfast::redis {

namespace {

using kind = subscription_table::event::kind;

bool is_array_of(const reply& reply, std::string_view first, std::size_t size) {
  return reply.type == reply::kind::array && reply.elements.size() == size && reply.elements.front().text == first;
}

/// What we say, and what the server says.
struct words {
  std::string_view subscribe, unsubscribe, subscribed, unsubscribed, message;
};
constexpr words classic{"SUBSCRIBE", "UNSUBSCRIBE", "subscribe", "unsubscribe", "message"};
constexpr words sharded{"SSUBSCRIBE", "SUNSUBSCRIBE", "ssubscribe", "sunsubscribe", "smessage"};

constexpr const words& words_of(channel_kind kind) { return kind == channel_kind::sharded ? sharded : classic; }
constexpr const words& words_of(channel_kind kind, std::string_view channel) {
  return channel == push_channel ? classic : words_of(kind);
}

bool is_key_change(const reply& reply) {
  return is_array_of(reply, classic.message, 3) && reply.elements[1].text == push_channel;
}

/// No keys: any.
std::vector<std::string> keys_of(reply& payload) {
  std::vector<std::string> keys;
  for (auto& key : payload.elements) {
    if (key.type != reply::kind::string) return {};
    keys.push_back(std::move(key.text));
  }
  return keys;
}

/// Elsewhere, or not now: it is to be asked for again, perhaps of another node.
bool sends_elsewhere(std::string_view error) {
  constexpr std::string_view all[] = {"MOVED ", "ASK ", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "LOADING"};
  return std::any_of(std::begin(all), std::end(all), [&](auto begin) { return error.starts_with(begin); });
}

}  // namespace

std::string_view subscribe_word(channel_kind kind) noexcept { return words_of(kind).subscribe; }

void subscription_table::want(std::string_view channel) {
  auto found = channels_.find(channel);
  if (found == channels_.end()) {
    found = channels_.try_emplace(std::string(channel)).first;
    found->second.name = &found->first;
  }
  if (!std::exchange(found->second.wanted, true)) ++wanted_;
  found->second.given_up = found->second.unavailable = false;
  mark(found->second);
}

void subscription_table::unwant(std::string_view channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end() || !std::exchange(found->second.wanted, false)) return;
  HOLDFAST_ASSERT(wanted_ > 0);
  --wanted_;
  mark(found->second);
  forget_if_unused(found);
}

bool subscription_table::confirmed(std::string_view channel) const {
  const auto found = channels_.find(channel);
  return found != channels_.end() && found->second.wanted && found->second.asked && found->second.unanswered == 0;
}

bool subscription_table::any_asked() const {
  return std::any_of(channels_.begin(), channels_.end(),
                     [](const auto& channel) { return channel.second.asked || channel.second.unanswered != 0; });
}

std::optional<subscription_table::time_point> subscription_table::oldest_subscribe() const {
  const auto is_one = [](const question& question) { return question.sent == command::subscribe; };
  const auto found = std::find_if(questions_.begin(), questions_.end(), is_one);
  return found == questions_.end() ? std::nullopt : std::optional(found->when);
}

void subscription_table::start(channel_kind of) {
  started_ = true;
  kind_ = of;
  for (auto& [name, state] : channels_) {
    state.given_up = state.unavailable = false;
    mark(state);
  }
}

void subscription_table::ask_again() {
  for (auto& [name, state] : channels_) {
    if (!std::exchange(state.unavailable, false)) continue;
    state.given_up = false;
    mark(state);
  }
}

void subscription_table::stop() {
  started_ = ping_ = false;
  questions_.clear();
  changed_.clear();
  for (auto channel = channels_.begin(); channel != channels_.end();) {
    channel->second.asked = false;
    channel->second.unanswered = 0;
    channel = channel->second.wanted ? std::next(channel) : channels_.erase(channel);
  }
}

void subscription_table::clear() noexcept {
  stop();
  channels_.clear();
  wanted_ = 0;
}

void subscription_table::mark(state& state) noexcept {
  if (!started_ || state.given_up) return;
  if (state.wanted == state.asked) return unmark(state);
  if (!state.changed.is_linked()) changed_.push_back(state);
}

void subscription_table::unmark(state& state) noexcept {
  if (state.changed.is_linked()) changed_.erase(changed_.iterator_to(state));
}

void subscription_table::forget_if_unused(channels::iterator channel) {
  const auto& state = channel->second;
  if (state.wanted || state.asked || state.unanswered != 0) return;
  unmark(channel->second);
  channels_.erase(channel);
}

void subscription_table::write(std::string& out, std::size_t enough, time_point now) {
  while (!changed_.empty() && out.size() < enough) {
    const auto channel = channels_.find(*changed_.front().name);
    HOLDFAST_ASSERT(started_ && channel != channels_.end() && channel->second.wanted != channel->second.asked);
    unmark(channel->second);
    ask(out, channel, now);
  }
  if (!std::exchange(ping_, false)) return;
  append_command(out, std::array<std::string_view, 1>{"PING"});
  questions_.push_back({command::ping, channels_.end(), now});
}

void subscription_table::ask(std::string& out, channels::iterator channel, time_point now) {
  auto& state = channel->second;
  state.asked = state.wanted;
  ++state.unanswered;
  const auto& word = words_of(kind_, channel->first);
  append_command(out, std::array<std::string_view, 2>{state.asked ? word.subscribe : word.unsubscribe, channel->first});
  questions_.push_back({state.asked ? command::subscribe : command::unsubscribe, channel, now});
}

std::optional<subscription_table::time_point> subscription_table::oldest_unanswered() const {
  if (questions_.empty()) return std::nullopt;
  return questions_.front().when;
}

subscription_table::event subscription_table::on_reply(reply reply) {
  const auto& word = words_of(kind_);
  if (is_key_change(reply)) return on_changed(reply);
  if (is_array_of(reply, word.message, 3)) return on_message(reply);
  const bool unasked = questions_.empty() || !answers(questions_.front(), reply);
  if (unasked && kind_ == channel_kind::sharded && is_array_of(reply, word.unsubscribed, 3))
    return on_unasked(reply.elements[1].text);
  if (questions_.empty()) return {kind::desync, {}, "a reply that nobody asked for"};
  const auto question = questions_.front();
  questions_.pop_front();
  if (question.sent != command::ping) return on_answer(question, reply);
  if (reply.is_error()) return {};  // the connection is alive
  // With a channel subscribed it is a message of its own, else the usual status.
  if (is_array_of(reply, "pong", 2) || reply.text == "PONG") return {};
  return {kind::desync, {}, "not the answer to PING"};
}

subscription_table::event subscription_table::on_changed(reply& reply) const {
  const auto channel = channels_.find(push_channel);
  if (channel == channels_.end() || !channel->second.wanted) return {};
  return {kind::changed, {}, {}, keys_of(reply.elements[2])};
}

subscription_table::event subscription_table::on_message(reply& reply) {
  const auto channel = channels_.find(reply.elements[1].text);
  if (channel == channels_.end() || !channel->second.wanted) return {};
  return {kind::message, std::move(reply.elements[1].text), std::move(reply.elements[2].text)};
}

bool subscription_table::answers(const question& question, const reply& reply) const {
  if (question.sent == command::ping) return false;
  const auto& word = words_of(kind_, question.of->first);
  return is_array_of(reply, question.sent == command::subscribe ? word.subscribed : word.unsubscribed, 3) &&
         reply.elements[1].text == question.of->first;
}

subscription_table::event subscription_table::on_answer(const question& question, const reply& reply) {
  const bool subscribe = question.sent == command::subscribe;
  const bool elsewhere = kind_ == channel_kind::sharded && sends_elsewhere(reply.text);
  auto& state = question.of->second;
  if (!reply.is_error() && !answers(question, reply)) {
    const auto& word = words_of(kind_, question.of->first);
    return {kind::desync, {}, "not the answer to " + std::string(subscribe ? word.subscribe : word.unsubscribe)};
  }
  const bool forbidden = reply.is_error() && reply.text.starts_with("NOPERM");
  if (reply.is_error() && !subscribe && !forbidden && !elsewhere) return {kind::error, {}, reply.text};
  HOLDFAST_ASSERT(state.unanswered > 0);
  --state.unanswered;
  if (reply.is_error() && subscribe && state.unanswered == 0)
    return on_not_subscribed(question.of,
                             elsewhere   ? kind::moved
                             : forbidden ? kind::refused
                                         : kind::unavailable,
                             reply.text);
  if (subscribe && !reply.is_error() && confirmed(question.of->first)) return {kind::confirmed, question.of->first, {}};
  forget_if_unused(question.of);
  return {};
}

subscription_table::event subscription_table::on_unasked(std::string_view channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end() || !found->second.asked || found->second.unanswered != 0) return {};
  return on_not_subscribed(found, kind::moved, {});
}

subscription_table::event subscription_table::on_not_subscribed(channels::iterator channel, kind why,
                                                                std::string words) {
  auto& state = channel->second;
  state.asked = false;
  state.given_up = state.wanted;
  state.unavailable = state.wanted && why == kind::unavailable;
  unmark(state);
  if (state.wanted) return {why, channel->first, std::move(words)};
  forget_if_unused(channel);
  return {};
}

}  // namespace holdfast::redis
