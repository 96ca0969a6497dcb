// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "sync/core.hpp"

/// From a coroutine to the client's strand and back.
///
/// The work begins at once where the strand is idle and ours to run, and its outcome is posted to the coroutine's own executor: a caller
/// never resumes inside the call (Boost 1.81 crashes) nor on our strand. No coroutine runs on the strand, and co_spawn is not used to get there, because its cancellation handler
/// refers to a signal that may be gone (Boost 1.81). Nothing on the strand refers to the caller's frame.
namespace holdfast::detail {

template <class T>
using value_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

inline std::exception_ptr to_exception(const error_code& code, const std::string& detail) {
  if (code == asio::error::operation_aborted) return std::make_exception_ptr(boost::system::system_error(code));
  return std::make_exception_ptr(error(code, detail));
}

/// A suspended coroutine that waits for a T. On the strand; answered once, what comes later is dropped.
template <class T>
class caller {
 public:
  virtual ~caller() = default;

  /// From now on the text of a failure begins with this lock's name.
  void concerns(shared_keys lock) { lock_ = std::move(lock); }

  void answer(const error_code& code, const std::string& detail, value_of<T> value = {}) {
    if (!code) return fail_or_resume(nullptr, std::move(value));
    fail(to_exception(code, lock_ ? about(lock_->name, detail) : detail));
  }
  void fail(std::exception_ptr failure) { fail_or_resume(std::move(failure), {}); }

  /// Who is to be told of a cancellation. Without one the caller is answered and the work goes on in the background.
  void cancels(cancellable_ptr what) { target_ = std::move(what); }
  void cancel() {
    if (answered_) return;
    if (const auto target = target_) return target->cancel();
    answer(asio::error::operation_aborted, {});
  }

 private:
  virtual void resume(std::exception_ptr failure, value_of<T> value) = 0;

  void fail_or_resume(std::exception_ptr failure, value_of<T> value) {
    if (std::exchange(answered_, true)) return;
    target_.reset();
    resume(std::move(failure), std::move(value));
  }

  shared_keys lock_;
  cancellable_ptr target_;
  bool answered_ = false;
};

template <class T, class Handler>
class coroutine_caller final : public caller<T> {
 public:
  using slot_type = asio::associated_cancellation_slot_t<Handler>;

  explicit coroutine_caller(Handler handler)
      : home_(asio::get_associated_executor(handler)), slot_(asio::get_associated_cancellation_slot(handler)),
        handler_(std::move(handler)) {}

  const asio::any_io_executor& home() const { return home_; }
  slot_type& slot() { return slot_; }

 private:
  void resume(std::exception_ptr failure, value_of<T> value) override {
    auto on_return = [slot = slot_, handler = std::move(handler_), failure = std::move(failure),
                      value = std::move(value)]() mutable {
      if (slot.is_connected()) slot.clear();  // here, on the caller's own executor: never from the strand
      if constexpr (std::is_void_v<T>) {
        static_cast<void>(value);
        std::move(handler)(std::move(failure));
      } else {
        std::move(handler)(std::move(failure), std::move(value));
      }
    };
    const auto home =
        std::exchange(home_, {});  // not kept: the caller may be gone before the work that it has left behind
    asio::post(home, std::move(on_return));
  }

  asio::any_io_executor home_;
  slot_type slot_;
  Handler handler_;
};

template <class T>
struct completion_signature {
  using type = void(std::exception_ptr, T);
};
template <>
struct completion_signature<void> {
  using type = void(std::exception_ptr);
};

/// `begin(core&, std::shared_ptr<caller<T>>, executor of the coroutine)` runs on the strand of `where`, which it keeps alive while it runs.
/// What it throws, the caller gets. If the client is gone the caller gets closed.
template <class T, class Begin>
asio::awaitable<T> on_strand(std::weak_ptr<core> where, Begin begin) {
  auto initiate = [](auto handler, std::weak_ptr<core> to, Begin start) {
    auto waiting = std::make_shared<coroutine_caller<T, decltype(handler)>>(std::move(handler));
    const auto c = to.lock();
    if (!c) return waiting->answer(errc::closed, {});
    if (waiting->slot().is_connected())
      waiting->slot().assign([to, id = std::weak_ptr<caller<T>>(waiting)](asio::cancellation_type type) {
        const auto client = to.lock();  // the slot may outlive the client, and its context
        if (!client || type == asio::cancellation_type::none) return;
        asio::post(client->strand(), [id] {
          if (const auto still = id.lock()) still->cancel();
        });
      });
    auto run = [c, waiting, start = std::move(start)]() mutable {
      try {
        start(*c, waiting, waiting->home());
      } catch (...) {
        waiting->fail(std::current_exception());
      }
    };
    // Never inside what the engine is doing: an observer may start a coroutine on the strand.
    if (c->strand().running_in_this_thread()) return asio::post(c->strand(), std::move(run));
    asio::dispatch(c->strand(), std::move(run));
  };
  asio::use_awaitable_t<> token;
  return asio::async_initiate<asio::use_awaitable_t<>, typename completion_signature<T>::type>(
      std::move(initiate), token, std::move(where), std::move(begin));
}

}  // namespace holdfast::detail
