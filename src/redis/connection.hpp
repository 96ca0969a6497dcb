// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/observer.hpp>

#include "base/backoff.hpp"
#include "redis/link.hpp"
#include "redis/outcome.hpp"
#include "redis/pending_queue.hpp"
#include "redis/request.hpp"

namespace holdfast::redis {

/// The outcome of a command that a replica refuses. If a failover is expected, another server may be the primary by
/// now, or this one again soon. The command has not run, so it is answered `unreachable`, as if it was never written.
enum class failover {
  not_expected,  // the reply is handed on
  once_primary,  // expected of a server that was a primary for this client
  expected,
};

/// Whether a server pushes the changes of keys that a connection has read. refused: on this connection; postponed: it
/// was too busy to begin.
enum class push_state { off, on, refused, postponed };

/// The command connection to one server: made at the first command, pipelined, made again after a loss while it is
/// needed.
///
/// A command that was not written yet survives a loss and waits for the next connection. It waits for its timeout, or
/// without a limit if its delivery says waits_for_reply. A cause that does not mend itself (password, TLS, role …)
/// answers it at once. A written command is answered `unconfirmed` when the connection ends.
///
/// Decision: a short lease does not end the connection of all. The timeout of a command answers its sender. The
/// connection is given up only after a silence as long as the timeout of the oldest written command, and at least
/// endpoint::silence_limit. If bytes come but no whole answer, it has four times as long. Otherwise one lease of 10 ms
/// would turn every pause of 20 ms into an outage of all other leases.
///
/// Decision: a silent connection is asked before a command is trusted to it. A load balancer forgets an idle
/// connection without notice; a command that is written to it gets no answer, and its caller has no time left. So
/// after a second of silence, or half of endpoint::health_check_interval, PING goes first (pending_queue::ask). The
/// alternative is to write the command at once and to repeat it if no answer comes. That saves a round trip, but each
/// command would need a rule for the copy that may still run. While watched the connection is asked after each
/// health_check_interval. A connection that ended while idle is no outage until a new one cannot be made. Otherwise
/// five forgotten connections of a red_lock would count as five outages.
///
/// Decision: a demotion behind one address is an outage. A name, a service or a proxy may lead to a server that became
/// a replica. It was a primary for this client, so the setup is right, and another server has its place or soon will.
/// A command that the replica refused is answered `unreachable`. The connection then ends, so that the name is resolved
/// again. A server that was never a primary is a mistake in the setup, and is refused.
///
/// With no command pending and nobody watching, nothing holds the io_context; the connection stays open. Used on the
/// strand only, in a shared_ptr: its own handlers keep it alive. Commands are answered on the strand, never inside a
/// call. After close() nothing is called any more, and pending commands are dropped. A command may therefore refer to
/// the object that calls close().
class connection final : public link {
 public:
  using event_sink = std::function<void(const event&)>;

  connection(const io_services& services, endpoint node, event_sink events);

  ticket execute(request asked);
  /// True: the command was not written and never will be, and nothing is called any more. A command that execute() has
  /// refused (ticket 0) is the exception: its answered() is still to come. False: it was written, or answered already.
  bool withdraw(ticket ticket);
  /// Up, not being asked after a long silence, and not silent for longer than a written command may wait; or being
  /// replaced by a new connection.
  bool answering();
  /// A whole answer has come after `when`: to a command, or to a handshake that succeeded or was refused for good. The
  /// refusal of a server that has no room or is still loading is no answer: that server serves nothing yet.
  bool answered_since(detail::time_point when) const noexcept { return answered_ > when; }
  /// The reason why no answer comes at present, with the node: unreachable, or server_refused where the server refuses
  /// connections.
  failure trouble() const;
  /// The run_id of the server that was connected last; empty: none was, or the server does not tell it.
  const std::string& run() const noexcept { return server_.run; }
  /// outcome::server of its run; 0: unknown.
  std::uint64_t server_number() const noexcept { return number_; }
  /// With once_primary a replica is also an outage when the connection is made, so that commands wait for its end.
  void expect_failover(failover when);
  void keep_watch(bool on);
  /// Has the server push changes to this client of it, its pub/sub connection (CLIENT TRACKING … REDIRECT), also after
  /// a loss of this connection. Empty: to none. A client of another run is not asked for: its number is another's here.
  void redirect_pushes(std::optional<handshake::identity> to);
  /// The same as keep_watch(), for pushes: the end of this connection ends them.
  void keep_for_pushes(bool on);
  /// The reason why the server that is connected now cannot be asked to push: its version. Empty: there is none, or no
  /// connection.
  std::optional<failure> unfit_for_pushes() const;
  push_state pushes() const noexcept { return pushes_; }
  /// Called when pushes() has changed, perhaps inside a call. One listener, which does not close the connection.
  void on_pushes_changed(std::function<void()> listener) { pushes_changed_ = std::move(listener); }
  /// While true nothing is written; a connection that is there is kept.
  void hold(bool on);
  void on_link_change(std::function<void(bool up)> listener) { listener_ = std::move(listener); }
  /// The connection went down under commands, or could not be made, and is not up again. An end while idle says nothing
  /// of the server: a load balancer may have forgotten the connection.
  bool in_outage() const noexcept { return outage_ && !ended_idle_; }
  /// The connection went down for any reason, or could not be made, and is not up again.
  bool is_down() const noexcept { return outage_.has_value(); }
  /// Where the connection is down: makes one attempt to connect, although no command waits for it.
  void try_again() noexcept;
  std::string address() const { return node().to_string(); }
  /// Reports to the observer, once, the server's refusal of a command that fencing off needs. Empty words: no refusal.
  void report_fencing(const std::string& words);
  /// Reports to the observer, once, that the pub/sub connection gets no messages.
  void report_no_messages(const failure& why);
  /// Reports to the observer, once, that the server pushes no changes.
  void report_no_pushes(const failure& why);

 private:
  class push_question;

  bool wanted() const override { return watched() || tries_again_ || !pending_.empty(); }
  bool expects_input() const override { return wanted(); }
  handshake introduce() const override { return {node(), handshake::purpose::commands, predecessor_}; }
  void on_up(const handshake& introduced) override;
  void fill(std::string& out, std::size_t enough, detail::time_point now) override;
  void on_reply(reply&& reply) override;
  void on_settled() override;
  void on_down(const failure& why) override;
  void on_attempt_failed(const failure& why) override;
  bool may_be_replaced() const override { return !pending_.any_written(); }
  void on_replaced() override;
  void on_close() override;

  std::optional<failure> refusal(const request& asked) const;
  bool watched() const noexcept { return watch_ || watch_for_pushes_; }
  void set_watch(bool& watch, bool on);
  /// The connection is watched, and asked by PING after a long silence.
  bool checked() const noexcept;
  bool health_check_due(detail::time_point now) const noexcept;
  std::optional<detail::time_point> next_look();
  void arm();
  void look();
  void look_at(detail::time_point when) noexcept;
  bool tell_overdue(detail::time_point now, detail::each_step& step);
  bool failover_expected() const noexcept {
    return failover_ == failover::expected || (failover_ == failover::once_primary && was_primary_);
  }
  void ask_for_pushes();
  void pushes_answered(long long to, const outcome& outcome);
  failure why_no_pushes(std::string_view asked, const std::string& words) const;
  void refuse_pushes(const failure& why);
  void lose_pushes();
  void set_pushes(push_state state);
  void count(const command& command, detail::time_point sent, detail::time_point now, errc failed) const;
  void report(event_kind kind, error_code reason, const std::string& detail) const;

  event_sink events_;
  std::function<void(bool)> listener_;
  pending_queue pending_;
  detail::timer look_;  // when something may be overdue, or earlier
  bool gave_grace_ = false;
  bool watch_ = false, watch_for_pushes_ = false;
  bool tries_again_ = false;
  failover failover_ = failover::not_expected;
  bool was_primary_ = false;  // ROLE has said so, or an answer has shown it
  bool held_ = false;
  std::optional<handshake::identity> id_;
  std::optional<handshake::identity> predecessor_;  // of the last one that left commands unanswered
  server_facts server_;                             // of the one that was connected last
  std::uint64_t number_ = 0;                        // of its run; 0: unknown
  std::optional<error_code> outage_;                // last reported cause
  bool ended_idle_ = false;                         // the last one, and none could be made or refused since
  std::optional<detail::time_point> replaced_;      // when, if no new one could be made or refused since
  bool fencing_reported_ = false;
  bool no_messages_reported_ = false;
  std::optional<handshake::identity> pushed_to_;
  ticket push_question_ = 0;                   // that has no answer
  const command* push_command_ = nullptr;      // the command of the last question; only compared
  unsigned push_question_ends_ = 0;            // connections in a row that ended before its answer
  detail::retry_backoff push_question_pause_;  // after too many of them
  detail::time_point push_question_from_{};    // no question before
  push_state pushes_ = push_state::off;
  std::function<void()> pushes_changed_;
  bool no_pushes_reported_ = false;
  detail::time_point answered_{};  // last
};

}  // namespace holdfast::redis
