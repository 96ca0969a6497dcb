// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/io_context.hpp>
#include <utility>

#include "base/function.hpp"

namespace holdfast::detail {

/// The last step of a handler that has entered the strand and left it again.
///
/// Decision: the first answer of a read goes home in the handler of that read. A handler of its own would pass the
/// scheduler once more, and Asio asks the kernel for other events in between. Each further answer has its own handler,
/// so that no coroutine holds up another. The strand is left before, so that no coroutine runs on it.
class last_step {
 public:
  using executor = boost::asio::io_context::executor_type;

  /// In a handler of this executor. No caller is on the stack.
  explicit last_step(const executor& of) noexcept : of_(of), outer_(std::exchange(present_, this)) {}
  last_step(const last_step&) = delete;
  last_step& operator=(const last_step&) = delete;
  ~last_step() { leave(); }

  // Asio keeps an exception of the strand until the handler has ended, so the step runs also then.
  void run() {
    leave();
    if (const auto step = std::move(step_)) step();
  }

  /// True: `step` was taken. It runs on `where` in this thread, when the strand is left.
  template <class Step>
  static bool take(const executor& where, Step& step) {
    if (!present_ || present_->step_ || present_->of_ != where) return false;
    present_->step_ = std::move(step);
    return true;
  }

 private:
  void leave() noexcept { present_ = outer_; }

  const executor of_;
  last_step* const outer_;
  function<void()> step_;
  static inline thread_local last_step* present_ = nullptr;
};

}  // namespace holdfast::detail
