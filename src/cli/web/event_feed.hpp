// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cli/web/event_queue.hpp"

namespace holdfast::cli {

namespace asio = boost::asio;

/// One reader of /api/events.
class event_reader {
 public:
  explicit event_reader(const asio::any_io_executor& executor) : wake_(executor) {}

  void push(const event_queue::text& event);
  /// The next text; null: nothing happened for 15 s, or it is closed.
  asio::awaitable<event_queue::text> next();
  void close();
  bool is_closed() const noexcept { return is_closed_; }

 private:
  event_queue queue_;
  asio::steady_timer wake_;
  bool is_closed_ = false;
};

/// All readers of /api/events. They end by themselves, or by close().
class event_feed {
 public:
  static constexpr std::size_t most_readers = 256;

  explicit event_feed(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  /// Null: there are too many readers.
  std::shared_ptr<event_reader> subscribe();
  void publish(std::string event);
  void close();
  std::size_t readers() const;

 private:
  const asio::any_io_executor executor_;
  std::vector<std::weak_ptr<event_reader>> readers_;
};

}  // namespace holdfast::cli
