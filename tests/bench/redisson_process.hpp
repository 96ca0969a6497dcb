// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "redis/resp.hpp"

namespace holdfast::bench {

namespace asio = boost::asio;

/// A process with a Redisson client, as those see it who contend with it for one lock: its commands, and how its
/// threads wait. All of them share one subscription while at least one waits; each message wakes one, or the next that
/// would wait. A thread is a coroutine here, so that its wake-up costs less than in Java.
class redisson_process {
 public:
  redisson_process(asio::io_context& io, const std::string& path, std::string name);
  redisson_process(const redisson_process&) = delete;
  redisson_process& operator=(const redisson_process&) = delete;

  asio::awaitable<void> lock(int thread);
  asio::awaitable<void> unlock(int thread);
  void stop();

 private:
  using timer = asio::steady_timer;

  /// One connection: commands go out in order, and what comes back is heard one by one.
  struct wire {
    wire(asio::io_context& io, const std::string& path);

    asio::local::stream_protocol::socket socket;
    std::string out, writing;
    std::array<char, 16'384> in;
    redis::reader replies;
  };
  struct question {
    timer answered;
    redis::reply reply;
  };

  template <class Hear>
  void listen(wire& on, Hear hear);
  void send(wire& on, const std::string& command);
  void flush(wire& on);
  asio::awaitable<redis::reply> ask(std::string command);
  asio::awaitable<std::optional<long long>> acquire(const std::string& owner);
  asio::awaitable<void> subscribed();
  asio::awaitable<void> wait_for_message(long long at_most_ms);
  void hear_message(const redis::reply& what);
  std::string owner(int thread) const { return uuid_ + ':' + std::to_string(thread); }

  asio::io_context& io_;
  const std::string name_, channel_, uuid_;
  wire commands_, messages_;
  std::deque<question*> asked_;
  std::deque<timer*> confirming_, parked_;
  int waiting_ = 0, permits_ = 0;
  bool confirmed_ = false;
};

}  // namespace holdfast::bench
