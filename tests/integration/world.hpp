// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"
#include "support/run_coro.hpp"
#include "support/skip.hpp"

namespace holdfast::test {

using namespace std::chrono_literals;

/// Keeps every event, for the test to look at. Any thread.
class recorder final : public observer {
 public:
  struct entry {
    event_kind what;
    std::string name, detail;
    error_code reason;
    std::size_t waiters;
  };
  void on(const event& e) noexcept override {
    const std::lock_guard lock(guard_);
    seen_.push_back({e.kind, std::string(e.name), std::string(e.detail), e.reason, e.waiters});
  }
  std::size_t count(event_kind what) const {
    const std::lock_guard lock(guard_);
    return static_cast<std::size_t>(
        std::count_if(seen_.begin(), seen_.end(), [&](const auto& e) { return e.what == what; }));
  }
  std::vector<entry> all() const {
    const std::lock_guard lock(guard_);
    return seen_;
  }

 private:
  mutable std::mutex guard_;
  std::vector<entry> seen_;
};

/// Other keys stay for good (counters of fencing tokens, the marker of a primary), for a TTL (notes, marks of a latch),
/// or for a second (a lock that connect() has tried, and whose connection ended before it was released).
inline bool is_lock(std::string_view key) {
  return !key.starts_with("redisson_lock_token:") && !key.starts_with("holdfast:redlock") &&
         !key.starts_with("holdfast_note:") && !key.starts_with("holdfast_done:") && !key.starts_with("__probe:");
}

/// Where clients of ours run and are heard, whatever servers they have.
struct client_side {
  virtual ~client_side() = default;
  /// Of the servers.
  virtual std::string url() const = 0;

  config settings() const {
    config c;
    c.url = url();
    c.observer = heard;
    return c;
  }
  /// A client with these settings changed by `change`.
  template <class Change>
  client make(Change change) {
    auto c = settings();
    change(c);
    return client(io.get_executor(), std::move(c));
  }
  client make() { return client(io.get_executor(), settings()); }

  template <class T>
  T run(asio::awaitable<T> op) {
    return test::run(io, std::move(op));
  }
  /// As a task of its own: nested locks re-enter.
  template <class T>
  T run_as(const owner& who, asio::awaitable<T> op) {
    return test::run(io, who.bind(io.get_executor()), std::move(op));
  }
  /// Runs the context until `condition` holds. Fails the test after `limit`.
  template <class Condition>
  void until(Condition condition, std::chrono::milliseconds limit = 60s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    if (io.stopped()) io.restart();
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= end) throw std::runtime_error("the condition was not met in time");
      if (io.run_one_for(1ms) == 0 && io.stopped()) io.restart();
    }
  }
  void pass(std::chrono::milliseconds time) {
    io.restart();
    io.run_for(time);
  }

  /// The one code that `op` fails with; none when it succeeds.
  template <class T>
  error_code code_of(asio::awaitable<T> op) {
    return code_of_call([&] { (void)run(std::move(op)); });
  }
  template <class T>
  error_code code_of_as(const owner& who, asio::awaitable<T> op) {
    return code_of_call([&] { (void)run_as(who, std::move(op)); });
  }

  template <class Call>
  static error_code code_of_call(Call call) {
    try {
      call();
      return {};
    } catch (const boost::system::system_error& e) {
      return e.code();
    }
  }

  std::shared_ptr<recorder> heard = std::make_shared<recorder>();
  asio::io_context io;
};

/// For PUBSUB CHANNELS: the channels of locks. The channel of pushed changes is the server's, and begins with "_". It
/// stays subscribed while its connection lasts.
inline constexpr const char* of_locks = "[^_]*";

/// A private server, a client of ours, and an eye on the server that shares nothing with the library.
struct world : client_side {
  explicit world(redis_options options = {}) : server(std::move(options)), eye(server) {}

  std::string url() const override { return server.url(); }

  std::vector<std::string> keys() { return eye("KEYS", "*").strings(); }
  std::vector<std::string> locks() {
    auto all = keys();
    std::erase_if(all, [](const auto& key) { return !is_lock(key); });
    return all;
  }

  real_redis server;
  raw_client eye;
};

/// An operation under way.
template <class T>
struct started {
  started(client_side& w, asio::awaitable<T> op) {
    auto ended = [to = shared](std::exception_ptr, result<T> r) { to->emplace(std::move(r)); };
    asio::co_spawn(w.io, as_result(std::move(op)), ended);
  }
  bool succeeded() const { return answer && answer->has_value(); }
  // The call may end after this object, if an exception leaves the block of the test.
  std::shared_ptr<std::optional<result<T>>> shared = std::make_shared<std::optional<result<T>>>();
  std::optional<result<T>>& answer = *shared;
};

/// Whether `f` throws; for checks on text.
template <class F>
std::string text_of_failure(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

}  // namespace holdfast::test
