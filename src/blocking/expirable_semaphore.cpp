// SPDX-License-Identifier: BSL-1.0
// The permits of one object are kept under one owner, which stands for the object and for no thread.
#include <holdfast/blocking/expirable_semaphore.hpp>

#include <utility>
#include <vector>

#include "blocking/access.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking {
namespace {

/// Waits for the answer to a question or a command about all permits.
template <class T>
T ask(const expirable_semaphore& of, asio::awaitable<T> question) {
  const auto core = detail::access::core(of);
  if constexpr (std::is_void_v<T>)
    core->home().run(detail::this_thread(), std::move(question), errc::shutting_down);
  else
    return core->home().get(detail::this_thread(), std::move(question), errc::shutting_down);
}

}  // namespace

expirable_semaphore::expirable_semaphore(std::shared_ptr<detail::lock_core> core, holdfast::expirable_semaphore of)
    : core_(std::move(core)), of_(std::move(of)) {}

expirable_semaphore& expirable_semaphore::operator=(expirable_semaphore&& other) noexcept {
  if (this == &other) return *this;
  detail::replace(core_, std::move(other.core_));
  holder_ = other.holder_;
  of_ = std::move(other.of_);
  return *this;
}

expirable_semaphore::~expirable_semaphore() { detail::end(core_); }

// Each keeps the core alive while it waits: the object may end meanwhile.

void expirable_semaphore::acquire() {
  const auto core = detail::access::core(*this);
  core->lock(holder_);
}

bool expirable_semaphore::try_acquire() { return try_acquire_within(milliseconds::zero()); }

bool expirable_semaphore::try_acquire_within(milliseconds wait) {
  const auto core = detail::access::core(*this);
  return core->try_lock(holder_, wait).has_value();
}

void expirable_semaphore::release(std::ptrdiff_t n) {
  if (n < 0) throw error(errc::invalid_argument, "a release of fewer than 0 permits");
  const auto core = detail::access::core(*this);
  if (core->elsewhere()) return;
  for (; n > 0; --n) {
    // Nobody knows whose permit was lost. A live one that was given back in its place would let one worker too many in.
    auto held = core->take_out_lost_first(holder_);
    if (!held) throw error(errc::not_held, core->about("this object has no permit left"));
    core->give_back(std::move(*held));
  }
}

unsigned expirable_semaphore::available() const { return ask(*this, of_.available()); }
void expirable_semaphore::set_permits(unsigned permits) const { ask(*this, of_.set_permits(permits)); }
unsigned expirable_semaphore::force_release() const { return ask(*this, of_.force_release()); }

mutex expirable_semaphore::as_mutex() const {
  const auto core = detail::access::core(*this);
  return detail::access::make<mutex>(
      std::make_shared<detail::lock_core>(core->homes(), core->underlying(), core->terms(), core->name()));
}

const std::string& expirable_semaphore::name() const noexcept {
  static const std::string none;
  return core_ ? core_->name() : none;
}

}  // namespace holdfast::blocking
