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

/// How a call for several locks ended: with a lease of each, in their order; no error and none: contention.
struct multi_answer {
  error_code error{};
  std::string detail{};
  std::vector<std::shared_ptr<lease_record>> records{};
  bool moved = false;  // another run of a server has the names now: nothing was taken, and the order may be another
};
using multi_handler = function<void(multi_answer)>;

/// One caller who wants several locks, all or none. It takes its turn in the line of one name after the other, always
/// in the same order, and asks for all by one command when it has the turn of each:
///   turn of the first → turn of the second → … → acquire_all → granted, each to its line
///                                                            → busy at the i-th: parked in that line
/// Busy at the i-th it keeps the turns before that one, as the order allows: whoever comes later in this process waits
/// behind it, and cannot starve it. It leaves the lines after it: it must not hinder those who have what it waits for.
/// Each line deals with its part of the answer as with that of a command of its own: it parks, polls, repeats what was
/// not answered, gives back what came too late. What its owner holds already is re-entered, before it waits.
class multi_acquisition final : public multi_key_request, public script_command, private all_or_none_part {
 public:
  /// `of`: one at least, all of one kind and group, none twice, in the order of all processes. `run`: of their server,
  /// by which that order was made; empty: it does not depend on it.
  multi_acquisition(environment& env, multi_key_host& names, std::vector<shared_keys> of, std::string run,
                    lock_request request, multi_handler done);

  void begin() override;
  /// A server has a new run, so the order of the servers is another one: the call ends as moved.
  void order_changed();
  bool open() const noexcept override { return static_cast<bool>(done_); }
  void cancel() override;
  void fail(error_code error, const char* detail) override;
  void forget_caller() override;

 private:
  /// Of one name.
  enum class stage {
    away,   // not in its line
    waits,  // in its line, or at a hold of its owner
    turn,   // its line waits for it
    asked,  // its line waits for it, and the command is under way, or what it said not told yet
    had,    // there is a lease
  };
  struct part {
    shared_keys keys;
    stage now = stage::away;
    std::shared_ptr<acquisition> there{};  // where it is neither away nor had
    std::shared_ptr<lease_record> lease{};
  };

  void part_is_first(std::size_t index) override;
  bool nothing_asked(std::size_t index) const override { return parts_[index].now != stage::asked; }
  std::optional<redis::failure> silence_of_all() const override { return silence(since_); }
  time_point since() const noexcept override { return since_; }

  template <class Act>
  void or_without_memory(Act act);
  void join(std::size_t index);
  void leave(part& part);
  void take_turns();
  void ask();
  void on_answer(const outcome& outcome) override;
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
  multi_handler done_;  // empty once it is answered
  timer deadline_;      // of the call: a part that has its turn, or is re-entered at once, watches none
  std::vector<part> parts_;
  bool busy_ = false;  // joins or tells a line: what it hears of a part meanwhile is looked at afterwards
  bool told_of_order_ = false;
  // The command that was sent last.
  std::vector<std::size_t> asked_;
  std::vector<shared_keys> keys_;
  std::vector<owner_field> fields_;
};

}  // namespace holdfast::detail
