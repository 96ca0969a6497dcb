// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::chaos {

namespace asio = boost::asio;

/// Asks the servers themselves what they have of a lock: past the proxies, and past the library. One question at a
/// time; one thread.
class key_witness {
 public:
  key_witness(const asio::any_io_executor& on, const std::vector<std::string>& socket_paths);
  ~key_witness();

  /// What PTTL says at a majority at least: milliseconds, or -2 where there is no such key. Nothing where one of them
  /// does not answer at once, and where there is none.
  asio::awaitable<std::optional<long long>> ttl(std::string lock);

 private:
  struct server;
  using servers = std::list<server>;

  asio::awaitable<void> ask_from(servers::iterator next, const std::string& lock);
  asio::awaitable<void> ask(server& of, const std::string& lock);

  servers servers_;
};

}  // namespace holdfast::chaos
