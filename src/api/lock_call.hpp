// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "api/arguments.hpp"
#include "api/on_strand.hpp"

/// The common part of all lock() calls, for each kind of lock object.
namespace holdfast::detail {

/// A call of lock(), try_lock() or try_lock_for(), as its caller made it.
struct lock_call {
  std::optional<owner> locker;  // the owner given to the mutex
  lock_options options;
  lock_request::wait_mode wait = lock_request::wait_mode::forever;
  milliseconds limit{};

  static lock_call forever(std::optional<owner> owner, const lock_options& options) { return {owner, options}; }
  static lock_call once(std::optional<owner> owner, const lock_options& options) {
    return {owner, options, lock_request::wait_mode::once};
  }
  static lock_call within(milliseconds limit, std::optional<owner> owner, const lock_options& options) {
    const auto wait =
        limit == milliseconds::zero() ? lock_request::wait_mode::once : lock_request::wait_mode::until_deadline;
    return {owner, options, wait, limit};
  }

  /// Throws error: invalid_wait, invalid_ttl.
  lock_request request(const engine& locks, const calling_coroutine& by) const {
    check_wait(limit);
    const auto bound = locker ? locker : by.bound;
    lock_request request{bound.value_or(owner{}), bound.has_value(), resolve_terms(locks.settings(), options), wait};
    request.coroutine = by.coroutine;
    if (wait == lock_request::wait_mode::until_deadline) request.deadline = saturating_add(locks.now(), limit);
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
    if (answer.failed) return to->answer(answer.failed->code, answer.failed->detail);
    if constexpr (std::is_same_v<T, lease>) {
      to->answer({}, {}, access::make_lease(std::move(answer.value)));
    } else {
      to->answer({}, {}, answer.value ? T(access::make_lease(std::move(answer.value))) : T());
    }
  };
}

}  // namespace holdfast::detail
