// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/backoff.hpp"
#include "redis/link.hpp"
#include "redis/outcome.hpp"
#include "redis/subscriber_list.hpp"
#include "redis/subscription_table.hpp"

namespace holdfast::redis {

/// Receives the changes that the server pushes. Called on the client's strand, perhaps inside a call.
class push_listener {
 public:
  /// The server may push to this client from now on: it is subscribed.
  virtual void on_push_ready(const handshake::identity& client) = 0;
  /// Keys that have changed. Empty: any may have.
  virtual void on_pushed(const std::vector<std::string>& keys) = 0;
  /// Pushes may be missed until the next on_push_ready().
  virtual void on_push_lost() = 0;
  /// The server refuses the channel, or does not tell this client's identity. Asked again after the next
  /// follow_pushes(), and on the next connection.
  virtual void on_push_refused(const failure& why) = 0;

 protected:
  ~push_listener() = default;
};

/// The pub/sub connection to one server, shared by all subscribers: made at the first subscription, one subscription
/// for each channel.
///
/// After a loss the connection is made and all channels are subscribed again. Each subscriber gets on_subscribed() once
/// more. PING, sent about once in each endpoint::health_check_interval, finds a dead link; so does a subscription that
/// is not acknowledged in time. That time is shorter after a long silence. The server may believe the dead link alive
/// for long, so the next connection ends it there.
///
/// Decision: a refused SUBSCRIBE costs no connection. An ACL's error is final; any other may come from a proxy, or may
/// pass. The channel is subscribed again on the same connection, after pauses that grow up to endpoint::reconnect_cap.
/// The other channels stay subscribed. If the server ends the connection after SUBSCRIBE, the next one waits as after a
/// failed attempt. Waiters need no notification of it: they ask at least every `poll_cap`.
///
/// Messages of more than 1 KiB are ignored. Pushed keys are not: endpoint::limits bounds them, and a key may be long.
///
/// Decision: a connection stays subscribed to push_channel after follow_pushes(false). Waiters come and go, and each
/// would cost two commands otherwise. Nothing is read meanwhile. At most one push for each tracked key waits in the
/// socket, and nothing else holds the connection.
///
/// With no subscription nothing holds the io_context; the connection stays
/// open.
///
/// Used on the strand only, in a shared_ptr. Subscribers are called there, never inside a call, and may unsubscribe and
/// subscribe meanwhile. The last owner calls close(): from then on nothing is called any more.
class pubsub final : public link {
 public:
  /// `answer_timeout`: for an acknowledgement or the answer to PING. `channels`: their kind; empty: sharded where the
  /// server has them.
  pubsub(const io_services& services, endpoint node, std::chrono::milliseconds answer_timeout,
         std::optional<channel_kind> channels = channel_kind::classic);

  /// Called at each connection for which the server refuses a command that fencing off its predecessor needs, with the
  /// server's words. One listener.
  void on_fencing_refused(std::function<void(const std::string& words)> listener) {
    fencing_refused_ = std::move(listener);
  }

  /// Called each time that a subscription is refused, but not by an ACL, or that the connection has ended after it
  /// several times in a row. One listener.
  void on_no_messages(std::function<void(const failure& why)> listener) { no_messages_ = std::move(listener); }

  /// Called when a sharded channel is not at this node, or not any more, with the server's words, if there are any. No
  /// subscriber is notified. The channel is subscribed again for the next subscriber, or on the next connection. One
  /// listener, which may unsubscribe and subscribe.
  void on_moved(std::function<void(std::string_view channel, std::string_view words)> listener) {
    moved_ = std::move(listener);
  }

  /// The result is released on the strand; it may outlive this object. `subscriber` must live until then.
  subscription subscribe(std::string_view channel, subscriber& subscriber);

  /// One listener, which does not close the connection inside its notification.
  void on_pushes(push_listener& listener) { pushes_ = &listener; }
  /// While true the connection is wanted, and subscribed to push_channel.
  void follow_pushes(bool on);

  /// While false nothing is read, so that nothing holds the io_context. Messages wait in the socket, and no connection
  /// is made. Subscriptions stay.
  void listen(bool on);

 private:
  using member = channel_member<pubsub>;
  friend member;
  using crowd = subscriber_list<member>;  // of one channel

  std::string_view role() const noexcept override { return "pubsub"; }
  bool wanted() const override { return listening_ && any_followed(); }
  bool expects_input() const override { return listening_ && (any_followed() || table_.busy()); }
  handshake introduce() const override { return {node(), handshake::purpose::subscriptions, predecessor_}; }
  void on_up(const handshake& introduced) override;
  void fill(std::string& out, std::size_t enough, detail::time_point now) override;
  void on_reply(reply&& reply) override;
  void on_settled() override;
  void on_down(const failure&) override;
  void on_attempt_failed(const failure& why) override;
  bool may_be_replaced() const override { return true; }
  void on_replaced() override;
  void on_close() override;
  bool was_useful() const override { return ends_in_a_row_ == 0 || !table_.any_unanswered(); }

  /// A channel has a subscriber, or pushes are followed.
  bool any_followed() const noexcept { return table_.wanted() > (lingers_ ? 1u : 0u); }
  void check_demand();
  void ping_now();
  using table_event = subscription_table::event;
  void on_push_event(const table_event& event);
  void lose_pushes();
  channel_kind kind_of(const server_facts& server) const;
  void on_error(const std::string& words);
  void on_unavailable(const std::string& channel, const std::string& words);
  void tell_no_messages(const std::string& channel, const failure& why);
  void tell_every_channel(const std::function<void(member&)>& action);
  void greet_late_comer(std::weak_ptr<member> member);
  void leave(member& member);
  void tell_all(std::string_view channel, const std::function<void(member&)>& action);
  void schedule_ping(detail::time_point now);
  /// The time at which the connection is given up if nothing comes; empty: no command is unanswered.
  std::optional<detail::time_point> silent_at() const;
  void look_at(detail::time_point when);
  void on_tick();

  const std::optional<channel_kind> channels_;
  bool knows_no_shards_ = false;  // the server has said so
  subscription_table table_;
  std::map<std::string, std::shared_ptr<crowd>, std::less<>> subscriber_lists_;
  detail::lease_clock::duration answer_timeout_;
  detail::timer tick_;
  detail::time_point next_ping_{};
  detail::reconnect_backoff ask_again_;
  std::optional<detail::time_point> ask_again_at_;
  detail::time_point backoff_ends_{};  // after that the next refusal counts as the first
  unsigned ends_in_a_row_ = 0;         // connections that ended while a subscription had no answer
  bool gave_grace_ = false;
  bool listening_ = true;
  push_listener* pushes_ = nullptr;
  bool follows_pushes_ = false;
  bool lingers_ = false;     // subscribed to push_channel, and not followed any more
  bool push_ready_ = false;  // the listener has heard so
  std::function<void(const std::string& words)> fencing_refused_;
  std::function<void(std::string_view, std::string_view)> moved_;
  std::function<void(const failure&)> no_messages_;
  std::optional<handshake::identity> id_;
  std::optional<handshake::identity> predecessor_;  // of the last connection that left subscriptions
};

}  // namespace holdfast::redis
