// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/observer.hpp>

#include "redis/link.hpp"
#include "redis/outcome.hpp"
#include "redis/pending_queue.hpp"
#include "redis/request.hpp"

namespace holdfast::redis {

/// Whether a command that a replica refuses was refused for good. Another server may be the primary by now, or this one
/// again soon: then the command is answered `unreachable`, as if it was never written. It has not run.
enum class failover {
  not_expected,  // the reply is handed on
  once_primary,  // expected of a server that was a primary for this client
  expected,
};

/// The command connection to one server: made at the first command, pipelined, made again after a loss while someone
/// needs it.
///
/// A command that was not written yet survives a loss and waits for the next connection, at most for its timeout or, if
/// its sender is patient, for as long as it takes; only a cause that does not mend itself (password, TLS, role …)
/// answers it at once. A written one is answered `unconfirmed` when the connection ends. The connection is given up
/// when no byte came for the timeout of the oldest command that was written (and at least endpoint::patience), or bytes
/// but no whole answer for four times as long. One that goes on answering is never late.
///
/// A connection that received nothing for a second, or for half of endpoint::health_check_interval, is asked by PING
/// before a command is written to it (pending_queue::ask). While watched it is asked after each such interval. An
/// alternative is to write the command at once and to repeat it when no answer comes: it saves the round trip, but each
/// command would need a rule of its own for the copy that may still run. A command that was not written needs none.
///
/// With no command pending and nobody watching, nothing holds the io_context; the connection stays open. Used on the
/// strand only, in a shared_ptr: its own handlers keep it alive. Commands are answered on the strand, never inside a
/// call, and may refer to whoever calls close() before it goes: from close() on nobody is called any more, and what is
/// pending is dropped.
class connection final : public link {
 public:
  using event_sink = std::function<void(const event&)>;

  connection(const io_services& services, endpoint node, event_sink events);

  ticket execute(request asked);
  /// True: the command was not written and never will be. Nothing is called any more, except where execute() has
  /// refused it (ticket 0): then answered() is still to come. False: it was written, or answered already.
  bool withdraw(ticket ticket);
  /// Up, not being asked after a long silence, and not silent for longer than a written command may wait; or being
  /// replaced by a new connection.
  bool answering();
  /// A whole answer has come after `when`: to a command, or one that let us in, or one that keeps us out for good. A
  /// server that has no room or is still loading is as silent as none: our turn comes when it has mended itself.
  bool answered_since(detail::time_point when) const noexcept { return answered_ > when; }
  /// Why no answer comes at present, node and cause: unreachable, or server_refused where the server refuses
  /// connections.
  failure trouble() const;
  /// The run_id of the server that was connected last; empty: none was, or it does not say.
  const std::string& run() const noexcept { return server_.run; }
  /// outcome::server of its run; 0: unknown.
  std::uint64_t server_number() const noexcept { return number_; }
  /// With once_primary a replica is also an outage when the connection is made, so that commands wait for its end.
  void expect_failover(failover when);
  void keep_watch(bool on);
  /// While true nothing is written; a connection that is there is kept.
  void hold(bool on);
  void on_link_change(std::function<void(bool up)> listener) { listener_ = std::move(listener); }
  /// The connection went down under commands, or could not be made, and is not up again. One that ended while it was
  /// idle says nothing of its server: a load balancer may have forgotten it.
  bool in_outage() const noexcept { return outage_ && !ended_idle_; }
  /// The connection went down for whatever reason, or could not be made, and is not up again.
  bool is_down() const noexcept { return outage_.has_value(); }
  std::string address() const { return node().to_string(); }
  /// Tells the observer, the first time, what the server refuses of what fencing off needs; empty: nothing.
  void report_fencing(const std::string& words);
  /// Tells the observer, the first time, that the pub/sub connection gets no messages.
  void report_no_messages(const failure& why);

 private:
  bool wanted() const override { return watch_ || !pending_.empty(); }
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
  /// It is watched, and asked when it is silent for long.
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
  void count(const command& command, detail::time_point sent, detail::time_point now, errc failed) const;
  void report(event_kind kind, errc reason, const std::string& detail) const;

  event_sink events_;
  std::function<void(bool)> listener_;
  pending_queue pending_;
  detail::timer look_;  // when something may be overdue, or earlier
  bool gave_grace_ = false;
  bool watch_ = false;
  failover failover_ = failover::not_expected;
  bool was_primary_ = false;  // ROLE has said so, or an answer has shown it
  bool held_ = false;
  std::optional<handshake::identity> id_;
  std::optional<handshake::identity> predecessor_;  // of the last one that left commands unanswered
  server_facts server_;                             // of the one that was connected last
  std::uint64_t number_ = 0;                        // of its run; 0: unknown
  std::optional<errc> outage_;                      // last reported cause
  bool ended_idle_ = false;                         // the last one, and none could be made or refused since
  std::optional<detail::time_point> replaced_;      // when, if no new one could be made or refused since
  bool fencing_reported_ = false;
  bool no_messages_reported_ = false;
  detail::time_point answered_{};  // last
};

}  // namespace holdfast::redis
