// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/observer.hpp>

#include "base/fork_guard.hpp"
#include "base/if_memory.hpp"
#include "base/timers.hpp"
#include "redis/endpoint.hpp"
#include "redis/failure.hpp"
#include "redis/handshake.hpp"
#include "redis/io_services.hpp"
#include "redis/link_counts.hpp"
#include "redis/reconnect_backoff.hpp"
#include "redis/resp.hpp"
#include "redis/transport.hpp"

namespace holdfast::redis {

/// A connection that is made when it is wanted, introduced, and made again after a loss: the part that waits.
/// The derived class decides the bytes to write, the meaning of a reply, and when to give a connection up.
///
///   down ── wanted ──> pausing ──> connecting ──> greeting ──> up
///    ^                    │ not wanted   │ failed     │ failed   │ lost
///    └────────────────────┴──────────────┴────────────┴──────────┘      close(): closed, from everywhere
///
/// Decision: the first write at once, later ones together. A command that finds nothing outstanding is written inside
/// the call (flush_alone): waiting would gain nothing. Every other command is written by a handler that is posted once,
/// and takes all that have gathered (flush_soon). So one task sees the bare round trip, and many tasks share writes.
///
/// A connection without memory to read, to write or to watch its answers ends, and is made again. Its commands are
/// `unconfirmed`, as after any other loss.
///
/// Each connection may ask for user and password anew (endpoint::logins). A connection whose login ends is replaced
/// before that: it stops writing, waits for the pending answers, and is made again.
///
/// Used on the strand only. Hooks are called from handlers of the strand and may call close(). Handlers keep the object
/// alive, so the last owner calls close(); after it no hook is called but on_close().
class link : public std::enable_shared_from_this<link> {
 public:
  link(const link&) = delete;
  link& operator=(const link&) = delete;
  virtual ~link() = default;

  void close();
  bool closed() const noexcept { return state_ == state::closed; }

  /// The link leads to another server from now on. A connection that is up ends for this reason; an attempt under way
  /// is given up silently. If it is wanted, the connection to the new server is made at once.
  void retarget(address to, failure why);
  /// The server's name leads to this run of a server. A connection to another run ends, so that the name is resolved
  /// again.
  void follow(std::string_view run);
  /// Called with a failure that does not mend itself. True: it does here, because another server may be found. Commands
  /// that wait for the connection then go on waiting.
  void tolerate(std::function<bool(const failure&)> ends) { tolerated_ = std::move(ends); }
  /// Gives up an attempt to connect that is no longer wanted. Otherwise it holds the io_context until it succeeds or
  /// times out.
  void rest();
  const endpoint& node() const noexcept { return node_; }
  /// The link is not wanted at present. The one listener is called when that begins, perhaps inside a call.
  bool idle() const { return !wanted(); }
  void on_idle(std::function<void()> listener) { idle_ = std::move(listener); }
  /// The number of the present or last connection, counted from 1; 0: there was none.
  std::int64_t times_up() const noexcept { return counts_.times_up(); }

 protected:
  link(const io_services& services, endpoint node);

  /// Whether there should be a connection, and whether something is expected to arrive on it: a read is pending only
  /// then.
  virtual bool wanted() const = 0;
  virtual bool expects_input() const = 0;
  virtual handshake introduce() const = 0;
  virtual void on_up(const handshake& introduced) = 0;
  /// Appends the next commands until there are `enough` bytes; fewer: nothing else is to be written. They are written
  /// at once.
  virtual void fill(std::string& out, std::size_t enough, detail::time_point now) = 0;
  virtual void on_reply(reply&& reply) = 0;
  /// After the replies that arrived together.
  virtual void on_settled() = 0;
  virtual void on_down(const failure& why) = 0;
  virtual void on_attempt_failed(const failure& why) = 0;
  /// The login of the connection ends soon. True: it may be replaced by a new one at once. False: answers are still to
  /// come, and nothing is written until they have.
  virtual bool may_be_replaced() const = 0;
  /// In place of on_down(): the connection was replaced. The new one is made when it is wanted.
  virtual void on_replaced() = 0;
  virtual void on_close() = 0;
  /// False: the connection ends without having served, like the one before it. The next one waits as after a failed
  /// attempt.
  virtual bool was_useful() const { return true; }

  /// To be called when wanted() or expects_input() may have changed.
  void demand_changed() noexcept;
  /// To be called when wanted() may have become false.
  void check_idle() const {
    if (!closed() && idle_ && !wanted()) idle_();
  }
  /// Something is to be written: fill() is called soon, once for all calls until then.
  void flush_soon() noexcept;
  /// The same where nothing else is outstanding: perhaps inside this call.
  void flush_alone(detail::time_point now) noexcept;
  /// Gives the connection up.
  void drop(failure why);
  /// The same for the failure that `cause()` makes, even without memory for its text.
  template <class Cause>
  void drop_for(Cause cause) {
    auto why = without_memory();
    detail::if_memory([&] { why = cause(); });
    drop(std::move(why));
  }
  /// Gives the connection up for lack of memory, but not inside this call.
  void drop_soon() noexcept;

  bool up() const noexcept { return state_ == state::up; }
  /// The connection's name for observers.
  virtual std::string_view role() const noexcept { return "command"; }
  /// The facts for observers about the present or last connection, until retarget(); null: there was none.
  const connection_facts* facts() const noexcept { return counts_.facts(); }
  /// `commands`: the number of written commands without an answer.
  void count_in_flight(std::size_t commands) { counts_.in_flight(commands); }
  /// Bytes have arrived and were not read yet. The server is then not silent; this process was not scheduled in time.
  bool input_waiting();
  /// The last time at which bytes were read, or replies in them handed on.
  detail::time_point last_input() const noexcept { return last_input_; }
  /// The last handshake was with a replica.
  bool met_replica() const noexcept { return met_replica_; }
  /// A load balancer or NAT may have forgotten the connection, because nothing was received for long. PING must be
  /// answered before a command is trusted to it.
  bool doubtful(detail::time_point now) const noexcept { return now - last_input_ >= trusted_silence_; }
  /// The timeout of the answer to PING: a quick end of a dead connection leaves time for the next one to a command that
  /// has only `time_left`. It is at least two round trips, so that a server far away is not given up.
  detail::lease_clock::duration answer_limit(detail::lease_clock::duration time_left) const noexcept;
  /// `took`: the round trip that was measured last.
  void note_round_trip(detail::lease_clock::duration took) noexcept { round_trip_ = took; }
  /// The failure of the last attempt, if it does not mend itself and the next attempt is not allowed yet; else null.
  const failure* standing_failure() const;
  /// The reason why there is no connection at present, or the step that it has reached, for a text.
  std::string why_down() const;

  /// In a child process: the socket is the parent's, and nothing may be sent through it.
  bool inherited() const noexcept { return here_.elsewhere(); }

  const io_services& given() const noexcept { return services_; }
  bool mends_itself(const failure& why) const { return why.mends_itself() || (tolerated_ && tolerated_(why)); }

 private:
  enum class state { down, pausing, connecting, greeting, up, closed };
  struct session;
  using session_ptr = std::shared_ptr<session>;

  void pause_then_connect() noexcept;
  void begin_attempt();
  void on_attempt_timeout();
  const char* phase() const;
  void on_connected(std::shared_ptr<stream> wire, failure why);
  bool log_in();
  failure refused_login(failure why);
  bool replace_if_due(detail::time_point now);
  void watch_replacement() noexcept;
  void greet(const reply& reply);
  void come_up();
  void flush();
  void write_out(detail::time_point now);
  stream::input look(detail::time_point now);
  bool still_usable(detail::time_point now);
  void write_rest(std::size_t from);
  void watch_input() noexcept;
  void read_more();
  void on_written(const session& session, const error_code& failed);
  void on_read(session& session, const error_code& failed, std::size_t size);
  void take_replies(const session_ptr& session);
  void take_replies_soon(const session_ptr& session);
  failure lost(const error_code& failed);
  failure garbled(const session& session) const;
  void tear_down();
  void end(const failure& why);

  const detail::fork_guard here_;
  io_services services_;
  endpoint node_;
  link_counts counts_;
  state state_ = state::down;
  reconnect_backoff backoff_;
  detail::timer timer_;  // pausing: its end; connecting, greeting: connect_timeout
  std::shared_ptr<transport::attempt> attempt_;
  session_ptr session_;
  std::optional<handshake> handshake_;
  bool reading_ = false;
  bool writing_ = false;  // stays true after a failed write: the read tells why
  bool starved_ = false;  // it ends soon
  std::atomic<bool> flush_posted_{false};
  bool login_refused_ = false;  // by the last server that was connected to; node_.logins alone
  bool replacing_ = false;      // nothing is written any more
  detail::time_point replace_at_ = detail::time_point::max();
  detail::timer replacement_;  // while it is wanted
  detail::time_point last_input_{};
  const detail::lease_clock::duration trusted_silence_;
  detail::time_point greeted_{};                // when the handshake began
  detail::lease_clock::duration round_trip_{};  // the last one measured
  std::function<bool(const failure&)> tolerated_;
  std::function<void()> idle_;
  std::optional<failure> standing_failure_;
  std::string last_failure_;
  bool met_replica_ = false;
  std::string run_;  // of the server that was connected last; empty: it does not say
};

}  // namespace holdfast::redis
