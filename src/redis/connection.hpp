// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <holdfast/observer.hpp>

#include "redis/link.hpp"
#include "redis/outcome.hpp"
#include "redis/pending_queue.hpp"

namespace holdfast::redis {

/// The command connection to one server: made at the first command, pipelined, made again after a loss while someone
/// needs it.
///
/// A command that was not written yet survives a loss and waits, until its deadline, for the next connection; only a
/// cause that does not mend itself (password, TLS, role …) answers it at once. A written one is answered `unconfirmed`
/// when the connection ends. The connection is given up when a command found no answer in time and no byte came since
/// (its timeout, at least endpoint::patience), or bytes but no whole answer for four times as long.
///
/// With no command pending and nobody watching, nothing holds the io_context; the connection stays open. Used on the
/// strand only, in a shared_ptr. Handlers run there, never inside a call. The last owner calls close(): from then on
/// nobody is called any more, and what is pending is dropped.
class connection final : public link {
 public:
  using event_sink = std::function<void(const event&)>;

  connection(const services& given, endpoint node, event_sink events);

  void execute(std::string command, detail::time_point deadline, handler done);
  void keep_watch(bool on);
  void on_link_change(std::function<void(bool up)> listener) { listener_ = std::move(listener); }
  /// Tells the observer, the first time, what the server refuses of what fencing off needs; empty: nothing.
  void report_fencing(const std::string& words);

 private:
  bool wanted() const override { return watch_ || !pending_.empty(); }
  bool expects_input() const override { return wanted(); }
  handshake introduce() const override { return {node(), handshake::purpose::commands, predecessor_}; }
  void on_up(const handshake& introduced) override;
  void fill(std::string& out, std::size_t enough) override { pending_.write(out, enough, given().now()); }
  void on_reply(reply r) override;
  void on_settled() override;
  void on_down(const failure& why) override;
  void on_attempt_failed(const failure& why) override;
  void on_close() override;

  std::optional<failure> refusal(detail::time_point deadline, detail::time_point now) const;
  void look_at(detail::time_point when);
  void on_deadline();
  void answer(std::vector<handler> whom, errc code, const std::string& detail);
  void report(event::kind what, errc reason, const std::string& detail) const;

  event_sink events_;
  std::function<void(bool)> listener_;
  pending_queue pending_;
  detail::timer deadline_;  // at the earliest deadline, or earlier
  bool gave_grace_ = false;
  bool watch_ = false;
  std::optional<handshake::identity> id_;
  std::optional<handshake::identity> predecessor_;  // of the last one that left commands unanswered
  std::optional<errc> outage_;                      // last reported cause
  bool fencing_reported_ = false;
};

}  // namespace holdfast::redis
