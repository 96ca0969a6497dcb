// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "integration/redis_rig.hpp"
#include "integration/world.hpp"
#include "lua_scripts.hpp"
#include "support/fake_topology.hpp"

namespace holdfast::test {

namespace lua = detail::lua;

/// What goes to a person or a log.
inline bool printable(std::string_view text) {
  constexpr std::string_view cut = "…";
  for (auto at = text.find(cut); at != text.npos; at = text.find(cut))
    return printable(text.substr(0, at)) && printable(text.substr(at + cut.size()));
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

inline std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

inline std::string bulk(std::string_view text) {
  return '$' + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}
inline std::string message(std::string_view channel, std::string_view payload) {
  return "*3\r\n" + bulk("message") + bulk(channel) + bulk(payload);
}

/// A client of a server that breaks rules. What it does wrong is up to the test; the rest it answers as a server does
/// that has no other client.
struct hostile_world {
  using command = std::vector<std::string>;

  client make(std::chrono::milliseconds connect_timeout = 2s) {
    config c;
    c.url = "redis+unix://" + server.path();
    c.observer = heard;
    c.command_timeout = 100ms;
    c.connect_timeout = connect_timeout;
    c.reconnect_cap = 50ms;
    return client(io.get_executor(), std::move(c));
  }

  std::string respond(std::string_view bytes, std::size_t connection) {
    std::string out;
    for (const auto& argv : decode_commands(bytes)) {
      const auto answer = wrong ? wrong(argv, connection) : std::nullopt;
      out += answer ? *answer : right(argv, connection);
    }
    return out;
  }
  static std::string right(const command& argv, std::size_t connection) {
    if (argv[0] == "CLIENT" && argv[1] == "ID") return ":" + std::to_string(connection + 1) + "\r\n";
    if (argv[0] == "CLIENT") return "+OK\r\n";
    if (argv[0] == "INFO") return bulk("# Server\r\nrun_id:ab12\r\n");
    if (argv[0] == "ROLE") return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
    if (argv[0] == "PING") return "+PONG\r\n";
    if (argv[0] == "SUBSCRIBE") return "*3\r\n" + bulk("subscribe") + bulk(argv[1]) + ":1\r\n";
    if (argv[0] == "UNSUBSCRIBE") return "*3\r\n" + bulk("unsubscribe") + bulk(argv[1]) + ":0\r\n";
    if (is(argv, lua::acquire.sha1)) return "$-1\r\n";
    if (is(argv, lua::renew.sha1)) return "*1\r\n:1\r\n";
    if (is(argv, lua::release.sha1)) return ":0\r\n";
    return ":1\r\n";
  }
  static bool is(const command& argv, std::string_view sha1) { return argv[0] == "EVALSHA" && argv[1] == sha1; }

  template <class T>
  T run(asio::awaitable<T> op) {
    return test::run(io, std::move(op), 5s);
  }
  struct failure {
    error_code code;
    std::string text;
  };
  /// What `op` throws; no code when it does not.
  template <class T>
  failure failure_of(asio::awaitable<T> op) {
    try {
      (void)run(std::move(op));
      return {};
    } catch (const error& e) {
      return {e.code(), e.what()};
    }
  }
  bool all_is_printable() const {
    const auto all = heard->all();
    return std::all_of(all.begin(), all.end(), [](const auto& e) { return printable(e.detail); });
  }

  std::function<std::optional<std::string>(const command&, std::size_t connection)> wrong;
  asio::io_context io;
  std::shared_ptr<recorder> heard = std::make_shared<recorder>();
  scripted_server server{io, [this](std::string_view bytes, std::size_t n) { return respond(bytes, n); }};
};

}  // namespace holdfast::test
