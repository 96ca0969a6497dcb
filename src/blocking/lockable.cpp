// SPDX-License-Identifier: BSL-1.0
#include <holdfast/blocking/lockable.hpp>

#include <utility>
#include <variant>

#include "blocking/access.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking {
namespace {

/// Calls `ask` with the newest hold: a lease or a multi_lease.
template <class T, class Ask>
T of_newest(const std::shared_ptr<detail::lock_core>& core, Ask ask) {
  if (!core) return {};
  return core->newest(
      detail::this_thread(), [&](const detail::any_lease& lease) { return std::visit(ask, lease); }, T());
}

}  // namespace

lockable::lockable(std::shared_ptr<detail::lock_core> core) noexcept : core_(std::move(core)) {}

lockable& lockable::operator=(lockable&& other) noexcept {
  detail::replace(core_, std::move(other.core_));
  return *this;
}

lockable::~lockable() { detail::end(core_); }

// Each keeps the core alive while it waits: the object may end meanwhile.

void lockable::lock() {
  const auto core = detail::access::core(*this);
  core->lock(detail::this_thread());
}

bool lockable::try_lock() { return try_lock_within(milliseconds::zero()); }

bool lockable::try_lock_within(milliseconds wait) {
  const auto core = detail::access::core(*this);
  return core->try_lock(detail::this_thread(), wait).has_value();
}

void lockable::unlock() noexcept {
  if (const auto core = core_) core->unlock(detail::this_thread());
}

bool lockable::held() const noexcept {
  return of_newest<bool>(core_, [](const auto& lease) { return lease.held(); });
}

milliseconds lockable::valid_for() const noexcept {
  return of_newest<milliseconds>(core_, [](const auto& lease) { return lease.valid_for(); });
}

void lockable::check() const {
  const auto core = detail::access::core(*this);
  core->check(detail::this_thread());
}

std::stop_token lockable::get_stop_token() const {
  const auto core = detail::access::core(*this);
  return core->stop_token(detail::this_thread());
}

void lockable::renew(milliseconds ttl) {
  const auto core = detail::access::core(*this);
  core->renew(detail::this_thread(), ttl);
}

void lockable::feed() noexcept {
  if (core_) core_->feed(detail::this_thread());
}

}  // namespace holdfast::blocking
