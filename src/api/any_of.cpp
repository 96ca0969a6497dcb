// SPDX-License-Identifier: BSL-1.0
#include <holdfast/any_of.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "api/lock_call.hpp"
#include "protocol/kind.hpp"

namespace holdfast {
namespace {

using detail::access;
using detail::lock_call;
using detail::shared_keys;
using locks_list = std::shared_ptr<const std::vector<shared_keys>>;

[[noreturn]] void refuse_mixture(const char* text) {
  throw error(errc::invalid_config, std::string("any of locks of different ") + text);
}

bool of_one_client(const mutex& left, const mutex& right) {
  const auto &one = access::home(left), &other = access::home(right);
  return !one.owner_before(other) && !other.owner_before(one);
}

const mutex& first_of(const std::vector<mutex>& mutexes) {
  if (mutexes.empty()) throw error(errc::invalid_name, "any of no locks");
  if (mutexes.size() > any_of::most)
    throw error(errc::invalid_name,
                "any of " + std::to_string(mutexes.size()) + " locks, more than " + std::to_string(any_of::most));
  return mutexes.front();
}

/// Each once. Null if one was moved from.
locks_list locks_of(const std::vector<mutex>& mutexes) {
  if (!std::all_of(mutexes.begin(), mutexes.end(), [](const mutex& mutex) { return access::keys(mutex) != nullptr; }))
    return nullptr;
  const auto& first = mutexes.front();
  std::vector<shared_keys> all;
  std::unordered_set<std::string_view> names;
  for (const auto& mutex : mutexes) {
    const auto& keys = access::keys(mutex);
    if (!of_one_client(mutex, first)) refuse_mixture("clients");
    if (!keys->of.acquire_any.make) throw error(errc::invalid_config, "any_of takes no " + std::string(keys->of.name));
    if (&keys->of != &access::keys(first)->of) refuse_mixture("kinds");
    if (access::given_owner(mutex) != access::given_owner(first)) refuse_mixture("owners");
    if (names.insert(keys->name).second) all.push_back(keys);
  }
  return std::make_shared<const std::vector<shared_keys>>(std::move(all));
}

/// `T`: lease or optional<lease>.
template <class T>
asio::awaitable<T> acquire(const std::weak_ptr<detail::core>& where, locks_list mutexes, lock_call request) {
  if (!mutexes) return detail::without_client<T>();
  return detail::on_strand<T>(
      where.lock(),
      [mutexes = std::move(mutexes), request](detail::engine& locks, const std::shared_ptr<detail::caller<T>>& to,
                                              const detail::calling_coroutine& by) {
        for (const auto& keys : *mutexes) detail::check_lock(locks, *keys);
        auto place = locks.lock_any(*mutexes, request.request(locks, by), detail::lease_to(to));
        if (place) to->cancels(std::move(place));
      },
      detail::refused_by(where));
}

}  // namespace

any_of::any_of(const std::vector<mutex>& mutexes)
    : core_(access::home(first_of(mutexes))), locks_(locks_of(mutexes)), owner_(access::given_owner(mutexes.front())) {}

asio::awaitable<lease> any_of::lock(lock_options options) const {
  return acquire<lease>(core_, locks_, {owner_, options});
}

asio::awaitable<std::optional<lease>> any_of::try_lock(lock_options options) const {
  return acquire<std::optional<lease>>(core_, locks_, {owner_, options, milliseconds::zero()});
}

asio::awaitable<std::optional<lease>> any_of::try_lock_for(milliseconds wait, lock_options options) const {
  return acquire<std::optional<lease>>(core_, locks_, {owner_, options, wait});
}

}  // namespace holdfast
