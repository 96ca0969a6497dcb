// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "api/arguments.hpp"
#include "api/on_strand.hpp"

/// The common part of all lock() calls, for each kind of lock object.
namespace holdfast::detail {

/// A call of lock(), try_lock() or try_lock_for(), as its caller made it.
///
/// Decision: the arguments stay as they are until the call is on the strand. The limit counts from there, and there the
/// client's config completes the options. A caller gets a wrong argument as an exception of its co_await.
struct lock_call {
  std::optional<owner> locker;  // the owner given to the mutex
  lock_options options;
  std::optional<milliseconds> limit{};  // empty: lock(). 0: one attempt
  std::uint8_t amount = 1;              // of permits

  bool forever() const noexcept { return !limit; }
  bool once() const noexcept { return limit == milliseconds::zero(); }

  /// Throws error: invalid_wait, invalid_ttl.
  lock_request request(const engine& locks, const calling_coroutine& by) const {
    using wait_mode = lock_request::wait_mode;
    const auto wait = forever() ? wait_mode::forever : once() ? wait_mode::once : wait_mode::until_deadline;
    if (limit) check_wait(*limit);
    const auto bound = locker ? locker : by.bound;
    lock_request request{bound.value_or(owner{}), bound.has_value(), resolve_terms(locks.settings(), options), wait};
    request.amount = amount;
    request.coroutine = by.coroutine;
    if (wait == wait_mode::until_deadline) request.deadline = saturating_add(locks.now(), *limit);
    return request;
  }
};

/// The answer of a lock that was moved from: closed.
template <class T>
asio::awaitable<T> without_client() {
  return on_strand<T>(nullptr, [](engine&, const std::shared_ptr<caller<T>>&, const calling_coroutine&) {});
}

/// `T`: lease or optional<lease>.
template <class T>
lock_handler lease_to(std::shared_ptr<caller<T>> to) {
  return [to = std::move(to)](lock_answer answer) {
    if (answer.failed) return to->answer(answer.failed);
    if constexpr (std::is_same_v<T, lease>) {
      to->answer({}, access::make_lease(std::move(answer.value)));
    } else {
      to->answer({}, answer.value ? T(access::make_lease(std::move(answer.value))) : T());
    }
  };
}

}  // namespace holdfast::detail
