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

#include "redis/link.hpp"
#include "redis/outcome.hpp"
#include "redis/subscription_table.hpp"

namespace holdfast::redis {

/// The pub/sub connection to one server, shared by all subscribers: made at the first subscription, one subscription
/// for each channel.
///
/// After a loss it is made again and everything subscribed again; each subscriber hears on_subscribed() once more. A
/// link that is dead without saying so is found by PING, every ten seconds or a little less, and by a subscription that
/// is not acknowledged in time; the server may believe it alive for long, so the next connection ends it there.
/// Messages of more than 1 KiB are ignored. With no subscription nothing holds the io_context; the connection stays
/// open.
///
/// Used on the strand only, in a shared_ptr. Subscribers are called there, never inside a call, and may unsubscribe and
/// subscribe meanwhile. The last owner calls close(): from then on nobody is called any more.
class pubsub final : public link {
 public:
  /// `answer_timeout`: for an acknowledgement or the answer to PING.
  pubsub(const services& given, endpoint node, std::chrono::milliseconds answer_timeout);

  /// Called at each connection for which the server refuses what fencing off its predecessor needs, with the server's
  /// words. One listener.
  void on_fencing_refused(std::function<void(const std::string& words)> listener) {
    fencing_refused_ = std::move(listener);
  }

  /// The result is released on the strand; it may outlive this object. `who` must live until then.
  subscription subscribe(std::string_view channel, subscriber& who);

 private:
  struct member;
  struct audience;  // of one channel

  bool wanted() const override { return table_.any_wanted(); }
  bool expects_input() const override { return table_.any_wanted() || table_.busy(); }
  handshake introduce() const override { return {node(), handshake::purpose::subscriptions, predecessor_}; }
  void on_up(const handshake& introduced) override;
  void fill(std::string& out, std::size_t enough, detail::time_point now) override;
  void on_reply(reply r) override;
  void on_settled() override;
  void on_down(const failure&) override;
  void on_attempt_failed(const failure& why) override;
  void on_close() override;

  void greet_late_comer(std::weak_ptr<member> who);
  void leave(member& who);
  void tell_all(std::string_view channel, const std::function<void(member&)>& what);
  void look_at(detail::time_point when);
  void on_tick();

  subscription_table table_;
  std::map<std::string, std::shared_ptr<audience>, std::less<>> audiences_;
  detail::lease_clock::duration answer_timeout_;
  detail::timer tick_;
  detail::time_point next_ping_{};
  bool gave_grace_ = false;
  std::function<void(const std::string& words)> fencing_refused_;
  std::optional<handshake::identity> id_;
  std::optional<handshake::identity> predecessor_;  // of the last one that left subscriptions
};

}  // namespace holdfast::redis
