// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/error.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "api/core.hpp"

/// The caller of an operation, as the client's strand sees it: it waits for one answer.
namespace holdfast::detail {

template <class T>
using value_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// `lock`: the text begins with its name. Null: it does not.
inline std::exception_ptr to_exception(const failure& why, const shared_keys& lock) {
  if (why.code == asio::error::operation_aborted) return std::make_exception_ptr(boost::system::system_error(why.code));
  return std::make_exception_ptr(error(why.code, lock ? about(lock->name, why.detail) : why.detail));
}

/// A suspended coroutine that waits for a T. On the strand. The first answer counts, later ones are dropped.
template <class T>
class caller {
 public:
  virtual ~caller() = default;

  /// The answer if the client has ended.
  void ends_as(errc code) noexcept { when_ended_ = code; }
  void client_has_ended() { answer(failure{when_ended_, {}}); }
  /// From now on the text of a failure begins with this lock's name.
  void concerns(shared_keys lock) { lock_ = std::move(lock); }

  void answer(const std::optional<failure>& failed, value_of<T> value = {}) {
    if (!failed) return fail_or_resume(nullptr, std::move(value));
    fail(to_exception(*failed, lock_));
  }
  void fail(std::exception_ptr failure) { fail_or_resume(std::move(failure), value_of<T>()); }

  /// A cancellation goes to `target`. Without a target the caller is answered, and the work goes on in the background.
  void cancels(cancellable_ptr target) {
    if (!answered_) target_ = std::move(target);
  }
  void cancel() {
    if (answered_) return;
    if (const auto target = target_) return target->cancel();
    answer(failure{asio::error::operation_aborted, {}});
  }

 private:
  virtual void resume(std::exception_ptr&& failure, value_of<T>&& value) = 0;

  void fail_or_resume(std::exception_ptr&& failure, value_of<T>&& value) {
    if (std::exchange(answered_, true)) return;
    target_.reset();
    resume(std::move(failure), std::move(value));
  }

  shared_keys lock_;
  cancellable_ptr target_;
  errc when_ended_ = errc::closed;
  bool answered_ = false;
};

/// The facts about the caller of an operation that its coroutine shows.
struct calling_coroutine {
  std::optional<owner> bound;       // the owner bound to its executor
  const void* coroutine = nullptr;  // the thread of its co_spawn; null: unknown
};

}  // namespace holdfast::detail
