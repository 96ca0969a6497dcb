// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chaos/call_book.hpp"
#include "chaos/workload.hpp"
#include "support/proxy.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"

namespace holdfast::chaos {

/// Of the clients of the nested chaos. The TTL outlasts the faults, which last a second at most. It outlasts a round as
/// well, so that a key which nobody gives back is seen at the end of the round.
inline constexpr milliseconds nested_ttl{12000}, nested_command_timeout{250};

/// The servers of the nested chaos, the clients, and a proxy between each two. Names begin with the letter of their
/// server: `a.` and `b.` of one, `r.` of three primaries. Two clients share the names of `a.`.
class nested_rig {
 public:
  static constexpr std::size_t primaries = 3, servers = 2 + primaries;

  struct link {
    std::size_t server;
    std::unique_ptr<test::proxy> way;
  };
  /// The clients that a task has.
  struct kit {
    client* of_a;
    client* of_b;
    client* of_red;
  };

  nested_rig(asio::io_context& io, call_book& book);

  test::real_redis& server(std::size_t which) { return *servers_[which]; }
  /// A new connection past all proxies. A server that was just started again may still be busy.
  test::raw_client ask(std::size_t which) const { return test::raw_client(*servers_[which]); }
  std::vector<link>& links() noexcept { return links_; }
  kit kit_of(std::size_t task) { return {&clients_[task % 2], &clients_[2], &clients_[3]}; }
  std::deque<client>& clients() noexcept { return clients_; }

  /// Of one server, without what stays.
  std::vector<std::string> locks(std::size_t which) const;
  /// The owner fields of the key.
  std::vector<std::string> holders(std::size_t which, const std::string& lock) const;
  std::vector<std::string> channels(std::size_t which) const;

 private:
  client& connect(asio::io_context& io, call_book& book, std::vector<std::size_t> to, bool tcp, bool turns);

  std::vector<std::unique_ptr<test::real_redis>> servers_;
  std::vector<link> links_;
  std::deque<client> clients_;
};

/// The names that the tasks lock.
struct nested_names {
  std::vector<lock_name> a, b, red;
  std::vector<lock_name> breakable;  // force_unlock() stays with them: nothing excuses an overlap of the others
};
const nested_names& names_of_chaos();

}  // namespace holdfast::chaos
