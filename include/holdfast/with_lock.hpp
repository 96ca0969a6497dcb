// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>

#include <boost/asio/awaitable.hpp>
#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

namespace holdfast {
namespace asio = boost::asio;

namespace detail {

template <class T>
struct awaited;
template <class T>
struct awaited<asio::awaitable<T>> {
  using type = T;
};
template <class T>
using awaited_t = typename awaited<T>::type;

/// A view of a body that keeps its result to itself: what crosses into the compiled half of with_lock.
struct body_ref {
  void* object;
  asio::awaitable<void> (*call)(void* object, lease&);
};

HOLDFAST_EXPORT asio::awaitable<void> run_locked(mutex m, body_ref body, lock_options options);

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
inline constexpr bool braced_closure_is_destroyed_twice = true;
#else
inline constexpr bool braced_closure_is_destroyed_twice = false;
#endif

}  // namespace detail

/// A coroutine that works under a lock: awaitable<T> body(lease&).
template <class F>
concept lock_body = requires(F& body, lease& l) { typename detail::awaited_t<std::invoke_result_t<F&, lease&>>; };

namespace detail {

template <class F>
auto locked(mutex m, F body, lock_options options) -> std::invoke_result_t<F&, lease&> {
  using value_type = awaited_t<std::invoke_result_t<F&, lease&>>;
  if constexpr (std::is_void_v<value_type>) {
    const body_ref ref{&body,
                       [](void* object, lease& l) -> asio::awaitable<void> { return (*static_cast<F*>(object))(l); }};
    co_await run_locked(std::move(m), ref, options);
  } else {
    struct frame {
      F& body;
      std::optional<value_type> value;
    } kept{body, std::nullopt};
    const body_ref ref{&kept, [](void* object, lease& l) -> asio::awaitable<void> {
                         auto& into = *static_cast<frame*>(object);
                         into.value.emplace(co_await into.body(l));
                       }};
    co_await run_locked(std::move(m), ref, options);
    co_return std::move(*kept.value);
  }
}

}  // namespace detail

/// Locks, runs `body(lease)` on a strand of the caller's executor under the lease's owner (nested locks of the name
/// re-enter), unlocks.
/// | what happens                              | what the caller gets                                              |
/// |-------------------------------------------|-------------------------------------------------------------------|
/// | body returns v                            | v, after unlock; unconfirmed or lost if unlock says so            |
/// | body throws X                             | X, after unlock, whose own error goes to the observer             |
/// | hold lost: body gets terminal cancellation | lost; what the body threw is nested (std::rethrow_if_nested)     |
/// | hold lost, body returns all the same      | lost: the value is dropped, its work may have overlapped          |
/// | cancelled from outside, body stops        | operation_aborted at once; release in the background              |
/// | cancelled from outside, body returns v    | v, after unlock                                                   |
/// | cancelled while acquiring                 | as lock() cancelled; body never starts                            |
/// | body unlocks the lease itself             | as if it had not                                                  |
/// `body` is copied or moved into the operation. g++ 12 destroys a closure with a non-trivial capture twice when it is
/// written inside a co_await expression: name it first; a static_assert says so.
template <class F>
  requires lock_body<std::decay_t<F>>
auto with_lock(mutex m, F&& body, lock_options options = {}) -> std::invoke_result_t<std::decay_t<F>&, lease&> {
  static_assert(!detail::braced_closure_is_destroyed_twice || std::is_lvalue_reference_v<F> ||
                    std::is_trivially_destructible_v<std::decay_t<F>>,
                "g++ 12 destroys this closure twice: give it a name, and pass the name");
  return detail::locked<std::decay_t<F>>(std::move(m), std::forward<F>(body), options);
}

/// Codes instead of exceptions, for every awaitable of the library: `auto r = co_await as_result(m.lock());`.
/// Cancellation is operation_aborted; exceptions that are no system_error pass through.
template <class T>
asio::awaitable<result<T>> as_result(asio::awaitable<T> a) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(a);
      co_return result<T>{};
    } else {
      co_return result<T>(boost::system::in_place_value, co_await std::move(a));
    }
  } catch (const boost::system::system_error& failed) {
    co_return result<T>(boost::system::in_place_error, failed.code());
  }
}

}  // namespace holdfast
