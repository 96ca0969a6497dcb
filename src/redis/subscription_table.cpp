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

bool is_array_of(const reply& r, std::string_view first, std::size_t size) {
  return r.type == reply::kind::array && r.elements.size() == size && r.elements.front().text == first;
}

/// What we say, and what the server says.
struct words {
  std::string_view subscribe, unsubscribe, subscribed, unsubscribed, message;
};
constexpr words classic{"SUBSCRIBE", "UNSUBSCRIBE", "subscribe", "unsubscribe", "message"};
constexpr words sharded{"SSUBSCRIBE", "SUNSUBSCRIBE", "ssubscribe", "sunsubscribe", "smessage"};

constexpr const words& words_of(channel_kind k) { return k == channel_kind::sharded ? sharded : classic; }

/// Elsewhere, or not now: it is to be asked for again, perhaps of another node.
bool sends_elsewhere(std::string_view error) {
  constexpr std::string_view all[] = {"MOVED ", "ASK ", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "LOADING"};
  return std::any_of(std::begin(all), std::end(all), [&](auto begin) { return error.starts_with(begin); });
}

}  // namespace

std::string_view subscribe_word(channel_kind k) noexcept { return words_of(k).subscribe; }

void subscription_table::want(std::string_view channel) {
  auto c = channels_.find(channel);
  if (c == channels_.end()) {
    c = channels_.try_emplace(std::string(channel)).first;
    c->second.name = &c->first;
  }
  if (!std::exchange(c->second.wanted, true)) ++wanted_;
  c->second.given_up = c->second.unavailable = false;
  mark(c->second);
}

void subscription_table::unwant(std::string_view channel) {
  const auto c = channels_.find(channel);
  if (c == channels_.end() || !std::exchange(c->second.wanted, false)) return;
  HOLDFAST_ASSERT(wanted_ > 0);
  --wanted_;
  mark(c->second);
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

std::optional<subscription_table::time_point> subscription_table::oldest_subscribe() const {
  const auto is_one = [](const question& q) { return q.what == command::subscribe; };
  const auto found = std::find_if(questions_.begin(), questions_.end(), is_one);
  return found == questions_.end() ? std::nullopt : std::optional(found->when);
}

void subscription_table::start(channel_kind of) {
  started_ = true;
  kind_ = of;
  for (auto& [name, s] : channels_) {
    s.given_up = s.unavailable = false;
    mark(s);
  }
}

void subscription_table::ask_again() {
  for (auto& [name, s] : channels_) {
    if (!std::exchange(s.unavailable, false)) continue;
    s.given_up = false;
    mark(s);
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

void subscription_table::mark(state& s) noexcept {
  if (!started_ || s.given_up) return;
  if (s.wanted == s.asked) return unmark(s);
  if (!s.changed.is_linked()) changed_.push_back(s);
}

void subscription_table::unmark(state& s) noexcept {
  if (s.changed.is_linked()) changed_.erase(changed_.iterator_to(s));
}

void subscription_table::forget_if_unused(channels::iterator c) {
  const auto& s = c->second;
  if (s.wanted || s.asked || s.unanswered != 0) return;
  unmark(c->second);
  channels_.erase(c);
}

void subscription_table::write(std::string& out, std::size_t enough, time_point now) {
  while (!changed_.empty() && out.size() < enough) {
    const auto c = channels_.find(*changed_.front().name);
    HOLDFAST_ASSERT(started_ && c != channels_.end() && c->second.wanted != c->second.asked);
    unmark(c->second);
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
  const auto& word = words_of(kind_);
  append_command(out, std::array<std::string_view, 2>{s.asked ? word.subscribe : word.unsubscribe, c->first});
  questions_.push_back({s.asked ? command::subscribe : command::unsubscribe, c, now});
}

std::optional<subscription_table::time_point> subscription_table::oldest_unanswered() const {
  if (questions_.empty()) return std::nullopt;
  return questions_.front().when;
}

subscription_table::event subscription_table::on_reply(reply r) {
  const auto& word = words_of(kind_);
  if (is_array_of(r, word.message, 3)) return on_push(r);
  const bool unasked = questions_.empty() || !answers(questions_.front(), r);
  if (unasked && kind_ == channel_kind::sharded && is_array_of(r, word.unsubscribed, 3))
    return on_unasked(r.elements[1].text);
  if (questions_.empty()) return {kind::desync, {}, "a reply that nobody asked for"};
  const auto q = questions_.front();
  questions_.pop_front();
  if (q.what != command::ping) return on_answer(q, r);
  if (r.is_error()) return {};  // the connection is alive
  // With a channel subscribed it is a message of its own, else the usual status.
  if (is_array_of(r, "pong", 2) || r.text == "PONG") return {};
  return {kind::desync, {}, "not the answer to PING"};
}

subscription_table::event subscription_table::on_push(reply& r) {
  const auto c = channels_.find(r.elements[1].text);
  if (c == channels_.end() || !c->second.wanted) return {};
  return {kind::message, std::move(r.elements[1].text), std::move(r.elements[2].text)};
}

bool subscription_table::answers(const question& q, const reply& r) const {
  if (q.what == command::ping) return false;
  const auto& word = words_of(kind_);
  return is_array_of(r, q.what == command::subscribe ? word.subscribed : word.unsubscribed, 3) &&
         r.elements[1].text == q.of->first;
}

subscription_table::event subscription_table::on_answer(const question& q, const reply& r) {
  const bool subscribe = q.what == command::subscribe;
  const bool elsewhere = kind_ == channel_kind::sharded && sends_elsewhere(r.text);
  auto& s = q.of->second;
  if (!r.is_error() && !answers(q, r)) {
    const auto& word = words_of(kind_);
    return {kind::desync, {}, "not the answer to " + std::string(subscribe ? word.subscribe : word.unsubscribe)};
  }
  const bool forbidden = r.is_error() && r.text.starts_with("NOPERM");
  if (r.is_error() && !subscribe && !forbidden && !elsewhere) return {kind::error, {}, r.text};
  HOLDFAST_ASSERT(s.unanswered > 0);
  --s.unanswered;
  if (r.is_error() && subscribe && s.unanswered == 0)
    return on_not_subscribed(q.of, elsewhere ? kind::moved : forbidden ? kind::refused : kind::unavailable, r.text);
  if (subscribe && !r.is_error() && confirmed(q.of->first)) return {kind::confirmed, q.of->first, {}};
  forget_if_unused(q.of);
  return {};
}

subscription_table::event subscription_table::on_unasked(std::string_view channel) {
  const auto c = channels_.find(channel);
  if (c == channels_.end() || !c->second.asked || c->second.unanswered != 0) return {};
  return on_not_subscribed(c, kind::moved, {});
}

subscription_table::event subscription_table::on_not_subscribed(channels::iterator c, kind why, std::string words) {
  auto& s = c->second;
  s.asked = false;
  s.given_up = s.wanted;
  s.unavailable = s.wanted && why == kind::unavailable;
  unmark(s);
  if (s.wanted) return {why, c->first, std::move(words)};
  forget_if_unused(c);
  return {};
}

}  // namespace holdfast::redis
