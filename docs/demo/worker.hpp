// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/holdfast.hpp>

#include "job.hpp"
#include "witness.hpp"

namespace holdfast::demo {

namespace asio = boost::asio;

/// A worker process: takes orders from stdin, one word a line, and reports on stdout. Everything that it does with
/// Redis it does through the library, except at the order "break".
class worker {
 public:
  worker(job what, std::string url);
  /// Returns at the order "end", when nothing is left to do.
  void run();

 private:
  void report(std::string_view who, std::string_view event, std::string_view text = {}, bool holds = false) const;
  asio::awaitable<std::string> next_order();
  asio::awaitable<void> serve();
  std::string task_name(int n) const { return job_.actor + (job_.tasks > 1 ? "." + std::to_string(n) : ""); }
  holdfast::mutex mutex() const { return redis_->mutex(job_.lock); }

  // role contend
  asio::awaitable<void> contend_role();
  asio::awaitable<void> contend(std::string who, bool pauses);
  asio::awaitable<void> enter_once(std::string who, bool pauses, bool nests);
  asio::awaitable<void> nested(std::string who, bool pauses);
  asio::awaitable<void> pause(milliseconds time);
  void report_done() const;
  void release_without_owner_check() const;

  // role hold
  asio::awaitable<void> hold_role();
  asio::awaitable<void> take(std::string who);
  void start_takers();

  // role guard
  asio::awaitable<void> guard_role();
  asio::awaitable<void> work_until_told(holdfast::lease& lease);

  job job_;
  std::string url_;
  asio::io_context io_{1};
  asio::posix::stream_descriptor in_;
  std::string input_;
  std::unique_ptr<holdfast::client> redis_;

  witness witness_;
  asio::steady_timer go_on_, all_done_;  // never expire: cancel() wakes whoever waits
  int tasks_left_ = 0;
  bool been_inside_ = false;
  std::vector<steady_clock::duration> waited_;
  std::size_t nested_ = 0;

  std::deque<asio::cancellation_signal> cancel_;
  std::vector<holdfast::lease> leases_;
};

}  // namespace holdfast::demo
