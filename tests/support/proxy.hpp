// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::test {

class real_redis;

struct proxy_options {
  bool tcp = false;  ///< listens on a loopback port instead of a unix socket
};

/// Stands between clients and a real_redis and does what networks do. Any thread may call it; a fault is in force when
/// its call returns. Whole commands and whole replies are passed on; the faults act on these.
class proxy {
 public:
  enum class direction { to_server, to_client };

  /// What happens to the n-th command or reply that matches, counted from the call that set the rule; 1 is the next.
  struct rule {
    enum class action {
      drop,        ///< it alone disappears: for messages; a command connection is out of step afterwards
      drop_rest,   ///< it and all that follows in this direction of its connection disappears
      hold_rest,   ///< it and all that follows in this direction of its connection waits for release() or heal()
      cut_before,  ///< what came before it is delivered, then the connection ends
      cut_after,   ///< it is delivered, then the connection ends
    };
    action what = action::cut_before;
    std::size_t n = 1;
    std::size_t times = 1;  ///< so many matches in a row from the n-th on
    /// "EVALSHA": only this command, only replies to it; "message", "subscribe": only these pushes.
    /// Empty: every command; every reply that is no push.
    std::string command{};
    /// Only on this one, numbered from 0 as they came; empty: counted over all.
    std::optional<std::size_t> connection{};
  };
  static constexpr auto always = std::numeric_limits<std::size_t>::max();  ///< for rule::times

  struct counters {
    std::size_t connections = 0;  ///< ever accepted
    std::size_t open = 0;
    std::size_t fired = 0;                                     ///< times that a rule matched
    std::uint64_t bytes_to_server = 0, bytes_to_client = 0;    ///< delivered; counted just after the peer can see them
    std::uint64_t pieces_to_server = 0, pieces_to_client = 0;  ///< in which they were
    std::size_t replies = 0;
    std::map<std::string, std::size_t> commands;  ///< by name in capitals, as they came from clients
  };

  explicit proxy(const real_redis& server, proxy_options options = {});
  proxy(const proxy&) = delete;
  proxy& operator=(const proxy&) = delete;
  ~proxy();

  /// As real_redis::url(), but through here.
  std::string url() const;
  const std::string& socket_path() const;
  std::uint16_t port() const;

  void cut();  ///< ends all connections
  /// As a load balancer or NAT forgets connections: what is sent on the open ones disappears, for good, and nobody is
  /// told; or, of TCP, what the client sends is answered by a reset. New connections are served.
  void forget(bool resets = false);
  void refuse();                  ///< nobody listens any more; open connections stay
  void hold(direction where);     ///< bytes wait: what TCP makes of a partition. Connections can still be made
  void swallow(direction where);  ///< bytes disappear; a connection that lost some is cut by heal()
  void delay(direction where, std::chrono::milliseconds by);
  /// At most so many bytes in one piece; over a unix socket each is read before the next is sent.
  void split(direction where, std::size_t bytes);
  void throttle(direction where, std::size_t bytes_per_second);
  void at_command(rule what);
  void at_reply(rule what);
  void release();  ///< ends hold() and hold_rest, nothing else
  void heal();     ///< ends every fault

  counters count() const;
  /// Every command that has come here is answered; those on forgotten connections do not count.
  bool idle();
  /// False when `condition` was not met within `timeout`.
  bool wait_until(const std::function<bool(const counters&)>& condition,
                  std::chrono::milliseconds timeout = std::chrono::seconds{10}) const;
  bool wait_for_commands(const std::string& name, std::size_t ever,
                         std::chrono::milliseconds timeout = std::chrono::seconds{10}) const;
  bool wait_for_fired(std::size_t ever = 1, std::chrono::milliseconds timeout = std::chrono::seconds{10}) const;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace holdfast::test
