// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking/lockable.hpp>
#include <holdfast/export.hpp>

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

/// One hold, for one function. Given back at its end at the latest.
class HOLDFAST_EXPORT section {
 public:
  /// Waits for the lock. Throws as lockable::lock(), and lost or closed where the hold is over before it begins.
  explicit section(lockable& on);
  section(const section&) = delete;
  section& operator=(const section&) = delete;
  ~section();

  const std::stop_token& stop() const noexcept { return stop_; }
  /// Gives the hold back. Throws what its function's caller is to get; `thrown`: by the function, or null.
  void end(const std::exception_ptr& thrown);

 private:
  void give_back() noexcept;

  const std::shared_ptr<lock_core> core_;
  const std::uint64_t hold_;
  std::shared_ptr<const hold_ending> ended_;
  std::stop_token stop_;
  bool open_ = true;
};

}  // namespace detail

/// Locks, calls `f(std::stop_token)` on this thread, unlocks.
/// | what happens                               | what the caller gets                                               |
/// |--------------------------------------------|--------------------------------------------------------------------|
/// | f returns v                                | v, after unlock; or what unlocking says: lost, closed, a refusal   |
/// | … and Redis does not confirm the unlock    | v: the section was exclusive to its end; the observer is told      |
/// | f throws X                                 | X, after unlock, whose own error goes to the observer              |
/// | the hold is lost: the token is requested   | lost; what f threw is nested (std::rethrow_if_nested)              |
/// | the hold is lost, f returns all the same   | lost: the value is dropped, its work may have overlapped           |
/// | the client ends meanwhile                  | as a loss, with closed in place of lost                            |
/// | the lock object ends: destroyed, assigned  | as a loss, with closed in place of lost                            |
/// | f unlocks the lock itself, at any time     | as if it had not                                                   |
/// The token stays requested after the call, and may be kept. Throws as lockable::lock() before f is called.
template <class F>
  requires std::invocable<F&, std::stop_token>
auto with_lock(lockable& on, F&& f) -> std::invoke_result_t<F&, std::stop_token> {
  using value = std::invoke_result_t<F&, std::stop_token>;
  static_assert(!std::is_reference_v<value>, "what it refers to would be used without the lock: return a value");
  detail::section section(on);
  std::exception_ptr thrown;
  if constexpr (std::is_void_v<value>) {
    try {
      std::invoke(f, section.stop());
    } catch (...) {
      thrown = std::current_exception();
    }
    section.end(thrown);
  } else {
    std::optional<value> v;
    try {
      v.emplace(std::invoke(f, section.stop()));
    } catch (...) {
      thrown = std::current_exception();
    }
    section.end(thrown);
    return std::move(*v);
  }
}

}  // namespace holdfast::blocking
