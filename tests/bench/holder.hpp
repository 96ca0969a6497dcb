// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <iterator>
#include <string>
#include <vector>

#include "bench/meter.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"

namespace holdfast::bench {

/// The locks of one client.
struct holder {
  explicit holder(client& c, long n) : redis(c), leases(static_cast<std::size_t>(n)) {}

  client& redis;
  std::vector<lease> leases;
  long next = 0, ended = 0;
  std::string error{};  // of the first lock() that failed

  long held() const { return std::ranges::count_if(leases, &lease::held); }
};

inline asio::awaitable<void> take(holder& h, long i) {
  try {
    auto mutex = h.redis.mutex(name_of(i));
    h.leases[static_cast<std::size_t>(i)] = co_await mutex.lock();
  } catch (const std::exception& e) {
    if (h.error.empty()) h.error = e.what();
  }
  ++h.ended;
}

inline asio::awaitable<void> take_one_after_another(holder& h) {
  while (h.next < std::ssize(h.leases)) co_await take(h, h.next++);
}

/// All of them, so many at a time.
inline void take_all(asio::io_context& io, holder& h, int abreast, clock::time_point deadline) {
  for (int i = 0; i < abreast; ++i) asio::co_spawn(io, take_one_after_another(h), asio::detached);
  run_handlers(
      io, [&] { return h.ended == std::ssize(h.leases); }, deadline);
}

/// Throws not_finished.
inline void must_hold(const holder& h) {
  const auto n = std::ssize(h.leases);
  if (h.held() < n)
    throw not_finished(std::to_string(h.held()) + " of " + std::to_string(n) + " held" +
                       (h.error.empty() ? "" : "; first error: " + h.error));
}

inline asio::awaitable<void> shut_down(client& redis) { co_await redis.shutdown(std::chrono::seconds(20)); }

inline void end(asio::io_context& io, client& redis) {
  asio::co_spawn(io, shut_down(redis), rethrow);
  io.run();
}

}  // namespace holdfast::bench
