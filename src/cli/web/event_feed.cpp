// SPDX-License-Identifier: BSL-1.0
#include "cli/web/event_feed.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr std::chrono::seconds heartbeat{15};  // proxies close a connection that is silent for a minute

}  // namespace

void event_reader::push(const event_queue::text& event) {
  queue_.push(event);
  wake_.cancel();
}

asio::awaitable<event_queue::text> event_reader::next() {
  if (queue_.is_empty() && !is_closed_) {
    wake_.expires_after(heartbeat);
    boost::system::error_code cancelled;
    co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
  co_return queue_.pop();
}

void event_reader::close() {
  is_closed_ = true;
  wake_.cancel();
}

std::shared_ptr<event_reader> event_feed::subscribe() {
  std::erase_if(readers_, [](const auto& reader) { return reader.expired(); });
  if (readers_.size() >= most_readers) return nullptr;
  auto reader = std::make_shared<event_reader>(executor_);
  readers_.push_back(reader);
  return reader;
}

void event_feed::publish(std::string event) {
  const auto shared = std::make_shared<const std::string>(std::move(event));
  for (const auto& reader : readers_)
    if (const auto open = reader.lock()) open->push(shared);
}

void event_feed::close() {
  for (const auto& reader : readers_)
    if (const auto open = reader.lock()) open->close();
}

std::size_t event_feed::readers() const {
  std::size_t count = 0;
  for (const auto& reader : readers_) count += reader.expired() ? 0 : 1;
  return count;
}

}  // namespace holdfast::cli
