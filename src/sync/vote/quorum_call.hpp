// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/timers.hpp"
#include "protocol/call.hpp"
#include "protocol/vote/vote_count.hpp"
#include "redis/outcome.hpp"
#include "sync/claim/terms.hpp"
#include "sync/command/script_command.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

struct environment;
class vote_count;
class voting;

/// One command at several independent primaries: a copy for each, all sent at once. The sender is notified once, when
/// the missing answers cannot change the result. Later answers go to script_command::on_late_vote().
///
/// Unanswered copies keep the quorum_call alive, and the quorum_call keeps its sender. The sender keeps the operands of
/// the call, except the owner field. The decisions and the state table stand at the head of quorum_call.cpp.
class quorum_call final : public script_copies, public std::enable_shared_from_this<quorum_call> {
 public:
  /// `track`: as delivery::track, of each copy. The outcome is tracked if a majority is.
  quorum_call(const environment& env, voting& voters, const call& command, bool track,
              std::shared_ptr<script_command> sender);

  void begin(nanoseconds timeout) override;
  withdrawn withdraw() override;
  std::optional<redis::failure> silence() override;

 private:
  class copy;

  void answered(std::size_t index, const outcome& outcome);
  void note(std::size_t index, const outcome& outcome);
  outcome without_vote(std::size_t index) const;
  void tell_if_decided();
  /// Time for the missing answers, counted from the beginning. Empty: the whole timeout.
  std::optional<nanoseconds> silence_limit(const vote_count& count) const;
  void tell();
  /// Empty if a majority has voted yes or no. For an acquire, a majority of mixed votes is an answer as well.
  std::optional<redis::failure> failure_by(const vote_count& count);
  /// The failure, with the address of each primary.
  redis::failure why(const vote_count& count);
  void tell_late(std::size_t index, const outcome& outcome);
  /// Withdraws the copies for which `matches(n)`. Returns the number of copies that are still under way.
  template <class Predicate>
  std::size_t stop_writing(Predicate matches);

  topology& to_;
  const clock& time_;
  voting& voters_;
  const owner_field field_;  // a copy: the sender may have a new field before the last copy is written
  const call command_;
  const bool track_;
  const std::shared_ptr<script_command> sender_;
  bool notified_ = false;
  time_point began_{};
  redis::votes votes_;
  std::vector<std::weak_ptr<copy>> copies_;
  timer grace_;  // for the missing answers, after a majority has answered
};

}  // namespace holdfast::detail
