// SPDX-License-Identifier: BSL-1.0
#include <holdfast/with_lock.hpp>

#include <optional>
#include <utility>

#include "api/core.hpp"
#include "api/guarded_run.hpp"

/// The entry points of with_lock() for each kind of lock: lock, run the body under the lease, unlock.
namespace holdfast::detail {
namespace {

template <class Lock, class Held>
asio::awaitable<void> locked_run(Lock lock, basic_body_ref<Held> body, lock_options options) {
  Held held = co_await lock.lock(options);
  co_await run_guarded(held, body, afterwards::unlocked);
}

template <class Lock, class Held>
asio::awaitable<bool> try_locked_run(Lock lock, milliseconds wait, basic_body_ref<Held> body, lock_options options) {
  std::optional<Held> held = co_await lock.try_lock_for(wait, options);
  if (held) co_await run_guarded(*held, body, afterwards::unlocked);
  co_return held.has_value();
}

template <class Held>
asio::awaitable<void> run_under_held(Held& held, basic_body_ref<Held> body) {
  const auto state = held.state();
  if (state == lease_state::empty) throw error(errc::not_held, "the lease is empty");
  if (state == lease_state::released)
    throw error(errc::not_held, about(access::records(held).front()->of->keys()->name, "released"));
  co_await run_guarded(held, body, afterwards::kept);
}

}  // namespace

asio::awaitable<void> run_locked(mutex lock, body_ref body, lock_options options) {
  return locked_run(std::move(lock), body, options);
}

asio::awaitable<void> run_locked(any_of lock, body_ref body, lock_options options) {
  return locked_run(std::move(lock), body, options);
}

asio::awaitable<void> run_locked(multi_lock lock, multi_body_ref body, lock_options options) {
  return locked_run(std::move(lock), body, options);
}

asio::awaitable<bool> try_run_locked(mutex lock, milliseconds wait, body_ref body, lock_options options) {
  return try_locked_run(std::move(lock), wait, body, options);
}

asio::awaitable<bool> try_run_locked(any_of lock, milliseconds wait, body_ref body, lock_options options) {
  return try_locked_run(std::move(lock), wait, body, options);
}

asio::awaitable<bool> try_run_locked(multi_lock lock, milliseconds wait, multi_body_ref body, lock_options options) {
  return try_locked_run(std::move(lock), wait, body, options);
}

asio::awaitable<void> run_under(lease& held, body_ref body) { return run_under_held(held, body); }

asio::awaitable<void> run_under(multi_lease& held, multi_body_ref body) { return run_under_held(held, body); }

}  // namespace holdfast::detail
