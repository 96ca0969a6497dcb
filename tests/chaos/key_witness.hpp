// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <optional>
#include <string>

namespace holdfast::chaos {

namespace asio = boost::asio;

/// Asks the server itself what it has of a lock: past the proxies, and past the library. One question at a time; one
/// thread.
class key_witness {
 public:
  key_witness(const asio::any_io_executor& on, std::string socket_path);

  /// What PTTL says: milliseconds, or -2 where there is no such key. Nothing where the server does not answer at once.
  asio::awaitable<std::optional<long long>> ttl(std::string lock);

 private:
  asio::awaitable<std::optional<long long>> ask(std::string lock);

  const std::string socket_path_;
  asio::local::stream_protocol::socket socket_;
};

}  // namespace holdfast::chaos
