// SPDX-License-Identifier: BSL-1.0
#include "blocking/loss_stop.hpp"

#include <utility>

#include "blocking/stop_thread.hpp"

namespace holdfast::blocking::detail {
namespace {

/// Hands the stop over when it is destroyed: with its coroutine, or with the context in which the coroutine waits.
class loss_teller {
 public:
  loss_teller(io_thread& by, const std::stop_source& to) : by_(by), to_{to} {}
  loss_teller(loss_teller&&) noexcept = default;
  loss_teller& operator=(loss_teller&&) = delete;
  ~loss_teller() {
    if (!to_.empty()) by_.request(std::move(to_));
  }
  void nothing_to_tell() noexcept { to_.clear(); }

 private:
  io_thread& by_;       // its context has the coroutine
  stop_to_request to_;  // empty when moved from
};

asio::awaitable<void> tell_loss(asio::awaitable<error_code> lost, loss_teller to) {
  try {
    co_await std::move(lost);
  } catch (const error& failure) {
    if (failure.code() == errc::not_held) to.nothing_to_tell();
  }
}

}  // namespace

void stop_on_loss(io_thread& client, asio::awaitable<error_code> lost, std::stop_source stop) {
  if (!client.start_operation(tell_loss(std::move(lost), loss_teller(client, stop)))) stop.request_stop();
}

}  // namespace holdfast::blocking::detail
