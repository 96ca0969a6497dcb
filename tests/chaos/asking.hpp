// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

#include "chaos/workload.hpp"

namespace holdfast::chaos {

namespace asio = boost::asio;

lock_options terms_of(const section& s);

mutex mutex_of(const client& redis, const lock_name& lock, const owner& who);
std::vector<mutex> mutexes_of(const client& redis, const std::vector<lock_name>& locks, const owner& who);

/// Several permits of a semaphore, with the calls of a lock.
struct several_permits {
  expirable_semaphore of;
  unsigned number;

  auto lock(lock_options terms) const { return of.acquire(number, terms); }
  auto try_lock(lock_options terms) const { return of.try_acquire(number, terms); }
  auto try_lock_for(milliseconds wait, lock_options terms) const { return of.try_acquire_for(wait, number, terms); }
};

/// Of a mutex, an any_of, a multi_lock or permits.
template <class Lock>
using lease_of = std::conditional_t<std::is_same_v<Lock, multi_lock>, multi_lease, lease>;

/// Asks for a lock as the section has it: once, for a while, or until it comes; cancelled on the way where the section
/// says so, and `cancelling` hears of that before.
template <class Lock>
asio::awaitable<result<std::optional<lease_of<Lock>>>> ask(Lock m, const section& s, std::function<void()> cancelling);

}  // namespace holdfast::chaos
