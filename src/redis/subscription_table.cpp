// SPDX-License-Identifier: BSL-1.0
#include "redis/subscription_table.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"

namespace holdfast::redis {

namespace {

using kind = subscription_table::event::kind;

bool is_array_of(const reply& r, std::string_view first, std::size_t size) {
  return r.type == reply::kind::array && r.elements.size() == size && r.elements.front().text == first;
}

}  // namespace

void subscription_table::want(std::string_view channel) {
  auto c = channels_.find(channel);
  if (c == channels_.end()) c = channels_.emplace(std::string(channel), state{}).first;
  if (!std::exchange(c->second.wanted, true)) ++wanted_;
  c->second.refused = false;
  mark(c);
}

void subscription_table::unwant(std::string_view channel) {
  const auto c = channels_.find(channel);
  if (c == channels_.end() || !std::exchange(c->second.wanted, false)) return;
  HOLDFAST_ASSERT(wanted_ > 0);
  --wanted_;
  mark(c);
  forget_if_unused(c);
}

bool subscription_table::confirmed(std::string_view channel) const {
  const auto c = channels_.find(channel);
  return c != channels_.end() && c->second.wanted && c->second.asked && c->second.unanswered == 0;
}

bool subscription_table::any_asked() const {
  return std::any_of(channels_.begin(), channels_.end(),
                     [](const auto& c) { return c.second.asked || c.second.unanswered != 0; });
}

void subscription_table::start() {
  started_ = true;
  for (auto c = channels_.begin(); c != channels_.end(); ++c) {
    c->second.refused = false;
    mark(c);
  }
}

void subscription_table::stop() {
  started_ = ping_ = false;
  questions_.clear();
  changed_.clear();
  for (auto c = channels_.begin(); c != channels_.end();) {
    c->second.asked = false;
    c->second.unanswered = 0;
    c = c->second.wanted ? std::next(c) : channels_.erase(c);
  }
}

void subscription_table::clear() noexcept {
  stop();
  channels_.clear();
  wanted_ = 0;
}

void subscription_table::mark(channels::iterator c) {
  if (!started_ || c->second.refused) return;
  if (c->second.wanted != c->second.asked)
    changed_.insert(c->first);
  else
    changed_.erase(c->first);
}

void subscription_table::forget_if_unused(channels::iterator c) {
  const auto& s = c->second;
  if (s.wanted || s.asked || s.unanswered != 0) return;
  changed_.erase(c->first);
  channels_.erase(c);
}

void subscription_table::write(std::string& out, std::size_t enough, time_point now) {
  while (!changed_.empty() && out.size() < enough) {
    const auto name = changed_.extract(changed_.begin());
    const auto c = channels_.find(name.value());
    HOLDFAST_ASSERT(started_ && c != channels_.end() && c->second.wanted != c->second.asked);
    ask(out, c, now);
  }
  if (!std::exchange(ping_, false)) return;
  append_command(out, std::array<std::string_view, 1>{"PING"});
  questions_.push_back({command::ping, channels_.end(), now});
}

void subscription_table::ask(std::string& out, channels::iterator c, time_point now) {
  auto& s = c->second;
  s.asked = s.wanted;
  ++s.unanswered;
  append_command(out, std::array<std::string_view, 2>{s.asked ? "SUBSCRIBE" : "UNSUBSCRIBE", c->first});
  questions_.push_back({s.asked ? command::subscribe : command::unsubscribe, c, now});
}

std::optional<subscription_table::time_point> subscription_table::oldest_unanswered() const {
  if (questions_.empty()) return std::nullopt;
  return questions_.front().when;
}

subscription_table::event subscription_table::on_reply(reply r) {
  if (is_array_of(r, "message", 3)) return on_push(r);
  if (questions_.empty()) return {kind::desync, {}, "a reply that nobody asked for"};
  const auto q = questions_.front();
  questions_.pop_front();
  if (q.what != command::ping) return on_answer(q, r);
  if (r.is_error()) return {kind::error, {}, std::move(r.text)};
  // With a channel subscribed it is a message of its own, else the usual status.
  if (is_array_of(r, "pong", 2) || r.text == "PONG") return {};
  return {kind::desync, {}, "not the answer to PING"};
}

subscription_table::event subscription_table::on_push(reply& r) {
  const auto c = channels_.find(r.elements[1].text);
  if (c == channels_.end() || !c->second.wanted) return {};
  return {kind::message, std::move(r.elements[1].text), std::move(r.elements[2].text)};
}

subscription_table::event subscription_table::on_answer(const question& q, const reply& r) {
  const bool subscribe = q.what == command::subscribe;
  auto& s = q.of->second;
  const std::string channel = q.of->first;
  if (!r.is_error() && !(is_array_of(r, subscribe ? "subscribe" : "unsubscribe", 3) && r.elements[1].text == channel))
    return {kind::desync, {}, subscribe ? "not the answer to SUBSCRIBE" : "not the answer to UNSUBSCRIBE"};
  if (r.is_error() && !r.text.starts_with("NOPERM")) return {kind::error, {}, r.text};
  HOLDFAST_ASSERT(s.unanswered > 0);
  --s.unanswered;
  if (r.is_error() && subscribe && s.unanswered == 0) {
    s.asked = false;
    s.refused = s.wanted;  // not asked for again until someone new wants it
    changed_.erase(channel);
    if (s.wanted) return {kind::refused, channel, r.text};
  }
  if (subscribe && !r.is_error() && confirmed(channel)) return {kind::confirmed, channel, {}};
  forget_if_unused(q.of);
  return {};
}

}  // namespace holdfast::redis
