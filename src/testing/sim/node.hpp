// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "redis/resp.hpp"
#include "testing/sim/commands.hpp"
#include "testing/sim/script_host.hpp"
#include "testing/sim/slot_view.hpp"

namespace holdfast::sim {

/// One Redis server without sockets and without a clock of its own: sessions send commands, replies and messages come
/// out. What it runs of scripts are the texts themselves.
class node {
 public:
  using session_id = long long;  // CLIENT ID; begins anew with a restart
  /// What a session is sent.
  using outlet = std::function<void(session_id, const reply&)>;

  /// `send` gets what a command does to others: messages. `end` hears of sessions that the node ends. `name`: what its
  /// run ids begin with.
  node(std::function<std::int64_t()> wall_clock_us, outlet send, std::function<void(session_id)> end,
       std::string name = {});

  session_id connect();
  void disconnect(session_id);
  bool connected(session_id id) const { return sessions_.contains(id); }
  /// Who is connected.
  std::vector<session_id> sessions() const;
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
  void refuse(refusal why) { data_.refuses = why == refusal::none && primary_ ? refusal::replica : why; }
  void refuse_client_kill(bool on) { refuse_client_kill_ = on; }
  void refuse_info() { refuse_info_ = true; }

  // Its place among others.
  struct peer {
    std::string host;
    std::uint16_t port;
    long long offset = 0;  // of what it has acknowledged
  };
  /// A replica of `primary` from now on, with the data that it has; a primary.
  void follow(peer primary);
  void lead();
  /// It has the data of its primary now.
  void resemble(const keyspace::entries& all, long long offset);
  bool is_replica() const noexcept { return primary_.has_value() || data_.refuses == refusal::replica; }
  /// How many writes its data have seen.
  long long offset() const noexcept { return offset_; }
  bool is_ahead_of(const node& other) const noexcept { return offset_ > other.offset_; }
  /// Those who follow it, for ROLE and INFO.
  std::function<std::vector<peer>()> followers = [] { return std::vector<peer>(); };
  /// Hears of each command or script that wrote.
  std::function<void()> on_write = [] {};
  /// Changes behind its back go to its replicas, and to the clients that track the keys.
  void tampered();

  /// One of a cluster.
  void join(slot_view view) { slots_.emplace(std::move(view)); }
  slot_view& slots() { return *slots_; }
  /// Who listens to sharded messages of slots that are another's by now is told that he does not any more.
  void end_foreign_subscriptions();
  /// Messages of PUBLISH go to all nodes of a cluster.
  std::function<void(std::string_view channel, std::string_view payload)> on_broadcast = [](auto, auto) {};
  /// A message that another node was given.
  void deliver(std::string_view channel, std::string_view payload);

  /// Hears when a tracked key ends, at the end of this millisecond: end_expired() is to be called then. Only the last
  /// announcement counts.
  std::function<void(wall_ms)> on_tracked_end = [](wall_ms) {};
  /// Pushes the tracked keys that have expired.
  void end_expired();

  /// A sentinel, which knows no data: what it says to SENTINEL, and whom it watches.
  void watch_over(std::string name, std::function<reply(const arguments&)> answers);
  /// To who has subscribed.
  void announce(std::string_view channel, std::string_view payload) { deliver(channel, payload); }

  /// The data, behind the back of everybody.
  keyspace& tamper();

  // The onlooker's.
  const keyspace& keys();  // as of now
  /// Of all channels, sharded or not, except that of pushes: clients stay there.
  std::size_t subscriptions() const;
  /// Hears of each script call: its text's digest and its reply.
  std::function<void(std::string_view digest, const arguments&, const reply&)> on_script;
  /// Hears each command about data that is no script, and its reply.
  std::function<void(const arguments&, const reply&)> on_command = [](const auto&, const auto&) {};
  /// Gets each message, also those without a subscriber.
  std::function<void(std::string_view channel, std::string_view payload)> on_publish = [](auto, auto) {};
  /// Hears what a command was refused with, for the state that the server is in.
  std::function<void(std::string_view error)> on_refused = [](std::string_view) {};
  /// Hears whose end a client was refused.
  std::function<void(session_id)> on_kill_refused = [](session_id) {};
  /// Another one after each start.
  std::string run_id() const { return name_ + std::to_string(run_); }

 private:
  using channels = std::set<std::string, std::less<>>;
  /// CLIENT TRACKING: what this session reads is tracked, and a change is pushed to another.
  struct tracking {
    bool opt_in = false;   // what it reads after CLIENT CACHING alone
    bool no_loop = false;  // not what it writes itself
    session_id to = 0;
  };
  struct tracked_key {
    std::set<session_id> by;
    std::optional<keyspace::entry> seen;  // empty: there was none
  };
  struct session {
    channels subscribed{}, sharded{};
    bool asking = false;   // for the next command
    bool caching = false;  // the same
    std::optional<tracking> tracks{};
    bool listens() const noexcept { return !subscribed.empty() || !sharded.empty(); }
  };

  void tick();
  reply refused(std::string_view error);
  reply role() const;
  reply info(const arguments&) const;
  std::string_view mode() const noexcept;
  void wrote();
  std::optional<reply> misdirected(const arguments&) const;
  reply called_by_script(const arguments&);
  reply cluster(const arguments&) const;
  reply answer_as_sentinel(session_id, const std::string& name, const arguments&);
  reply answer(session_id, const std::string& name, const arguments&);
  reply evaluate(const std::string& name, const arguments&);
  reply script(const arguments&);
  reply client(session_id, const arguments&);
  reply track(session&, const arguments&);
  reply cache(session&, const arguments&);
  void access(const std::string& key);
  void note_read(const std::string& key);
  void remember(const std::string& key);
  void push_change(const std::string& key, bool by_command);
  void push_flush();
  void push_to(session_id tracker, const reply& keys);
  void compare_tracked();
  void expect_end(wall_ms end);
  std::vector<reply> subscribe(session&, const std::string& name, const arguments&);
  long long publish(std::string_view channel, std::string_view payload, bool sharded);
  long long subscribers(std::string_view channel, bool sharded) const;
  long long hand_out(std::string_view channel, std::string_view payload, bool sharded);

  std::function<std::int64_t()> wall_clock_us_;
  outlet send_;
  std::function<void(session_id)> end_;
  database data_;
  script_host host_;
  std::map<session_id, session> sessions_;
  session_id last_id_ = 0;
  int run_ = 1;
  bool refuse_client_kill_ = false, refuse_info_ = false;
  std::optional<peer> primary_;  // that it follows
  long long offset_ = 0;
  std::optional<slot_view> slots_;
  std::string watched_;  // by a sentinel
  std::function<reply(const arguments&)> sentinel_;
  bool asking_ = false;  // the command at hand
  bool caching_ = false;
  std::span<const std::string> script_keys_;  // of the script at hand
  session_id current_ = 0;                    // whose command is at hand; 0: of who looks on
  std::map<std::string, tracked_key, std::less<>> tracked_;
  std::optional<wall_ms> next_end_;  // that was announced
  const std::string name_;
};

}  // namespace holdfast::sim
