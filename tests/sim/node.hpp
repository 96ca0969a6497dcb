// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "redis/resp.hpp"
#include "sim/commands.hpp"
#include "sim/script_host.hpp"

namespace holdfast::sim {

/// One Redis server without sockets and without a clock of its own: sessions send commands, replies and messages come
/// out. What it runs of scripts are the texts themselves.
class node {
 public:
  using session_id = long long;  // CLIENT ID; begins anew with a restart
  /// What a session is sent.
  using outlet = std::function<void(session_id, const reply&)>;

  /// `send` gets what a command does to others: messages. `end` hears of sessions that the node ends.
  node(std::function<std::int64_t()> wall_clock_us, outlet send, std::function<void(session_id)> end);

  session_id connect();
  void disconnect(session_id);
  bool connected(session_id id) const { return sessions_.contains(id); }
  /// The replies to one command of a session: several for SUBSCRIBE with several channels, none for one that ends its
  /// own session.
  std::vector<reply> execute(session_id, const arguments&);
  /// The same without a session: for who looks on, or tampers.
  reply execute(const arguments&);

  // Faults.
  /// False: there was none.
  bool forget_scripts() { return host_.forget_all(); }
  /// Ends every session, without a word to `end`; keeps the data or loses them.
  void restart(bool keep_data);
  void refuse(refusal why) { data_.refuses = why; }
  void refuse_client_kill(bool on) { refuse_client_kill_ = on; }

  /// The data, behind the back of everybody.
  keyspace& tamper();

  // The onlooker's.
  const keyspace& keys();             // as of now
  std::size_t subscriptions() const;  // of all channels
  /// Hears of each script call: its text's digest and its reply.
  std::function<void(std::string_view digest, const arguments&, const reply&)> on_script;
  /// Hears each command about data that is no script, and its reply.
  std::function<void(const arguments&, const reply&)> on_command = [](const auto&, const auto&) {};
  /// Hears each message, whoever has subscribed.
  std::function<void(std::string_view channel, std::string_view payload)> on_publish = [](auto, auto) {};
  /// Hears what a command was refused with, for the state that the server is in.
  std::function<void(std::string_view error)> on_refused = [](std::string_view) {};
  /// Hears whose end a client was refused.
  std::function<void(session_id)> on_kill_refused = [](session_id) {};
  bool is_replica() const noexcept { return data_.refuses == refusal::replica; }

 private:
  struct session {
    std::set<std::string, std::less<>> channels;
  };

  void tick();
  reply refused(std::string_view error);
  reply role() const;
  reply answer(session_id, const std::string& name, const arguments&);
  reply evaluate(const std::string& name, const arguments&);
  reply script(const arguments&);
  reply client(session_id, const arguments&);
  std::vector<reply> subscribe(session&, const arguments&, bool on);
  long long publish(std::string_view channel, std::string_view payload);

  std::function<std::int64_t()> wall_clock_us_;
  outlet send_;
  std::function<void(session_id)> end_;
  database data_;
  script_host host_;
  std::map<session_id, session> sessions_;
  session_id last_id_ = 0;
  int run_ = 1;
  bool refuse_client_kill_ = false;
};

}  // namespace holdfast::sim
