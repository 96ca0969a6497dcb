// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "support/fd.hpp"
#include "support/proxy.hpp"
#include "support/proxy_stream.hpp"
#include "support/raw_client.hpp"

namespace holdfast::test {

/// Of arrays with one element for each direction.
constexpr std::size_t index(proxy::direction where) { return static_cast<std::size_t>(where); }

/// What holds for all connections of one proxy.
struct proxy_faults {
  struct active_rule {
    proxy::rule what;
    proxy::direction where;
    std::size_t seen = 0;
  };
  pacing paces[2];
  std::vector<active_rule> rules;
};

/// One client's connection through a proxy: finds commands and replies in the bytes and applies the rules to them.
class proxy_connection {
 public:
  struct side {
    unique_fd fd;
    proxy_stream out;  // read from fd, on its way to the other side's
    std::string unparsed;
    bool ended = false;
  };

  proxy_connection(std::size_t number, unique_fd client, unique_fd server);

  /// Reads what has come from one side. Counts commands, replies and fired rules.
  void read(proxy::direction from, proxy_faults& faults, proxy::counters& n);

  /// proxy::forget()
  void forget(bool resets);
  /// proxy::idle()
  bool idle() const noexcept { return forgotten_ || awaited_.empty(); }

  side sides[2];  // by the direction of what is read: sides[to_server] is the client
  bool dead = false;
  bool to_be_reset = false;

 private:
  void pass_on(proxy::direction where, proxy_faults& faults, proxy::counters& n);
  void pass_unit(proxy::direction where, const value& unit, std::string bytes, proxy_faults& faults,
                 proxy::counters& n);
  void forward(proxy::direction where, std::string bytes, bool then_cut, const pacing& pace);
  std::string name_of_command(const value& command, proxy::counters& n);
  std::string name_of_reply(const value& reply, proxy::counters& n);

  std::size_t number_;
  std::deque<std::string> awaited_;  // names of commands without reply
  bool pushes_ = false;              // SUBSCRIBE or MONITOR was sent: what follows the awaited replies is no answer
  bool forgotten_ = false, resets_ = false;
  bool opaque_ = false;  // what came is not RESP: the bytes are not looked into any more
};

}  // namespace holdfast::test
