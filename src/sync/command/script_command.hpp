// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "protocol/call.hpp"
#include "protocol/vote/vote_count.hpp"
#include "sync/claim/terms.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

struct environment;

/// The vote of a primary that answered after the decision, on a command about this owner field. `never`: the command
/// has not run there and never will.
struct late_vote {
  owner_field field;
  vote cast;
  bool never;
  time_point sent;
};

/// The copies of one command at several primaries. To the sender they look like one server.
class script_copies {
 public:
  /// Sends all copies, each with this timeout.
  virtual void begin(nanoseconds timeout) = 0;
  struct withdrawn {
    primary_set may_have_run;  // the primaries where a copy has run, or still may
    bool under_way;            // a copy is on the wire: the sender is answered as before
  };
  /// Writes nothing any more, so that the operands of the call may end.
  virtual withdrawn withdraw() = 0;
  /// Why no majority has answered. Empty: a majority has answered this command or a later one.
  virtual std::optional<redis::failure> silence() = 0;

 protected:
  ~script_copies() = default;
};

/// Sends one script or command, one copy at a time: by digest, and once by text if the server does not know the script.
///
/// Decision: EVALSHA first, then EVAL, except for an abandoned attempt. A server that answers NOSCRIPT has not run the
/// script, so it gets the text. If the caller was cancelled meanwhile, the release is already on its way, in front of
/// that EVAL. The text would take the lock again after it was given back.
class script_command : public redis::command, public std::enable_shared_from_this<script_command> {
 public:
  /// The operands of `asked` must live until on_answer(), or until withdraw() has returned true.
  void send(topology& to, const call& asked, const delivery& delivery, bool by_text = false);
  /// The same to all servers that decide about the key: one, or several primaries.
  void send(const environment& env, const call& asked, const delivery& delivery);
  /// The same by copies, which must live until answered_by_all().
  void send(const std::shared_ptr<script_copies>& copies, nanoseconds timeout);
  /// The sender does not want the answer any more. It keeps this object during the call, because the executor drops a
  /// withdrawn command. True: the script has not run and never will, and on_answer() is not
  /// called. False: on_answer() is still called, or nothing is under way.
  bool withdraw() { return withdraw_all() == nowhere; }
  /// The same. Returns the primaries where the script has run, or still may.
  primary_set withdraw_all();
  bool under_way() const noexcept { return unanswered_; }
  /// Why the command under way has no answer: its server has been silent since the command was written, or is silent
  /// now. Empty: the server has answered other commands since. A command that was not written yet counts from `asked`.
  /// topology::silence_since() has the decision.
  std::optional<redis::failure> silence(time_point asked) const;
  /// The copies have decided: calls on_answer().
  void answered_by_all(const outcome& outcome);
  /// One more primary has answered after the decision.
  virtual void on_late_vote(std::size_t, const late_vote&) {}
  void written(time_point now, nanoseconds) noexcept override { written_ = now; }

 private:
  virtual void on_answer(const outcome& outcome) = 0;
  virtual void append(const call& command, std::string& out, bool by_text) const { command.append_to(out, by_text); }
  /// The time left for a copy that is sent by its text, if all copies share one time. Empty: each has the time of its
  /// delivery.
  virtual std::optional<nanoseconds> time_left_for_copies() const { return std::nullopt; }
  /// The script may be sent by text now, behind the commands that were sent meanwhile.
  virtual bool may_repeat() const { return true; }

  const redis::command_name* counted_as() const noexcept final { return call_.name(); }
  void append_to(std::string& out) const final { append(call_, out, by_text_); }
  bool shows_primary(const redis::reply& reply) const noexcept final { return call_.shows_primary(reply); }
  void answered(const outcome& outcome) final;
  void execute();

  topology* to_ = nullptr;
  std::weak_ptr<script_copies> copies_;  // under way
  call call_;
  delivery delivery_{};
  redis::ticket ticket_ = 0;
  time_point written_{};  // when the copy under way was written; zero: not yet
  bool unanswered_ = false;
  bool by_text_ = false;
  bool unwanted_ = false;
};

}  // namespace holdfast::detail
