// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking/lockable.hpp>
#include <holdfast/export.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace holdfast::blocking {

namespace detail {
struct hold_ending;

/// One hold, for one function. Released at its end, if not before.
class HOLDFAST_EXPORT section {
 public:
  /// Waits for the lock: at most `wait`, or indefinitely if that is empty. Throws as lockable::lock() or
  /// try_lock_for(). Throws lost or closed if the hold is over before the function begins.
  explicit section(lockable& on, std::optional<milliseconds> wait = {});
  /// Waits until the stop is requested.
  section(const std::shared_ptr<lock_core>& core, const std::stop_token& stop);
  section(const section&) = delete;
  section& operator=(const section&) = delete;
  ~section();

  /// False: the lock was not granted in time, or before the stop, and there is nothing to end.
  bool had() const noexcept { return hold_.has_value(); }
  const std::stop_token& stop() const noexcept { return stop_; }
  /// Releases the hold. Throws what the caller of its function is to get. `thrown`: by the function, or null.
  void end(const std::exception_ptr& thrown);

 private:
  section(std::shared_ptr<lock_core> core, std::optional<std::uint64_t> hold);
  void give_back() noexcept;

  const std::shared_ptr<lock_core> core_;
  const std::optional<std::uint64_t> hold_;
  std::shared_ptr<const hold_ending> ended_;
  std::stop_token stop_;
  bool open_;
};

template <class F>
using section_value_t = std::invoke_result_t<F&, std::stop_token>;

/// Calls f in the section, and ends it.
template <class F>
section_value_t<F> run_in(section& in, F& action) {
  using value = section_value_t<F>;
  static_assert(!std::is_reference_v<value>, "what it refers to would be used without the lock: return a value");
  std::exception_ptr thrown;
  if constexpr (std::is_void_v<value>) {
    try {
      std::invoke(action, in.stop());
    } catch (...) {
      thrown = std::current_exception();
    }
    in.end(thrown);
  } else {
    std::optional<value> value;
    try {
      value.emplace(std::invoke(action, in.stop()));
    } catch (...) {
      thrown = std::current_exception();
    }
    in.end(thrown);
    return std::move(*value);
  }
}

}  // namespace detail

/// A blocking lock of any kind, also one that is made in the call: `with_lock(redis.mutex("m"), f)`.
template <class Lock>
concept lockable_object = std::convertible_to<Lock&, lockable&>;

/// Locks, calls `f(std::stop_token)` on this thread, unlocks.
/// | event                                      | result for the caller                                              |
/// |--------------------------------------------|--------------------------------------------------------------------|
/// | f returns v                                | v, after unlock; or the unlock's error: lost, closed, a refusal    |
/// | … and Redis does not confirm the unlock    | v: the section was exclusive to its end; the observer is told      |
/// | f throws X                                 | X, after unlock, whose own error goes to the observer              |
/// | the hold is lost: the token is requested   | lost; the exception of f is nested (std::rethrow_if_nested)        |
/// | the hold is lost, f returns all the same   | lost: the value is dropped, its work may have overlapped           |
/// | the client ends meanwhile                  | as a loss, with closed in place of lost                            |
/// | the lock object ends: destroyed, assigned  | as a loss, with closed in place of lost                            |
/// | f unlocks the lock itself, at any time     | as if it had not                                                   |
/// The token stays requested after the call, and may be kept. Throws as lockable::lock() before f is called.
template <lockable_object Lock, class F>
  requires std::invocable<F&, std::stop_token>
auto with_lock(Lock&& on, F&& action) -> detail::section_value_t<F> {
  detail::section section(on);
  return detail::run_in(section, action);
}

/// The same with a bounded wait, as lockable::try_lock_for(): 0 or less is one attempt. Returns an optional with f's
/// value, or true for an f without one. If the lock was not granted in time, f is not called, and the result is an
/// empty optional, or false. Throws as try_lock_for() before f is called. `wait` does not limit f or the unlock.
template <lockable_object Lock, class Rep, class Period, class F>
  requires std::invocable<F&, std::stop_token>
auto try_with_lock_for(Lock&& on, const std::chrono::duration<Rep, Period>& wait, F&& action) {
  using value = detail::section_value_t<F>;
  detail::section section(on, detail::wait_of(wait));
  if constexpr (std::is_void_v<value>) {
    if (section.had()) detail::run_in(section, action);
    return section.had();
  } else {
    return section.had() ? std::optional<value>(detail::run_in(section, action)) : std::nullopt;
  }
}

}  // namespace holdfast::blocking
