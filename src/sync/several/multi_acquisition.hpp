// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sync/command/environment.hpp"
#include "sync/command/script_command.hpp"
#include "sync/several/multi_key_request.hpp"

namespace holdfast::detail {

/// A lease of each of several locks, in their order. No lease: contention.
struct multi_grant {
  std::vector<std::shared_ptr<lease_record>> leases{};
  bool moved = false;  // a new run of a server has the names: nothing was taken, and the order must be made anew
};
using multi_answer = answer<multi_grant>;
using multi_handler = function<void(multi_answer)>;

/// One call that wants several locks, all or none. It joins the line of one name after the other, always in the same
/// order. When it is the first of each line, it has the turn of each, and one command asks for all:
///   turn of the first → turn of the second → … → acquire_all → granted, each to its line
///                                                            → busy at the i-th: parked in that line
/// A call that finds the i-th lock busy keeps its turns before that one. Later calls of this process wait behind it,
/// and cannot starve it. It leaves the lines after the busy one, because the holder of that lock may want those next.
/// Each line handles its part of the answer like the answer to a command of its own: it parks, polls, repeats, and
/// gives late grants back. Locks that the owner holds already are re-entered before the call waits.
class multi_acquisition final : public multi_key_request, public script_command, private all_or_none_part {
 public:
  /// `of`: at least one name, all of one kind and group, without duplicates. They are in the order of all processes.
  /// `run`: the server's run by which that order was made. Empty: the order does not depend on a run.
  multi_acquisition(environment& env, multi_key_host& names, std::vector<shared_keys> of, std::string run,
                    lock_request request, multi_handler done);

  void begin() override;
  /// A server has a new run, which changes the order of the servers. The call ends as moved.
  void order_changed();
  bool open() const noexcept override { return static_cast<bool>(done_); }
  void cancel() override;
  void fail(error_code error, const char* detail) override;
  void forget_caller() override;

 private:
  /// The stage of one name.
  enum class stage {
    away,   // not in its line
    waits,  // in its line, or at a hold of its owner
    turn,   // the first of its line, which waits for it
    asked,  // the same, and the command is under way, or its line has no answer yet
    had,    // there is a lease
  };
  struct part {
    shared_keys keys;
    stage now = stage::away;
    std::shared_ptr<acquisition> there{};  // null if it is away or had
    std::shared_ptr<lease_record> lease{};
  };

  void part_is_first(std::size_t index) override;
  bool nothing_asked(std::size_t index) const override { return parts_[index].now != stage::asked; }
  std::optional<redis::failure> silence_of_all() const override { return silence(since_); }
  time_point since() const noexcept override { return since_; }

  void join(std::size_t index);
  void leave(part& part);
  void take_turns();
  void ask();
  void on_answer(const outcome& outcome) override;
  void on_no_memory() override;
  std::optional<nanoseconds> time_left_for_copies() const override;
  void on_all(const attempt& attempt, const std::vector<std::uint64_t>& tokens);
  void on_hindered(std::size_t index, const attempt& attempt);
  void part_ended(std::size_t index, lock_answer answer);
  void waits_for(std::size_t index);
  bool moved() const;
  void all_had();
  void time_out();
  void begin_anew();
  void finish(multi_answer answer);
  void report_failure(const multi_answer& answer) const;
  std::shared_ptr<multi_acquisition> self() { return std::static_pointer_cast<multi_acquisition>(shared_from_this()); }

  environment& env_;
  multi_key_host& names_;
  const std::string run_;
  const time_point since_;
  multi_handler done_;  // empty after the answer
  timer deadline_;      // of the call; its parts have none
  std::vector<part> parts_;
  bool busy_ = false;  // a call of a line is under way: changes of parts are looked at afterwards
  bool order_reported_ = false;
  // The command that was sent last.
  std::vector<std::size_t> asked_;
  std::vector<shared_keys> keys_;
  std::vector<owner_field> fields_;
};

}  // namespace holdfast::detail
