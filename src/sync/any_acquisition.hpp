// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sync/acquisition.hpp"
#include "sync/script_command.hpp"
#include "sync/surroundings.hpp"

namespace holdfast::detail {

class registry;

/// One caller who wants any one of several locks. It asks once for all that nobody of this client has or waits for, by
/// one script; then it waits in the line of each, with an acquisition of its own there. The first that is granted
/// answers it, and the others leave their lines: what may still be granted to one of them is given back, as for any
/// waiter that leaves. It waits on where one of its locks cannot be had, and fails where none can, or the server fails.
class any_acquisition final : public cancellable, public script_command {
 public:
  /// `of`: one at least, all of one kind, none twice.
  any_acquisition(surroundings& around, registry& names, std::vector<shared_keys> of, lock_request request,
                  lock_handler done);

  /// Once.
  void begin();
  /// It was not answered yet.
  bool open() const noexcept { return static_cast<bool>(done_); }
  void cancel() override;
  /// Answers the caller with this error; what may be granted is given back.
  void fail(error_code error, const char* detail);
  /// The engine ends, and nobody is answered.
  void forget_caller();

  const lock_request request;

  /// The registry's, until it is answered.
  struct listing {
    boost::intrusive::list_member_hook<> hook;
    std::shared_ptr<any_acquisition> kept;
  } listed;

 private:
  bool asks_once() const noexcept { return request.wait == lock_request::patience::once; }
  void ask();
  void on_answer(const outcome& o) override;
  void on_granted(std::size_t which, std::optional<std::uint64_t> token, time_point sent);
  void on_failed(const failure& why);
  void give_back(std::span<const shared_keys> which) noexcept;
  void on_tried();
  void time_out();
  void wait_in_lines();
  void join_lines();
  void part_ended(const lock_keys& which, lock_answer a);
  void finish(lock_answer a);
  void report(const lock_answer& a) const;
  std::shared_ptr<any_acquisition> self() { return std::static_pointer_cast<any_acquisition>(shared_from_this()); }

  surroundings& around_;
  registry& names_;
  const time_point since_;
  std::vector<shared_keys> of_;     // from a random one on, so that callers spread
  lock_handler done_;               // empty once it is answered
  std::vector<shared_keys> asked_;  // by the script
  owner_field field_;               // of the script
  bool under_way_ = false;          // the script is
  bool found_taken_ = false;        // Redis has said that all that were asked for are
  std::size_t untried_ = 0;         // releases of which Redis has not heard yet: before that it does not wait in lines
  timer alarm_;                     // its deadline, before it waits in lines

  std::vector<std::shared_ptr<acquisition>> parts_;  // one in each line
  std::size_t waiting_ = 0;                          // of them
  bool in_vain_ = false;                             // one of them had its lock not in time
  lock_answer failed_;                               // of the first of them that failed
};

}  // namespace holdfast::detail
