// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace holdfast::chaos {

namespace asio = boost::asio;

/// Rung when a loss is signalled.
class loss_bell {
 public:
  explicit loss_bell(const asio::any_io_executor& on) : bell_(on) {}

  void ring() {
    rung_ = true;
    bell_.cancel();
  }
  asio::any_io_executor get_executor() { return bell_.get_executor(); }
  bool rung() const noexcept { return rung_; }
  /// For far longer than a loss may take to be signalled: the checker sees that it did not come.
  asio::awaitable<void> wait() {
    if (rung_) co_return;
    bell_.expires_after(std::chrono::milliseconds(1500));
    co_await as_result(bell_.async_wait(asio::use_awaitable));
  }

 private:
  asio::steady_timer bell_;
  bool rung_ = false;
};

}  // namespace holdfast::chaos
