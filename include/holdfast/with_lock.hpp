// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/any_of.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <concepts>
#include <optional>
#include <string>
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

/// A view of a body that keeps its own result. It crosses into the compiled half of with_lock. `Held`: lease or
/// multi_lease.
template <class Held>
struct basic_body_ref {
  void* object;
  asio::awaitable<void> (*call)(void* object, Held&);
};
using body_ref = basic_body_ref<lease>;
using multi_body_ref = basic_body_ref<multi_lease>;

HOLDFAST_EXPORT asio::awaitable<void> run_locked(mutex mutex, body_ref body, lock_options options);
HOLDFAST_EXPORT asio::awaitable<void> run_locked(any_of mutex, body_ref body, lock_options options);
HOLDFAST_EXPORT asio::awaitable<void> run_locked(multi_lock mutex, multi_body_ref body, lock_options options);
HOLDFAST_EXPORT asio::awaitable<bool> try_run_locked(mutex mutex, milliseconds wait, body_ref body,
                                                     lock_options options);
HOLDFAST_EXPORT asio::awaitable<bool> try_run_locked(any_of mutex, milliseconds wait, body_ref body,
                                                     lock_options options);
HOLDFAST_EXPORT asio::awaitable<bool> try_run_locked(multi_lock mutex, milliseconds wait, multi_body_ref body,
                                                     lock_options options);
HOLDFAST_EXPORT asio::awaitable<void> run_under(lease& held, body_ref body);
HOLDFAST_EXPORT asio::awaitable<void> run_under(multi_lease& held, multi_body_ref body);

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
inline constexpr bool braced_closure_is_destroyed_twice = true;
#else
inline constexpr bool braced_closure_is_destroyed_twice = false;
#endif

}  // namespace detail

/// A coroutine that works under a lock: awaitable<T> body(lease&), or body(multi_lease&) under a multi_lock.
template <class F, class Held = lease>
concept lock_body = requires(F& body, Held& lease) { typename detail::awaited_t<std::invoke_result_t<F&, Held&>>; };

namespace detail {

template <class F, class Held = lease>
using body_value_t = awaited_t<std::invoke_result_t<F&, Held&>>;
/// The body's value, if it ran.
template <class F, class Held = lease>
using attempted_t =
    std::conditional_t<std::is_void_v<body_value_t<F, Held>>, bool, std::optional<body_value_t<F, Held>>>;

template <class F>
inline constexpr bool passes_body_safely =
    !braced_closure_is_destroyed_twice || std::is_lvalue_reference_v<F> || std::is_trivially_destructible_v<F>;

/// A body and its return value.
template <class F, class Held, class T = body_value_t<F, Held>>
struct kept_body {
  F& body;
  std::optional<T> value{};

  basic_body_ref<Held> ref() {
    return {this, [](void* object, Held& lease) -> asio::awaitable<void> {
              auto& kept = *static_cast<kept_body*>(object);
              kept.value.emplace(co_await kept.body(lease));
            }};
  }
};
template <class F, class Held>
struct kept_body<F, Held, void> {
  F& body;

  basic_body_ref<Held> ref() {
    return {this, [](void* object, Held& lease) -> asio::awaitable<void> {
              return static_cast<kept_body*>(object)->body(lease);
            }};
  }
};

/// The options of a call that starts later: the text of their note may be gone by then.
class kept_options {
 public:
  kept_options(const lock_options& given) : options_(given), note_(given.note) { options_.note = {}; }
  /// Refers to this object.
  lock_options get() const {
    auto options = options_;
    options.note = note_;
    return options;
  }

 private:
  lock_options options_;
  std::string note_;
};

/// `Lock`: mutex or any_of, whose lease is a lease, or multi_lock.
template <class Held, class F, class Lock>
auto locked(Lock mutex, F body, kept_options options) -> asio::awaitable<body_value_t<F, Held>> {
  kept_body<F, Held> kept{body};
  co_await run_locked(std::move(mutex), kept.ref(), options.get());
  if constexpr (!std::is_void_v<body_value_t<F, Held>>) co_return std::move(*kept.value);
}

template <class Held, class F, class Lock>
auto try_locked(Lock mutex, milliseconds wait, F body, kept_options options) -> asio::awaitable<attempted_t<F, Held>> {
  kept_body<F, Held> kept{body};
  [[maybe_unused]] const bool had = co_await try_run_locked(std::move(mutex), wait, kept.ref(), options.get());
  if constexpr (std::is_void_v<body_value_t<F, Held>>)
    co_return had;
  else
    co_return std::move(kept.value);
}

template <class F, class Held>
auto under(Held& held, F body) -> asio::awaitable<body_value_t<F, Held>> {
  kept_body<F, Held> kept{body};
  co_await run_under(held, kept.ref());
  if constexpr (!std::is_void_v<body_value_t<F, Held>>) co_return std::move(*kept.value);
}

}  // namespace detail

/// Locks, runs `body(lease)`, unlocks. The body runs on a strand of the caller's executor, under the lease's owner:
/// nested locks of the name re-enter.
/// | event                                      | result for the caller                                           |
/// |--------------------------------------------|-----------------------------------------------------------------|
/// | body returns v                             | v, after unlock; or what unlock throws: lost, closed, a refusal |
/// | … and unlock is unconfirmed                | v: the section was exclusive to its end; the observer is told   |
/// | body throws X                              | X, after unlock, whose own error goes to the observer           |
/// | hold lost: body gets terminal cancellation | lost; the body's exception is nested (std::rethrow_if_nested)   |
/// | hold lost, body returns all the same       | lost: the value is dropped, its work may have overlapped        |
/// | client closed meanwhile                    | as a loss, with closed in place of lost                         |
/// | cancelled from outside, body stops         | operation_aborted at once; release in the background            |
/// | cancelled from outside, body returns v     | v, after unlock                                                 |
/// | cancelled while acquiring                  | as lock() cancelled; body never starts                          |
/// | body unlocks the lease itself              | as if it had not                                                |
/// `body` is copied or moved into the operation. g++ 12 destroys a closure with a non-trivial capture twice if it is
/// written inside a co_await expression. Give it a name first; a static_assert enforces this.
template <class F>
  requires lock_body<std::decay_t<F>>
auto with_lock(mutex mutex, F&& body, lock_options options = {})
    -> asio::awaitable<detail::body_value_t<std::decay_t<F>>> {
  static_assert(detail::passes_body_safely<F>, "g++ 12 destroys this closure twice: give it a name, and pass the name");
  return detail::locked<lease, std::decay_t<F>>(std::move(mutex), std::forward<F>(body), options);
}

/// The same under any one of several locks. lease::name() of the body's lease says which lock it is.
template <class F>
  requires lock_body<std::decay_t<F>>
auto with_lock(any_of mutex, F&& body, lock_options options = {})
    -> asio::awaitable<detail::body_value_t<std::decay_t<F>>> {
  static_assert(detail::passes_body_safely<F>, "g++ 12 destroys this closure twice: give it a name, and pass the name");
  return detail::locked<lease, std::decay_t<F>>(std::move(mutex), std::forward<F>(body), options);
}

/// The same under several locks, all or none. The body gets the multi_lease. The first hold that is lost cancels the
/// body.
template <class F>
  requires lock_body<std::decay_t<F>, multi_lease>
auto with_lock(multi_lock mutex, F&& body, lock_options options = {})
    -> asio::awaitable<detail::body_value_t<std::decay_t<F>, multi_lease>> {
  static_assert(detail::passes_body_safely<F>, "g++ 12 destroys this closure twice: give it a name, and pass the name");
  return detail::locked<multi_lease, std::decay_t<F>>(std::move(mutex), std::forward<F>(body), options);
}

/// The same with a bounded wait: runs `body` if try_lock_for(wait) grants the lock. 0: no wait. Returns an optional
/// with the body's value, or true for a body without one. Empty, or false, means: the lock was not granted in time and
/// the body never started. Throws as try_lock_for() too: unreachable, server_refused, invalid_wait. `wait` does not
/// limit body or unlock.
template <class F>
  requires lock_body<std::decay_t<F>>
auto try_with_lock_for(mutex mutex, milliseconds wait, F&& body, lock_options options = {})
    -> asio::awaitable<detail::attempted_t<std::decay_t<F>>> {
  static_assert(detail::passes_body_safely<F>, "g++ 12 destroys this closure twice: give it a name, and pass the name");
  return detail::try_locked<lease, std::decay_t<F>>(std::move(mutex), wait, std::forward<F>(body), options);
}

template <class F>
  requires lock_body<std::decay_t<F>>
auto try_with_lock_for(any_of mutex, milliseconds wait, F&& body, lock_options options = {})
    -> asio::awaitable<detail::attempted_t<std::decay_t<F>>> {
  static_assert(detail::passes_body_safely<F>, "g++ 12 destroys this closure twice: give it a name, and pass the name");
  return detail::try_locked<lease, std::decay_t<F>>(std::move(mutex), wait, std::forward<F>(body), options);
}

template <class F>
  requires lock_body<std::decay_t<F>, multi_lease>
auto try_with_lock_for(multi_lock mutex, milliseconds wait, F&& body, lock_options options = {})
    -> asio::awaitable<detail::attempted_t<std::decay_t<F>, multi_lease>> {
  static_assert(detail::passes_body_safely<F>, "g++ 12 destroys this closure twice: give it a name, and pass the name");
  return detail::try_locked<multi_lease, std::decay_t<F>>(std::move(mutex), wait, std::forward<F>(body), options);
}

/// Runs `body(held)` under a lease that the caller holds already. Guards it as above, does not unlock, and sends
/// nothing to Redis. `held` stays the caller's. Do not move it until the awaitable has ended.
/// Throws not_held if it is empty or released. Throws lost or closed if it is lost; then the body never starts.
/// Cancelled from outside: the lease is kept. A loss by the body's end throws lost, as in the table. The caller finds a
/// later loss itself.
template <class F>
  requires lock_body<std::decay_t<F>>
auto with_lock(lease& held, F&& body) -> asio::awaitable<detail::body_value_t<std::decay_t<F>>> {
  static_assert(detail::passes_body_safely<F>, "g++ 12 destroys this closure twice: give it a name, and pass the name");
  return detail::under<std::decay_t<F>>(held, std::forward<F>(body));
}

template <class F>
  requires lock_body<std::decay_t<F>, multi_lease>
auto with_lock(multi_lease& held, F&& body) -> asio::awaitable<detail::body_value_t<std::decay_t<F>, multi_lease>> {
  static_assert(detail::passes_body_safely<F>, "g++ 12 destroys this closure twice: give it a name, and pass the name");
  return detail::under<std::decay_t<F>>(held, std::forward<F>(body));
}

/// Returns codes instead of exceptions, for every awaitable of the library: `auto r = co_await as_result(m.lock());`.
/// Cancellation is operation_aborted. Exceptions that are no system_error pass through.
template <class T>
asio::awaitable<result<T>> as_result(asio::awaitable<T> operation) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(operation);
      co_return result<T>{};
    } else {
      co_return result<T>(boost::system::in_place_value, co_await std::move(operation));
    }
  } catch (const boost::system::system_error& failed) {
    co_return result<T>(boost::system::in_place_error, failed.code());
  }
}

}  // namespace holdfast
