// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/timers.hpp"
#include "protocol/call.hpp"
#include "protocol/vote/tally.hpp"
#include "redis/outcome.hpp"
#include "sync/claim/terms.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

class script_command;
struct surroundings;
class tally;

/// Who of several primaries votes on who gets a lock.
class electorate {
 public:
  /// Somebody wants the vote of this one: it may have one at present.
  virtual bool may_vote(std::size_t n) = 0;
  /// Why it has none: unreachable, or what somebody must mend.
  virtual redis::failure why_no_vote(std::size_t n) const = 0;
  /// What its marker must be for its vote to count, by the server that is connected now; empty: it needs none.
  virtual std::string marker(std::size_t n) const = 0;
  /// It has answered that it has no vote.
  virtual void has_no_vote(std::size_t n) = 0;
  /// Its present connection has answered this script; and it has now, so.
  virtual bool knows(std::size_t n, const call& script) const = 0;
  virtual void answered(std::size_t n, const call& script, const redis::reply& said) = 0;
  /// How long its last answer took, zero where it did not answer in time; empty: it was not asked yet. And it has now.
  virtual std::optional<nanoseconds> last_took(std::size_t n) const = 0;
  virtual void took(std::size_t n, nanoseconds time) = 0;
  /// Why no vote counts, until somebody mends that: one server is there twice. Empty: each counts.
  virtual const std::string& flaw() const = 0;

 protected:
  ~electorate() = default;
};

/// One command at several independent primaries: a copy for each, all at once. Its sender hears once, as soon as what
/// is still to come changes nothing; what the others say of a lock that it has got it hears later. The copies that were
/// not answered keep the round, and the round keeps its sender, which keeps what the call refers to, except the owner
/// field.
class round final : public std::enable_shared_from_this<round> {
 public:
  round(const surroundings& around, const call& what, std::shared_ptr<script_command> sender);

  /// `timeout`: of each copy.
  void begin(nanoseconds timeout);
  struct withdrawn {
    primary_set may_have_run;  // where it has, or may yet
    bool under_way;            // a copy is, and the sender hears as before
  };
  /// From now on nothing is written any more, so that what the call refers to may go.
  withdrawn withdraw();
  /// Why no majority has answered. Empty: a majority has, or as many primaries have answered others since.
  std::optional<redis::failure> silence();

 private:
  class copy;

  void answered(std::size_t n, const outcome& o);
  void note(std::size_t n, const outcome& o);
  outcome without_vote(std::size_t n) const;
  void tell_if_decided();
  /// What those that have not answered yet are given of it, in all: empty: all.
  std::optional<nanoseconds> patience(const tally& t) const;
  void tell();
  /// None where a majority has said yes or no, or anything that answers an acquire.
  std::optional<redis::failure> failure_by(const tally& t);
  /// With the addresses.
  redis::failure why(const tally& t);
  void tell_late(std::size_t n, const outcome& o);
  /// Where `which(n)`. How many copies are still under way.
  template <class Which>
  std::size_t stop_writing(Which which);

  topology& to_;
  const clock& time_;
  electorate& voters_;
  const owner_field field_;  // the sender may have another by the time that the last copy is written
  const call what_;
  const std::shared_ptr<script_command> sender_;
  bool told_ = false;
  time_point began_{};
  redis::votes votes_;
  std::vector<std::weak_ptr<copy>> copies_;
  timer grace_;  // for those that have not answered yet, where a majority has
};

}  // namespace holdfast::detail
