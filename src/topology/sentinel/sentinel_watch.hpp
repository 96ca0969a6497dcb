// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/connection.hpp"
#include "redis/endpoint.hpp"
#include "redis/io_services.hpp"
#include "redis/pubsub.hpp"
#include "topology/sentinel/sentinel_resolver.hpp"

namespace holdfast::detail {

/// One sentinel, on two connections: one for questions and one for messages. A subscribed connection cannot ask.
class sentinel_watch final : private redis::subscriber {
 public:
  using sentinel_id = sentinel_resolver::sentinel_id;

  /// May destroy the watch that calls.
  class listener {
   public:
    /// The sentinel should be asked: a message about our primary came, messages arrive from now on, or none will come.
    virtual void on_news(sentinel_id id) = 0;
    virtual void on_answer(sentinel_id id, const sentinel_answer& answer) = 0;
    virtual void on_failed(sentinel_id id, const redis::failure& why) = 0;
    virtual void on_down(sentinel_id id, const redis::failure& why) = 0;
    virtual void on_identified(sentinel_id id, const std::string& run) = 0;
    virtual void on_listed(const std::vector<listed_sentinel>& others) = 0;

   protected:
    ~listener() = default;
  };

  /// `answer_timeout`: of a question, and of the acknowledgement of the subscription.
  sentinel_watch(const redis::io_services& services, const redis::endpoint& node, sentinel_id id,
                 std::string primary_name, std::chrono::milliseconds answer_timeout, listener& listener);
  sentinel_watch(const sentinel_watch&) = delete;
  sentinel_watch& operator=(const sentinel_watch&) = delete;
  ~sentinel_watch();

  sentinel_id id() const noexcept { return id_; }
  /// While true it is subscribed and reads. While false only a question under way holds the io_context.
  void listen(bool on);
  /// One question at a time: on_answer() or on_failed() follows, never inside the call.
  void ask(bool for_others);

 private:
  void on_subscribed() override { listener_.on_news(id_); }
  void on_message(std::string_view payload) override;
  void on_subscribe_failed(error_code, const std::string&) override { listener_.on_news(id_); }

  void send(std::vector<std::string> argv, redis::handler done);
  void on_address(const redis::outcome& outcome);

  const sentinel_id id_;
  const std::string name_;
  const std::chrono::milliseconds answer_timeout_;
  listener& listener_;
  std::shared_ptr<redis::connection> questions_;
  std::shared_ptr<redis::pubsub> messages_;
  redis::subscription switches_;
  bool listening_ = false;
  std::optional<redis::outcome> master_;  // the answer to the first half of the question
};

}  // namespace holdfast::detail
