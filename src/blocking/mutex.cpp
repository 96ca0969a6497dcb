// SPDX-License-Identifier: BSL-1.0
#include <holdfast/blocking/mutex.hpp>

#include <utility>
#include <variant>

#include "blocking/access.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking {
namespace {

/// `verb(const holdfast::mutex&)` gives the awaitable of a question; its answer.
template <class Verb>
auto ask(const mutex& of, Verb verb) {
  const auto core = detail::access::core(of);
  return core->home().get(detail::this_thread(), verb(detail::plain(core->underlying())), errc::shutting_down);
}

}  // namespace

mutex::mutex(std::shared_ptr<detail::lock_core> core) noexcept : lockable(std::move(core)) {}

bool mutex::force_unlock() const {
  return ask(*this, [](const holdfast::mutex& mutex) { return mutex.force_unlock(); });
}

bool mutex::is_locked() const {
  return ask(*this, [](const holdfast::mutex& mutex) { return mutex.is_locked(); });
}

unsigned mutex::hold_count() const {
  return ask(*this, [](const holdfast::mutex& mutex) { return mutex.hold_count(detail::this_thread()); });
}

std::optional<lock_holder> mutex::holder() const {
  return ask(*this, [](const holdfast::mutex& mutex) { return mutex.holder(); });
}

std::optional<milliseconds> mutex::remaining_ttl() const {
  return ask(*this, [](const holdfast::mutex& mutex) { return mutex.remaining_ttl(); });
}

const std::string& mutex::name() const noexcept {
  static const std::string none;
  return detail::access::has_core(*this) ? detail::access::core(*this)->name() : none;
}

std::optional<std::uint64_t> fenced_mutex::token() const noexcept {
  if (!detail::access::has_core(*this)) return std::nullopt;
  return detail::access::core(*this)->newest(
      detail::this_thread(), [](const detail::any_lease& taken) { return std::get<lease>(taken).token(); },
      std::optional<std::uint64_t>());
}

std::optional<std::uint64_t> fenced_mutex::last_token() const {
  const auto core = detail::access::core(*this);
  return core->home().get(detail::this_thread(), std::get<holdfast::fenced_mutex>(core->underlying()).last_token(),
                          errc::shutting_down);
}

unsigned fair_mutex::waiters() const {
  const auto core = detail::access::core(*this);
  return core->home().get(detail::this_thread(), std::get<holdfast::fair_mutex>(core->underlying()).waiters(),
                          errc::shutting_down);
}

}  // namespace holdfast::blocking
