// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <holdfast/config.hpp>
#include <holdfast/metrics.hpp>

#include "cli/server/lock_watch.hpp"
#include "cli/web/event_feed.hpp"
#include "cli/web/event_log.hpp"
#include "cli/web/free_request.hpp"
#include "cli/web/http_server.hpp"
#include "cli/web/lock_board.hpp"
#include "cli/web/read_budget.hpp"
#include "cli/web/request_gate.hpp"

namespace holdfast::cli {

/// The routes of `holdfast serve`, and the state that they show. On one thread.
class lock_site final : public http_site, public lock_watcher {
 public:
  /// `given`: of the client that frees locks. `on_ready` is called once, after the first poll.
  lock_site(gate_settings gate, config given, const detail::settings& settings, network& over,
            std::function<void()> on_ready);

  gate_verdict judge(const request_head& request) const override { return gate_.judge(request); }
  asio::awaitable<http_answer> answer(route to, std::string body) override;
  event_feed& feed() override { return feed_; }
  std::string greeting() const override;

  void on_event(const lock_event& event) override;
  void on_poll(const lock_map& locks) override;
  void on_lock(const std::string& name, const lock_facts* lock) override;
  void on_work(std::chrono::microseconds work) override { budget_.spend(work, clock::now()); }
  milliseconds pause() override { return budget_.pause(clock::now()); }
  bool may_read() override { return budget_.may_read(clock::now()); }

 private:
  using clock = std::chrono::steady_clock;
  using text = std::shared_ptr<const std::string>;

  http_answer page();
  http_answer metrics_page() const;
  http_answer readiness() const;
  text locks();
  asio::awaitable<text> servers();
  asio::awaitable<http_answer> free(free_request request);
  asio::awaitable<std::string> break_shown_hold(const free_request& request);
  void publish(std::string_view event, const std::string& data);
  void log(boost::json::object event);

  const request_gate gate_;
  const bool may_free_;
  config given_;
  const detail::settings& settings_;
  network& over_;
  std::function<void()> on_ready_;
  std::shared_ptr<metrics> numbers_ = std::make_shared<metrics>();
  lock_board board_;
  event_log log_;
  event_feed feed_;
  read_budget budget_;
  text snapshot_;  // null: something has changed since
  clock::time_point snapshot_at_{};
  text servers_ = std::make_shared<const std::string>("[]");
  clock::time_point surveyed_at_{};
  bool is_surveying_ = false, is_freeing_ = false;
  bool is_away_ = false;  // Redis does not answer
};

/// 128 random bits as hexadecimal digits.
std::string random_secret();

}  // namespace holdfast::cli
