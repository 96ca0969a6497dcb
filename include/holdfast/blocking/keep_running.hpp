// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/blocking/lockable.hpp>
#include <holdfast/blocking/with_lock.hpp>
#include <holdfast/export.hpp>
#include <holdfast/keep_options.hpp>
#include <holdfast/worker_monitor.hpp>

#include <functional>
#include <stop_token>
#include <type_traits>

namespace holdfast::blocking {

namespace detail {

/// A view of the function of a worker.
struct action_ref {
  void* object;
  void (*call)(void* object, std::stop_token);
};
HOLDFAST_EXPORT void run_kept(lockable& on, action_ref action, const std::stop_token& stop,
                              const keep_options& options);

}  // namespace detail

/// The function of a worker: void f(std::stop_token).
template <class F>
concept worker_function = std::is_void_v<std::invoke_result_t<F&, std::stop_token>>;

/// A worker on one of N processes, on this thread: holdfast::keep_running() for threads. Again and again it takes the
/// lock, calls `f(std::stop_token)` as with_lock() does, and gives the lock up.
///
///     std::jthread worker([&](std::stop_token stop) { holdfast::blocking::keep_running(lock, consume, stop); });
///
/// Restart, backoff, errors and the end of the client are as documented there; read "f" for the body. The differences:
/// - The token of f is requested when the hold is lost, when `stop` is requested, and when client or lock object ends.
/// - `stop` requested: it returns as soon as f has. It rethrows what f throws, except operation_aborted. No run
///   follows. A wait for the lock, a pause or a backoff ends at once.
/// - Each hold has the terms of the lock object. If that object ends, it throws closed.
/// - The holds are those of this thread: f may use the lock object, its token() and check(), and lock it again.
///
/// Returns, or throws, as holdfast::keep_running(). `on`: any lock except a multi_lock (invalid_argument). Any thread;
/// it blocks that thread.
template <lockable_object Lock, worker_function F>
void keep_running(Lock&& on, F&& action, std::stop_token stop = {}, keep_options options = {}) {
  using function = std::remove_reference_t<F>;
  const auto call = [](void* object, std::stop_token token) {
    std::invoke(**static_cast<function**>(object), std::move(token));
  };
  auto* pointer = &action;
  detail::run_kept(on, {&pointer, call}, stop, options);
}

}  // namespace holdfast::blocking
