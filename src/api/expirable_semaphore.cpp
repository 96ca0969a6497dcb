// SPDX-License-Identifier: BSL-1.0
#include <holdfast/expirable_semaphore.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <holdfast/client.hpp>

#include "api/lock_call.hpp"
#include "protocol/permits/permit_lock.hpp"

namespace holdfast {
namespace {

using detail::answer;
using detail::caller;
using detail::calling_coroutine;
using detail::core;
using detail::engine;
using detail::lock_call;
using detail::on_lock;
using detail::shared_keys;

std::uint32_t total_of(const shared_keys& keys) { return static_cast<const detail::permit_keys&>(*keys).total; }

/// `T`: lease or optional<lease>.
template <class T>
asio::awaitable<T> acquire_permits(const std::weak_ptr<core>& where, shared_keys keys, unsigned n,
                                   const lock_options& options, std::optional<milliseconds> limit = {}) {
  // A number out of range is refused below, before anything is asked.
  const auto amount = static_cast<std::uint8_t>(std::min(n, expirable_semaphore::most_at_once + 1));
  lock_call request({}, options, limit, amount);
  return on_lock<T>(where, std::move(keys),
                    [n, request](engine& locks, const shared_keys& keys, const std::shared_ptr<caller<T>>& to,
                                 const calling_coroutine& by) {
                      detail::check_number("an acquire", n,
                                           std::min(expirable_semaphore::most_at_once, total_of(keys)));
                      detail::begin_lock(locks, keys, request, to, by);
                    });
}

}  // namespace

expirable_semaphore::expirable_semaphore(std::weak_ptr<core> core, shared_keys keys)
    : core_(std::move(core)), keys_(std::move(keys)) {}

asio::awaitable<lease> expirable_semaphore::acquire(unsigned n, lock_options options) const {
  return acquire_permits<lease>(core_, keys_, n, options);
}

asio::awaitable<std::optional<lease>> expirable_semaphore::try_acquire(unsigned n, lock_options options) const {
  return acquire_permits<std::optional<lease>>(core_, keys_, n, options, milliseconds::zero());
}

asio::awaitable<std::optional<lease>> expirable_semaphore::try_acquire_for(milliseconds wait, unsigned n,
                                                                           lock_options options) const {
  return acquire_permits<std::optional<lease>>(core_, keys_, n, options, wait);
}

asio::awaitable<unsigned> expirable_semaphore::available() const {
  return on_lock<unsigned>(
      core_, keys_,
      [](engine& engine, const shared_keys& keys, const std::shared_ptr<caller<unsigned>>& to, const auto&) {
        engine.ask().semaphore(keys, [to](answer<detail::semaphore_state>&& state) {
          to->answer(state.failed,
                     static_cast<unsigned>(std::clamp<long long>(state.value.left, 0, detail::most_permits)));
        });
      });
}

asio::awaitable<void> expirable_semaphore::set_permits(unsigned permits) const {
  return on_lock<void>(
      core_, keys_,
      [permits](engine& engine, const shared_keys& keys, const std::shared_ptr<caller<void>>& to, const auto&) {
        detail::check_number("a number of permits", permits, detail::most_permits);
        engine.set_permits(keys, permits, [to](const std::optional<detail::failure>& failed) { to->answer(failed); });
      });
}

asio::awaitable<unsigned> expirable_semaphore::force_release() const {
  return on_lock<unsigned>(
      core_, keys_,
      [](engine& engine, const shared_keys& keys, const std::shared_ptr<caller<unsigned>>& to, const auto&) {
        engine.force_unlock(keys, [to](answer<unsigned>&& taken) { to->answer(taken.failed, taken.value); });
      });
}

mutex expirable_semaphore::as_mutex() const { return detail::access::make_mutex(core_, keys_); }

const std::string& expirable_semaphore::name() const noexcept {
  static const std::string none;
  return keys_ ? keys_->name : none;
}

expirable_semaphore client::expirable_semaphore(std::string_view name, unsigned permits) const {
  return detail::access::make_semaphore(
      core_, std::make_shared<const detail::permit_keys>(detail::permit_lock, name,
                                                         core_ ? core_->naming() : detail::naming(), permits));
}

}  // namespace holdfast
