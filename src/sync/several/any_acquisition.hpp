// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sync/command/environment.hpp"
#include "sync/command/script_command.hpp"
#include "sync/line/wait_notices.hpp"
#include "sync/several/multi_key_request.hpp"

namespace holdfast::detail {

/// One call that wants any one of several locks. It asks once, by one script for each group of keys, one after the
/// other. The scripts leave out locks that this client holds or waits for. Then the call waits in the line of each
/// lock, with an acquisition of its own there.
///
/// The first grant answers the call, and the other acquisitions leave their lines. A grant that may still come to one
/// of them is given back, as for any waiter that leaves. A failure of one lock leaves the others waiting. The call
/// fails if all locks fail, or if the server fails.
class any_acquisition final : public multi_key_request, public script_command {
 public:
  /// `of`: at least one name, all of one kind, without duplicates.
  any_acquisition(environment& env, multi_key_host& names, std::vector<shared_keys> of, lock_request request,
                  lock_handler done);

  void begin() override;
  bool open() const noexcept override { return static_cast<bool>(done_); }
  void cancel() override;
  void fail(error_code error, const char* detail) override;
  void forget_caller() override;

 private:
  bool asks_once() const noexcept { return request.wait == lock_request::wait_mode::once; }
  key_group group_of(const shared_keys& keys) const { return env_.servers.group_of(keys->lock); }
  void order_by_group();
  void ask_next();
  void ask();
  void on_answer(const outcome& outcome) override;
  void on_no_memory() override;
  std::optional<nanoseconds> time_left_for_copies() const override;
  void go_on(const outcome& outcome);
  void wait_for_replicas(std::size_t index, std::optional<std::uint64_t> token, const outcome& outcome);
  void on_replicas(std::size_t index, std::optional<std::uint64_t> token, time_point sent,
                   const std::optional<failure>& too_few);
  void on_granted(std::size_t index, std::optional<std::uint64_t> token, time_point sent);
  void on_failed(const failure& why);
  void give_back(std::span<const shared_keys> locks) noexcept;
  void on_tried();
  void time_out();
  void wait_in_lines();
  lock_answer nothing_had();
  void join_lines();
  void part_ended(const lock_keys& keys, lock_answer answer);
  void give_up(std::optional<failure> why);
  void finish(lock_answer answer);
  void report(const lock_answer& answer) const;
  std::shared_ptr<any_acquisition> self() { return std::static_pointer_cast<any_acquisition>(shared_from_this()); }

  environment& env_;
  multi_key_host& names_;
  const time_point since_;
  std::vector<shared_keys> of_;  // group by group, from a random one on
  bool one_group_ = true;
  lock_handler done_;                 // empty after the answer
  std::size_t next_ = 0;              // index in of_ of the first name that was not considered yet
  std::vector<shared_keys> asked_;    // the names of the last script, all of one group
  std::vector<shared_keys> taken_;    // the names that Redis has called busy
  owner_field field_;                 // of the last script
  bool under_way_ = false;            // a script waits for its answer, or its grant for replicas
  std::size_t pending_giveback_ = 0;  // releases that Redis may not have received; the lines are joined at 0
  timer alarm_;                       // the deadline, until the lines are joined
  noticed_wait noticed_;              // the same

  std::vector<std::shared_ptr<acquisition>> parts_;  // one in each line
  std::size_t waiting_ = 0;                          // parts that have not ended
  bool found_busy_ = false;                          // a group or a part found its locks busy
  std::optional<failure> failed_;                    // of the first group or part that failed
};

}  // namespace holdfast::detail
