// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>

#include "base/asio_timers.hpp"
#include "base/random.hpp"
#include "redis/endpoint.hpp"
#include "redis/handshake.hpp"
#include "redis/io_services.hpp"
#include "redis/resp.hpp"
#include "redis/sockets.hpp"

/// The command line's own view of servers, where the public API has no call: SCAN, TYPE, CLIENT LIST, INFO, ACL and
/// subscriptions to patterns.
///
/// Decision: it stands on the library's `redis` layer, not on hiredis. So it has the same URLs, login, TLS and unix
/// sockets as the locks beside it, and one parser. It writes to no lock: whatever takes or frees one is a call of the
/// public API.
namespace holdfast::cli {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using words = std::vector<std::string>;  // a command and its arguments

/// Sockets, timers and randomness of all sessions. Outlives them.
class network {
 public:
  explicit network(const asio::any_io_executor& executor)
      : strand_(executor), timers_(std::make_shared<detail::asio_timers>(strand_)) {}
  network(const network&) = delete;
  network& operator=(const network&) = delete;
  ~network() { timers_->close(); }

  redis::io_services services() { return {strand_, detail::system_clock(), *timers_, random_, sockets_}; }
  const asio::any_io_executor executor() const { return strand_.any().get_inner_executor(); }

 private:
  detail::direct_strand strand_;
  std::shared_ptr<detail::asio_timers> timers_;
  detail::system_random random_;
  redis::sockets sockets_;
};

/// Pure: the work of a server for an answer is its time beyond the fastest answer, 100 ms at most. A server that stands
/// still for longer does not work.
std::chrono::microseconds work_in(std::chrono::microseconds took, std::chrono::microseconds fastest) noexcept;

/// One connection to one server, for one caller at a time. Every function throws holdfast::error: unreachable for a
/// server that is silent for `limit`, a standstill of this process apart (see patience), or what the login says.
class session {
 public:
  /// `limit`: for each answer. A replica is refused unless endpoint::any_role is set.
  static asio::awaitable<std::unique_ptr<session>> open(network& over, redis::endpoint node, milliseconds limit);
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session() { wire_->close(); }

  /// The answer, also if it is an error.
  asio::awaitable<redis::reply> ask(words command);
  /// The same for several commands, sent in one write.
  asio::awaitable<std::vector<redis::reply>> ask_all(std::vector<words> commands);
  /// Sends without waiting for an answer: a subscription.
  asio::awaitable<void> send(words command);
  /// The next answer or message; nothing if none comes within `wait`.
  asio::awaitable<std::optional<redis::reply>> next(milliseconds wait);

  const redis::endpoint& node() const noexcept { return node_; }
  const redis::server_facts& facts() const noexcept { return facts_; }
  /// Time that answers took since the last call, beyond the fastest of all: the work of the server, and of reading.
  std::chrono::microseconds take_work() noexcept { return std::exchange(work_, {}); }
  /// The fastest answer; zero: there was none.
  std::chrono::microseconds round_trip() const noexcept { return fastest_.value_or(std::chrono::microseconds{}); }
  /// The text of an error reply: escaped, and without the password.
  std::string words_of(const redis::reply& error) const;

 private:
  session(asio::any_io_executor executor, redis::endpoint node, std::shared_ptr<redis::stream> wire,
          milliseconds limit);

  asio::awaitable<void> introduce();
  asio::awaitable<void> write(std::string bytes);
  asio::awaitable<redis::reply> answer();
  void count_work(std::chrono::steady_clock::time_point begin) noexcept;
  [[noreturn]] void give_up(const std::string& cause) const;

  const asio::any_io_executor executor_;
  const redis::endpoint node_;
  const std::shared_ptr<redis::stream> wire_;
  const milliseconds limit_;
  redis::reader reader_;
  redis::server_facts facts_;
  std::chrono::microseconds work_{};
  std::optional<std::chrono::microseconds> fastest_;
  struct transfer;
  std::shared_ptr<transfer> reading_;  // a read that is still pending
};

}  // namespace holdfast::cli
