// SPDX-License-Identifier: BSL-1.0
#include "redis/pubsub.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.hpp"
#include "redis/error_replies.hpp"

namespace holdfast::redis {

namespace {

constexpr std::size_t longest_message = 1024;
constexpr std::chrono::milliseconds least_timeout{20};
constexpr std::chrono::milliseconds grace{1};
// One end, or two, may be an accident.
constexpr unsigned most_ends = 3;
constexpr std::chrono::milliseconds first_pause{50};

}  // namespace

pubsub::pubsub(const io_services& services, endpoint node, std::chrono::milliseconds answer_timeout,
               std::optional<channel_kind> channels)
    : link(services, std::move(node)), channels_(channels), answer_timeout_(std::max(answer_timeout, least_timeout)),
      tick_(services.alarms), ask_again_(first_pause, this->node().reconnect_cap) {}

subscription pubsub::subscribe(std::string_view channel, subscriber& subscriber) {
  if (closed()) return nullptr;
  const auto self = std::static_pointer_cast<pubsub>(shared_from_this());
  const auto made = std::make_shared<member>(self, channel, subscriber);
  auto those = subscriber_lists_.find(channel);
  if (those == subscriber_lists_.end()) those = subscriber_lists_.emplace(channel, std::make_shared<crowd>()).first;
  try {
    those->second->join(*made);
    made->joined = true;
  } catch (...) {
    if (those->second->empty()) subscriber_lists_.erase(those);
    throw;
  }
  table_.want(channel);  // from here on the member leaves by its end
  if (table_.confirmed(channel) || standing_failure()) greet_late_comer(made);
  if (up()) flush_soon();
  demand_changed();
  return made;
}

void pubsub::listen(bool on) {
  if (std::exchange(listening_, on) == on || closed()) return;
  if (on && up()) ping_now();
  check_demand();
}

// Whether it is alive still.
void pubsub::ping_now() {
  next_ping_ = given().now();
  look_at(next_ping_);
}

void pubsub::check_demand() {
  demand_changed();
  if (!expects_input()) tick_.stop();
}

void pubsub::follow_pushes(bool on) {
  if (std::exchange(follows_pushes_, on) == on || closed()) return;
  lingers_ = !on && table_.confirmed(push_channel);
  if (on)
    table_.want(push_channel);
  else if (!lingers_)
    table_.unwant(push_channel);
  if (on && up() && push_ready_) doubtful(given().now()) ? ping_now() : look_at(next_ping_);
  if (up()) flush_soon();
  check_demand();
  detail::if_memory([this] { check_idle(); });
}

void pubsub::greet_late_comer(std::weak_ptr<member> member) {
  given().post([self = shared_from_this(), this, member = std::move(member)] {
    const auto subscriber = member.lock();
    if (!subscriber || closed() || subscriber->notified) return;
    if (table_.confirmed(subscriber->channel)) {
      subscriber->notified = true;
      subscriber->listener.on_subscribed();
    } else if (const auto* why = standing_failure()) {
      subscriber->listener.on_subscribe_failed(why->code, why->detail);
    }
  });
}

void pubsub::leave(member& member) {
  const auto found = subscriber_lists_.find(member.channel);
  if (found == subscriber_lists_.end()) return;  // closed
  const auto those = found->second;
  those->leave(member);
  if (!those->empty()) return;
  subscriber_lists_.erase(found);
  table_.unwant(member.channel);
  if (up()) flush_soon();
  check_demand();
  detail::if_memory([this] { check_idle(); });
}

void pubsub::tell_all(std::string_view channel, const std::function<void(member&)>& action) {
  const auto found = subscriber_lists_.find(channel);
  if (found == subscriber_lists_.end()) return;
  const auto those = found->second;
  those->tell(action, [this] { return !closed(); });
}

void pubsub::on_up(const handshake& introduced) {
  id_ = introduced.id();
  predecessor_.reset();
  if (fencing_refused_ && !introduced.fencing_refused().empty()) fencing_refused_(introduced.fencing_refused());
  if (closed()) return;
  table_.start(kind_of(introduced.server()));
  schedule_ping(given().now());
  if (expects_input()) look_at(next_ping_);  // else the last subscriber has left
}

channel_kind pubsub::kind_of(const server_facts& server) const {
  if (channels_) return *channels_;
  constexpr int first_with_shards = 7;
  // A server that hides its version is asked for a sharded channel, and refuses if it has none.
  int major = first_with_shards;
  std::from_chars(server.version.data(), server.version.data() + server.version.size(), major);
  return knows_no_shards_ || major < first_with_shards ? channel_kind::classic : channel_kind::sharded;
}

void pubsub::fill(std::string& out, std::size_t enough, detail::time_point now) {
  table_.write(out, enough, now);
  if (const auto limit = silent_at(); limit && !out.empty()) look_at(*limit);
}

void pubsub::on_reply(reply&& reply) {
  using kind = subscription_table::event::kind;
  auto event = table_.on_reply(std::move(reply));
  if (event.type == kind::changed || event.channel == push_channel) return on_push_event(event);
  switch (event.type) {
    case kind::nothing:
    case kind::changed: return;
    case kind::confirmed:
      ends_in_a_row_ = 0;
      return tell_all(event.channel, [](member& member) {
        member.notified = true;
        member.listener.on_subscribed();
      });
    case kind::refused: {
      const auto why = fail(node(), errc::no_permission,
                            std::string(subscribe_word(table_.kind_of_channels())) + ": " + quoted(node(), event.text));
      return tell_all(event.channel,
                      [&](member& member) { member.listener.on_subscribe_failed(why.code, why.detail); });
    }
    case kind::unavailable: return on_unavailable(event.channel, event.text);
    case kind::moved:
      if (moved_) moved_(event.channel, event.text);
      return;
    case kind::message:
      if (event.text.size() > longest_message) return;
      return tell_all(event.channel, [&](member& member) {
        if (member.notified) member.listener.on_message(event.text);
      });
    case kind::error: return on_error(event.text);
    case kind::desync: return drop_for([&] { return fail(node(), errc::protocol_error, event.text); });
  }
}

void pubsub::on_push_event(const table_event& event) {
  using kind = table_event::kind;
  if (!pushes_) return;
  if (event.type == kind::changed) {
    if (push_ready_) pushes_->on_pushed(event.keys);
    return;
  }
  ends_in_a_row_ = 0;
  if (event.type == kind::confirmed && id_) {
    push_ready_ = true;
    return pushes_->on_push_ready(*id_);
  }
  const auto words = event.type == kind::confirmed ? "the server withholds CLIENT ID or its run_id"
                                                   : "SUBSCRIBE: " + quoted(node(), event.text);
  pushes_->on_push_refused(fail(node(), classify(event.text, errc::protocol_error).code, words));
}

void pubsub::lose_pushes() {
  if (std::exchange(lingers_, false)) table_.unwant(push_channel);
  if (std::exchange(push_ready_, false) && pushes_) pushes_->on_push_lost();
}

void pubsub::on_error(const std::string& words) {
  drop_for([&] { return fail(node(), classify(words, errc::protocol_error).code, quoted(node(), words)); });
}

void pubsub::on_unavailable(const std::string& channel, const std::string& words) {
  const auto kind = table_.kind_of_channels();
  if (!channels_ && kind == channel_kind::sharded && words.starts_with("ERR unknown command")) {
    knows_no_shards_ = true;
    return on_error(words);
  }
  const auto code = classify(words, errc::protocol_error).code;
  if (code == errc::auth_failed) return on_error(words);  // the next connection introduces itself
  ends_in_a_row_ = 0;
  const auto now = given().now();
  if (!ask_again_at_) {
    if (now >= backoff_ends_) ask_again_.reset();
    ask_again_at_ = now + std::max<detail::lease_clock::duration>(ask_again_.next(given().random), first_pause);
    look_at(*ask_again_at_);
  }
  backoff_ends_ = now + 2 * node().reconnect_cap;
  tell_no_messages(channel, fail(node(), code, std::string(subscribe_word(kind)) + ": " + quoted(node(), words)));
}

void pubsub::tell_no_messages(const std::string& channel, const failure& why) {
  if (why.mends_itself() && why.is_answer()) return;  // it is loading, for example
  const auto self = shared_from_this();
  if (no_messages_) no_messages_(why);
  if (!closed()) tell_all(channel, [&](member& member) { member.listener.on_no_messages(why.code, why.detail); });
}

void pubsub::on_settled() {
  if (!expects_input()) tick_.stop();
}

void pubsub::on_down(const failure& why) {
  const auto self = shared_from_this();
  ends_in_a_row_ = table_.any_unanswered() ? ends_in_a_row_ + 1 : 0;
  detail::if_memory([this] {
    if (id_ && table_.any_asked()) predecessor_ = id_;
  });
  on_replaced();
  if (ends_in_a_row_ < most_ends) return;
  auto upon = why;
  upon.detail += std::string(" upon ") + std::string(subscribe_word(table_.kind_of_channels()));
  if (no_messages_) no_messages_(upon);
  if (pushes_ && follows_pushes_) pushes_->on_push_refused(upon);
  tell_every_channel([&](member& member) { member.listener.on_no_messages(upon.code, upon.detail); });
}

// This process has closed the old connection: it needs no fencing off.
void pubsub::on_replaced() {
  lose_pushes();
  ask_again_at_.reset();
  id_.reset();
  tick_.stop();
  table_.stop();
}

void pubsub::on_attempt_failed(const failure& why) {
  if (mends_itself(why)) return;
  tell_every_channel([&](member& member) { member.listener.on_subscribe_failed(why.code, why.detail); });
}

void pubsub::tell_every_channel(const std::function<void(member&)>& action) {
  std::vector<std::string> channels;
  for (const auto& [channel, those] : subscriber_lists_) channels.push_back(channel);
  for (const auto& channel : channels) tell_all(channel, action);
}

void pubsub::on_close() {
  pushes_ = nullptr;
  tick_.stop();
  table_.clear();
  subscriber_lists_.clear();
}

void pubsub::schedule_ping(detail::time_point now) {
  const auto interval = node().health_check_interval;
  const auto jitter = given().random.up_to(interval / 5);
  next_ping_ = interval.count() == 0 ? detail::time_point::max() : now + interval - jitter;
}

// Other bytes on the same link suggest a busy server, but not indefinitely. A new subscriber may miss messages
// meanwhile, so its limit is shorter than that of PING and UNSUBSCRIBE.
std::optional<detail::time_point> pubsub::silent_at() const {
  const auto asked = table_.oldest_unanswered(), subscribed = table_.oldest_subscribe();
  if (!asked) return std::nullopt;
  if (last_input() > *asked) return *asked + 4 * answer_timeout_;
  const auto limit = *asked + answer_timeout_;
  return subscribed && doubtful(*subscribed) ? std::min(limit, *subscribed + answer_limit(answer_timeout_)) : limit;
}

void pubsub::look_at(detail::time_point when) {
  if (when == detail::time_point::max()) return;  // never
  if (tick_.due() && when >= *tick_.due()) return;
  tick_.start(when, [this] { on_tick(); });
}

void pubsub::on_tick() {
  const auto self = shared_from_this();
  const auto now = given().now();
  if (const auto limit = silent_at()) {
    if (*limit > now) {
      look_at(*limit);
    } else if (input_waiting() && !std::exchange(gave_grace_, true)) {
      return look_at(now + grace);
    } else {
      return drop_for([this] { return fail(node(), errc::unreachable, "no answer on the pub/sub connection"); });
    }
  }
  gave_grace_ = false;
  if (!expects_input()) return;
  if (ask_again_at_ && *ask_again_at_ <= now) {
    ask_again_at_.reset();
    table_.ask_again();
    flush_soon();
  }
  if (ask_again_at_) look_at(*ask_again_at_);
  if (next_ping_ <= now) {
    table_.ping();
    flush_soon();
    schedule_ping(now);
  }
  look_at(next_ping_);
}

}  // namespace holdfast::redis
