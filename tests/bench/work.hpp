// SPDX-License-Identifier: BSL-1.0
// What the scenarios have in common: names, the library's own commands for the bare client, a client that is warm.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <holdfast/holdfast.hpp>
#include <string>
#include <utility>
#include <vector>

#include "protocol/kind.hpp"
#include "support/real_redis.hpp"

namespace holdfast::bench {

namespace asio = boost::asio;

constexpr milliseconds default_ttl{30'000};

inline std::string name_of(long i) { return "bench:" + std::to_string(i); }
inline detail::lock_keys keys_of(long i) { return detail::lock_keys(detail::plain_lock, name_of(i)); }
inline detail::owner_field field_of(long i) {
  static const detail::uuid client(0x0b6ab61e3a4f8d5c, 0x9d3c6a2f4e1c7b90);
  return {client, static_cast<std::uint64_t>(i) + 1};
}

inline std::string acquire_command(long i) {
  const auto keys = keys_of(i);
  const auto field = field_of(i);
  std::string bytes;
  detail::plain_lock.acquire.make(keys, default_ttl, field).append_to(bytes, false);
  return bytes;
}
inline std::string release_command(long i) {
  const auto keys = keys_of(i);
  const auto field = field_of(i);
  std::string bytes;
  detail::plain_lock.release.make(keys, field).append_to(bytes, false);
  return bytes;
}

inline void rethrow(std::exception_ptr failed) {
  if (failed) std::rethrow_exception(failed);
}

inline asio::awaitable<void> pause_until(asio::steady_timer& timer, std::chrono::steady_clock::time_point when) {
  timer.expires_at(when);
  co_await timer.async_wait(asio::use_awaitable);
}

inline asio::awaitable<void> lock_once(client& redis) {
  auto mutex = redis.mutex("bench:warm");
  auto held = co_await mutex.lock();
  co_await held.unlock();
}

/// Connects it, and makes the server learn the scripts. Leaves nothing pending.
inline void warm_up(asio::io_context& io, client& redis) {
  asio::co_spawn(io, lock_once(redis), rethrow);
  io.run();
  io.restart();
}

inline client make_client(asio::io_context& io, const test::real_redis& server) {
  config c;
  c.url = server.unix_url();
  return client(io.get_executor(), c);
}

inline client make_client(asio::io_context& io, config c) {
  client made(io.get_executor(), std::move(c));
  warm_up(io, made);
  return made;
}
inline config of_url(const std::string& url) {
  config c;
  c.url = url;
  return c;
}

/// Of a server that is reached as several are.
inline test::redis_options with_tcp(std::vector<std::string> arguments) {
  test::redis_options o;
  o.tcp = true;
  o.arguments = std::move(arguments);
  return o;
}

inline void load_scripts(const test::real_redis& server) {
  asio::io_context io(1);
  auto redis = make_client(io, server);
  warm_up(io, redis);
}

}  // namespace holdfast::bench
