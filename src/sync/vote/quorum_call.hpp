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

/// One command at several independent primaries: a copy for each, all at once. Its sender hears once, as soon as what
/// is still to come changes nothing; what the others say of a lock that it has got it hears later. The copies that were
/// not answered keep the round, and the round keeps its sender, which keeps what the call refers to, except the owner
/// field.
class quorum_call final : public script_copies, public std::enable_shared_from_this<quorum_call> {
 public:
  quorum_call(const environment& env, voting& voters, const call& command, std::shared_ptr<script_command> sender);

  void begin(nanoseconds timeout) override;
  withdrawn withdraw() override;
  std::optional<redis::failure> silence() override;

 private:
  class copy;

  void answered(std::size_t index, const outcome& outcome);
  void note(std::size_t index, const outcome& outcome);
  outcome without_vote(std::size_t index) const;
  void tell_if_decided();
  /// What those that have not answered yet are given of it, in all: empty: all.
  std::optional<nanoseconds> silence_limit(const vote_count& count) const;
  void tell();
  /// None where a majority has said yes or no, or anything that answers an acquire.
  std::optional<redis::failure> failure_by(const vote_count& count);
  /// With the addresses.
  redis::failure why(const vote_count& count);
  void tell_late(std::size_t index, const outcome& outcome);
  /// Where `which(n)`. How many copies are still under way.
  template <class Which>
  std::size_t stop_writing(Which matches);

  topology& to_;
  const clock& time_;
  voting& voters_;
  const owner_field field_;  // the sender may have another by the time that the last copy is written
  const call command_;
  const std::shared_ptr<script_command> sender_;
  bool notified_ = false;
  time_point began_{};
  redis::votes votes_;
  std::vector<std::weak_ptr<copy>> copies_;
  timer grace_;  // for those that have not answered yet, where a majority has
};

}  // namespace holdfast::detail
