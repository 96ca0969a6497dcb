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

/// The ballot of a primary that was slower than the others, on a command about this owner field. never: it has not
/// done the command, and never will.
struct late_vote {
  owner_field field;
  vote cast;
  bool never;
  time_point sent;
};

/// The copies of one command at several primaries, which answer as one server.
class script_copies {
 public:
  /// `timeout`: of each copy.
  virtual void begin(nanoseconds timeout) = 0;
  struct withdrawn {
    primary_set may_have_run;  // where it has, or may yet
    bool under_way;            // a copy is, and the command is answered as before
  };
  /// From now on nothing is written any more, so that what the call refers to may go.
  virtual withdrawn withdraw() = 0;
  /// Why no majority has answered. Empty: a majority has, or as many primaries have answered others since.
  virtual std::optional<redis::failure> silence() = 0;

 protected:
  ~script_copies() = default;
};

/// The sender of a script: sends it by digest, and once by text where the server does not know it. One copy at a time.
class script_command : public redis::command, public std::enable_shared_from_this<script_command> {
 public:
  /// What `asked` refers to must live until on_answer(), or until withdraw() has returned true.
  void send(topology& to, const call& asked, const delivery& delivery, bool by_text = false);
  /// The same to all servers that answer it.
  void send(const environment& env, const call& asked, const delivery& delivery);
  /// The same by copies, which must live until answered_by_all().
  void send(const std::shared_ptr<script_copies>& copies, nanoseconds timeout);
  /// The sender wants the answer no more. True: the script has not run and never will, and on_answer() is not called.
  /// False: on_answer() is still to come, or nothing is under way.
  bool withdraw() { return withdraw_all() == nowhere; }
  /// The same. Where it has run, or may yet.
  primary_set withdraw_all();
  bool under_way() const noexcept { return unanswered_; }
  /// Why the command under way has no answer, if its server has said nothing since the command was written, or says
  /// nothing at present. Empty: the server has answered others since. A command that was not written yet counts from
  /// `asked`.
  std::optional<redis::failure> silence(time_point asked) const;
  /// All that matters of its copies is known.
  void answered_by_all(const outcome& outcome);
  /// What one more primary has said after that.
  virtual void on_late_vote(std::size_t, const late_vote&) {}
  void written(time_point now, nanoseconds) noexcept override { written_ = now; }

 private:
  virtual void on_answer(const outcome& outcome) = 0;
  virtual void append(const call& command, std::string& out, bool by_text) const { command.append_to(out, by_text); }
  /// The time left for a copy that is sent by its text, if all copies share one time. Empty: each has the time of its
  /// delivery.
  virtual std::optional<nanoseconds> time_left_for_copies() const { return std::nullopt; }
  /// It may be sent by its text now, after whatever was sent meanwhile.
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
  redis::ticket asked_ = 0;
  time_point written_{};  // the copy that is under way; zero: it was not yet
  bool unanswered_ = false;
  bool by_text_ = false;
  bool unwanted_ = false;
};

}  // namespace holdfast::detail
