// SPDX-License-Identifier: BSL-1.0
#include <holdfast/blocking/several.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "blocking/access.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking {
namespace {

/// `Lock`: holdfast::multi_lock or holdfast::any_of. The calls run on the thread of the first one's client.
template <class Lock>
std::shared_ptr<detail::lock_core> core_of(const mutex_list& mutexes, lock_options terms) {
  std::vector<std::shared_ptr<detail::io_thread>> homes;
  std::vector<holdfast::mutex> locks;
  for (const mutex& mutex : mutexes) {
    const auto& core = detail::access::core(mutex);
    locks.push_back(detail::plain(core->underlying()));
    for (const auto& home : core->homes())
      if (std::find(homes.begin(), homes.end(), home) == homes.end()) homes.push_back(home);
  }
  return std::make_shared<detail::lock_core>(std::move(homes), Lock(locks), terms, std::string());
}

}  // namespace

multi_lock::multi_lock(const mutex_list& mutexes, lock_options terms)
    : lockable(core_of<holdfast::multi_lock>(mutexes, terms)) {}

any_of::any_of(const mutex_list& mutexes, lock_options terms) : lockable(core_of<holdfast::any_of>(mutexes, terms)) {}

std::string any_of::name() const {
  if (!detail::access::has_core(*this)) return {};
  return detail::access::core(*this)->newest(
      detail::this_thread(), [](const detail::any_lease& taken) { return std::get<lease>(taken).name(); },
      std::string());
}

}  // namespace holdfast::blocking
