// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <holdfast/error.hpp>

namespace holdfast::blocking::detail {

namespace asio = boost::asio;

/// A thread that waits for the end of an operation on the io thread.
class call {
 public:
  // The caller.
  /// Rethrows what the operation threw. Throws `ended` if it was given up with its context.
  void wait(errc ended) {
    std::unique_lock lock(guard_);
    ended_.wait(lock, [this] { return over_; });
    const auto outcome = std::exchange(outcome_, std::nullopt);
    if (!outcome) throw error(ended, "the blocking client has ended");
    if (*outcome) std::rethrow_exception(*outcome);
  }

  // The io thread.
  void end(std::optional<std::exception_ptr> outcome) noexcept {
    {
      const std::lock_guard lock(guard_);
      outcome_ = std::move(outcome);
      over_ = true;
    }
    ended_.notify_one();  // after the unlock: the woken thread need not wait again
  }
  /// Also before it has begun.
  void cancel() {
    unwanted_ = true;
    cancelled_.emit(asio::cancellation_type::terminal);
  }
  bool unwanted() const noexcept { return unwanted_; }
  asio::cancellation_slot slot() noexcept { return cancelled_.slot(); }

 private:
  std::mutex guard_;
  std::condition_variable ended_;
  bool over_ = false;
  std::optional<std::exception_ptr> outcome_;  // empty: given up
  // The io thread's.
  asio::cancellation_signal cancelled_;
  bool unwanted_ = false;
};
using call_ptr = std::shared_ptr<call>;

/// The completion handler of an operation. Destroyed instead of called, it gives the call up.
class answer {
 public:
  using cancellation_slot_type = asio::cancellation_slot;

  answer(call_ptr to, asio::io_context& by) noexcept : to_(std::move(to)), by_(by) {}
  answer(answer&&) noexcept = default;
  answer& operator=(answer&&) = delete;
  ~answer() {
    if (to_) to_->end(std::nullopt);
  }
  bool unwanted() const noexcept { return to_->unwanted(); }
  cancellation_slot_type get_cancellation_slot() const noexcept { return to_->slot(); }
  void operator()(std::exception_ptr failed) {
    auto to = std::exchange(to_, nullptr);
    if (!failed) return to->end(nullptr);
    // After the end of the coroutine, which has the exception as well: only one thread has it then. ThreadSanitizer
    // does not see the reference count of an exception in the standard library.
    asio::post(by_, [last = answer(std::move(to), by_), failed = std::move(failed)]() mutable {
      std::exchange(last.to_, nullptr)->end(std::move(failed));
    });
  }

 private:
  call_ptr to_;
  asio::io_context& by_;
};

}  // namespace holdfast::blocking::detail
