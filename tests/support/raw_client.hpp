// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/fd.hpp"

namespace holdfast::test {

class real_redis;

/// One reply of the server.
class value {
 public:
  enum class kind { nil, integer, status, string, error, array };

  kind type = kind::nil;
  long long number = 0;
  std::string text;
  std::vector<value> elements;

  bool is_nil() const noexcept { return type == kind::nil; }
  bool is_error() const noexcept { return type == kind::error; }
  /// The bytes of a status, string or error, an integer in decimal, "(nil)", "[a, b]".
  std::string to_string() const;
  /// An integer, or a string or status that is one. Throws on anything else.
  long long integer() const;
  /// Throws unless it is an array.
  const std::vector<value>& array() const;
  /// The texts of an array's elements.
  std::vector<std::string> strings() const;
  /// The value after `field` in a flat array of pairs (HGETALL); nothing if there is none.
  std::optional<std::string> field(std::string_view name) const;

  friend bool operator==(const value& a, std::string_view b) { return !a.is_nil() && a.to_string() == b; }
  template <std::integral T>
  friend bool operator==(const value& a, T b) {
    return a.type == kind::integer && std::cmp_equal(a.number, b);
  }
};
std::ostream& operator<<(std::ostream&, const value&);

/// An error reply of the server.
struct server_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A blocking connection that shares nothing with the library: plays the peer, reads what the server holds. Any byte in
/// any argument. Every call ends after `patience` with std::runtime_error: a stopped server does not hang a test. One
/// thread at a time.
class raw_client {
 public:
  using milliseconds = std::chrono::milliseconds;

  struct message {
    std::string channel, payload;
  };
  struct monitor_line {
    std::chrono::microseconds at;  // the server's wall clock
    std::string from;              // "unix:/path", "127.0.0.1:1234", "lua"
    std::vector<std::string> argv;
  };

  /// Over its unix socket, with the rig's login.
  explicit raw_client(const real_redis& server);
  /// A path of a unix socket, or a TCP address.
  explicit raw_client(const std::string& unix_path);
  raw_client(const std::string& ip, std::uint16_t port);

  /// Sends a command and returns the reply; an error reply is thrown as server_error.
  template <class... Arguments>
  value operator()(const Arguments&... arguments) {
    return checked(call({text_of(arguments)...}));
  }
  /// The same; an error reply is returned.
  value call(const std::vector<std::string>& argv);

  /// The halves of call(): for pipelines and for commands that are not answered yet.
  void send(const std::vector<std::string>& argv);
  void send_bytes(std::string_view bytes);
  /// Nothing after `timeout`. Throws when the connection ended.
  std::optional<value> receive(milliseconds timeout);

  /// Returns when the server acknowledged. From then on only subscribe, unsubscribe and next_message may be used.
  void subscribe(std::string_view channel);
  void unsubscribe(std::string_view channel);
  std::optional<message> next_message(milliseconds timeout);

  /// From now on only next_monitor_line may be used.
  void monitor();
  std::optional<monitor_line> next_monitor_line(milliseconds timeout);

  /// True once the server closed the connection; waits for it at most `timeout`. What arrives meanwhile is kept.
  bool closed_within(milliseconds timeout);
  void close() noexcept { socket_.reset(); }

  milliseconds patience{10'000};

 private:
  static std::string text_of(std::string_view text) { return std::string(text); }
  template <std::integral T>
  static std::string text_of(T number) {
    return std::to_string(number);
  }
  static value checked(value reply);
  bool fill(std::chrono::steady_clock::time_point deadline);
  value must_receive();

  unique_fd socket_;
  std::string buffer_;
  std::vector<message> early_messages_;  // came while an acknowledgement was awaited
};

/// Parses one reply at the front of `bytes`; its length, or nothing when it is not complete. Throws on what is not
/// RESP2.
std::optional<std::size_t> parse_value(std::string_view bytes, value& out);

}  // namespace holdfast::test
