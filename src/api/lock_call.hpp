// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "api/arguments.hpp"
#include "api/on_strand.hpp"

/// What the ways to lock have in common, whatever is locked.
namespace holdfast::detail {

/// A call of lock(), try_lock() or try_lock_for(), as its caller made it.
struct lock_call {
  std::optional<owner> who;  // given to the mutex
  lock_options options;
  lock_request::wait_mode wait = lock_request::wait_mode::forever;
  milliseconds limit{};

  static lock_call forever(std::optional<owner> who, const lock_options& o) { return {who, o}; }
  static lock_call once(std::optional<owner> who, const lock_options& o) {
    return {who, o, lock_request::wait_mode::once};
  }
  static lock_call within(milliseconds limit, std::optional<owner> who, const lock_options& o) {
    const auto wait =
        limit == milliseconds::zero() ? lock_request::wait_mode::once : lock_request::wait_mode::until_deadline;
    return {who, o, wait, limit};
  }

  /// Throws error: invalid_wait, invalid_ttl.
  lock_request request(const engine& locks, const calling_coroutine& by) const {
    check_wait(limit);
    const auto bound = who ? who : by.bound;
    lock_request r{bound.value_or(owner{}), bound.has_value(), resolve_terms(locks.settings(), options), wait};
    r.coroutine = by.coroutine;
    if (wait == lock_request::wait_mode::until_deadline) r.deadline = saturating_add(locks.now(), limit);
    return r;
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
  return [to = std::move(to)](lock_answer a) {
    if (a.error) return to->answer(a.error, a.detail);
    if constexpr (std::is_same_v<T, lease>) {
      to->answer({}, {}, access::make_lease(std::move(a.record)));
    } else {
      to->answer({}, {}, a.record ? T(access::make_lease(std::move(a.record))) : T());
    }
  };
}

}  // namespace holdfast::detail
