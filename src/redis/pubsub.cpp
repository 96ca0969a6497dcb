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
constexpr std::chrono::seconds ping_interval{10};
constexpr std::chrono::seconds ping_jitter{2};
constexpr std::chrono::milliseconds least_timeout{20};
constexpr std::chrono::milliseconds grace{1};

}  // namespace

struct pubsub::member {
  member(std::weak_ptr<pubsub> h, std::string_view c, subscriber& w) : hub(std::move(h)), channel(c), who(w) {}
  member(const member&) = delete;
  member& operator=(const member&) = delete;
  ~member() {
    if (const auto h = hub.lock()) h->leave(*this);
  }

  std::weak_ptr<pubsub> hub;
  std::string channel;
  subscriber& who;
  bool told = false;  // that it is subscribed: messages may come
};

pubsub::pubsub(const services& given, endpoint node, std::chrono::milliseconds answer_timeout,
               std::optional<channel_kind> channels)
    : link(given, std::move(node)), channels_(channels), answer_timeout_(std::max(answer_timeout, least_timeout)),
      tick_(given.alarms) {}

subscription pubsub::subscribe(std::string_view channel, subscriber& who) {
  if (closed()) return nullptr;
  const auto self = std::static_pointer_cast<pubsub>(shared_from_this());
  const auto m = std::make_shared<member>(self, channel, who);
  auto& those = audiences_.try_emplace(m->channel, nullptr).first->second;
  if (!those) those = std::make_shared<crowd>();
  those->join(*m);
  table_.want(channel);
  if (table_.confirmed(channel) || standing_failure()) greet_late_comer(m);
  if (up()) flush_soon();
  demand_changed();
  return m;
}

void pubsub::listen(bool on) {
  if (std::exchange(listening_, on) == on || closed()) return;
  if (on && up()) {
    next_ping_ = given().now();  // whether it is alive still
    look_at(next_ping_);
  }
  demand_changed();
  if (!expects_input()) tick_.stop();
}

void pubsub::greet_late_comer(std::weak_ptr<member> who) {
  given().post([self = shared_from_this(), this, who = std::move(who)] {
    const auto m = who.lock();
    if (!m || closed() || m->told) return;
    if (table_.confirmed(m->channel)) {
      m->told = true;
      m->who.on_subscribed();
    } else if (const auto* why = standing_failure()) {
      m->who.on_subscribe_failed(why->code, why->detail);
    }
  });
}

void pubsub::leave(member& who) {
  const auto found = audiences_.find(who.channel);
  if (found == audiences_.end()) return;  // closed
  const auto those = found->second;
  those->leave(who);
  if (!those->empty()) return;
  audiences_.erase(found);
  table_.unwant(who.channel);
  if (up()) flush_soon();
  demand_changed();
  if (!expects_input()) tick_.stop();
  check_idle();
}

void pubsub::tell_all(std::string_view channel, const std::function<void(member&)>& what) {
  const auto found = audiences_.find(channel);
  if (found == audiences_.end()) return;
  const auto those = found->second;
  those->tell(what, [this] { return !closed(); });
}

void pubsub::on_up(const handshake& introduced) {
  id_ = introduced.id();
  predecessor_.reset();
  if (fencing_refused_ && !introduced.fencing_refused().empty()) fencing_refused_(introduced.fencing_refused());
  if (closed()) return;
  table_.start(kind_of(introduced.server()));
  next_ping_ = given().now() + ping_interval - given().random.up_to(ping_jitter);
  if (expects_input()) look_at(next_ping_);  // else nobody listens any more
}

channel_kind pubsub::kind_of(const server_facts& server) const {
  if (channels_) return *channels_;
  constexpr int first_with_shards = 7;
  int major = first_with_shards;  // of a server that does not say; if it has none it says so when it is asked for one
  std::from_chars(server.version.data(), server.version.data() + server.version.size(), major);
  return knows_no_shards_ || major < first_with_shards ? channel_kind::classic : channel_kind::sharded;
}

void pubsub::fill(std::string& out, std::size_t enough, detail::time_point now) {
  table_.write(out, enough, now);
  if (!out.empty()) look_at(now + answer_timeout_);
}

void pubsub::on_reply(reply&& r) {
  using kind = subscription_table::event::kind;
  auto e = table_.on_reply(std::move(r));
  switch (e.what) {
    case kind::nothing: return;
    case kind::confirmed:
      return tell_all(e.channel, [](member& m) {
        m.told = true;
        m.who.on_subscribed();
      });
    case kind::refused: {
      const auto why = fail(node(), errc::no_permission,
                            std::string(subscribe_word(table_.kind_of_channels())) + ": " + quoted(node(), e.text));
      return tell_all(e.channel, [&](member& m) { m.who.on_subscribe_failed(why.code, why.detail); });
    }
    case kind::moved:
      if (moved_) moved_(e.channel, e.text);
      return;
    case kind::message:
      if (e.text.size() > longest_message) return;
      return tell_all(e.channel, [&](member& m) {
        if (m.told) m.who.on_message(e.text);
      });
    case kind::error: return on_error(e.text);
    case kind::desync: return drop(fail(node(), errc::protocol_error, e.text));
  }
}

void pubsub::on_error(const std::string& words) {
  knows_no_shards_ |= table_.kind_of_channels() == channel_kind::sharded && words.starts_with("ERR unknown command");
  drop(fail(node(), classify(words, errc::protocol_error).code, quoted(node(), words)));
}

void pubsub::on_settled() {
  if (!expects_input()) tick_.stop();
}

void pubsub::on_down(const failure&) {
  if (id_ && table_.any_asked()) predecessor_ = id_;
  on_replaced();
}

// The connection before it has been closed by us: it needs no fencing off.
void pubsub::on_replaced() {
  id_.reset();
  tick_.stop();
  table_.stop();
}

void pubsub::on_attempt_failed(const failure& why) {
  if (mends_itself(why)) return;
  std::vector<std::string> channels;
  for (const auto& [channel, those] : audiences_) channels.push_back(channel);
  for (const auto& channel : channels)
    tell_all(channel, [&](member& m) { m.who.on_subscribe_failed(why.code, why.detail); });
}

void pubsub::on_close() {
  tick_.stop();
  table_.clear();
  audiences_.clear();
}

void pubsub::look_at(detail::time_point when) {
  if (!tick_.due() || when < *tick_.due()) tick_.start(when, [this] { on_tick(); });
}

void pubsub::on_tick() {
  const auto self = shared_from_this();
  const auto now = given().now();
  if (const auto asked = table_.oldest_unanswered()) {
    // Other bytes on the same link speak for a busy server; not for ever, though.
    const auto patience = last_input() > *asked ? 4 * answer_timeout_ : answer_timeout_;
    if (*asked + patience > now) {
      look_at(*asked + patience);
    } else if (input_waiting() && !std::exchange(gave_grace_, true)) {
      return look_at(now + grace);
    } else {
      return drop(fail(node(), errc::unreachable, "no answer on the pub/sub connection"));
    }
  }
  gave_grace_ = false;
  if (!expects_input()) return;
  if (next_ping_ <= now) {
    table_.ping();
    flush_soon();
    next_ping_ = now + ping_interval - given().random.up_to(ping_jitter);
  }
  look_at(next_ping_);
}

}  // namespace holdfast::redis
