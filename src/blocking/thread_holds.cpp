// SPDX-License-Identifier: BSL-1.0
#include "blocking/thread_holds.hpp"

#include <iterator>
#include <utility>

#include <holdfast/error.hpp>

#include "base/escape.hpp"

namespace holdfast::blocking::detail {

std::string thread_holds::about(std::string_view text) const {
  std::string full = name_.empty() ? "several locks" : "lock " + holdfast::detail::in_quotes(name_);
  return full.append(": ").append(text);
}

void thread_holds::join(const call_ptr& waiting) {
  const std::lock_guard lock(guard_);
  check_alive();
  waiting_.push_back(waiting);
}

void thread_holds::leave(const call_ptr& waiting) noexcept {
  const std::lock_guard lock(guard_);
  std::erase(waiting_, waiting);
}

bool thread_holds::any_of(const owner& thread) const noexcept {
  const std::lock_guard lock(guard_);
  return find(holds_, thread) != nullptr;
}

std::uint64_t thread_holds::keep(const owner& thread, any_lease granted) {
  const std::lock_guard lock(guard_);
  check_alive();
  holds_.push_back({thread, ++last_serial_, std::move(granted)});
  return last_serial_;
}

void thread_holds::put_back(thread_hold&& held) {
  const std::lock_guard lock(guard_);
  check_alive();
  holds_.push_back(std::move(held));
}

std::shared_ptr<const hold_ending> thread_holds::watch(const owner& thread) {
  auto ended = std::make_shared<hold_ending>();
  const std::lock_guard lock(guard_);
  must_find(thread).ended = ended;
  return ended;
}

std::optional<thread_hold> thread_holds::take_out(const owner& thread, std::optional<std::uint64_t> serial) noexcept {
  const std::lock_guard lock(guard_);
  const auto newest = std::find_if(holds_.rbegin(), holds_.rend(), [&](const thread_hold& each) {
    return each.thread == thread && (!serial || each.serial == *serial);
  });
  if (newest == holds_.rend()) return std::nullopt;
  std::optional<thread_hold> taken(std::move(*newest));
  holds_.erase(std::next(newest).base());
  return taken;
}

std::optional<thread_hold> thread_holds::take_out(const owner& thread,
                                                  bool (*first)(const any_lease&) noexcept) noexcept {
  std::optional<std::uint64_t> serial;
  {
    const std::lock_guard lock(guard_);
    for (const auto& each : holds_)
      if (each.thread == thread && first(each.granted)) serial = each.serial;
  }
  return take_out(thread, serial);
}

thread_holds::leftovers thread_holds::abandon() noexcept {
  leftovers all;
  const std::lock_guard lock(guard_);
  abandoned_ = true;
  all.holds.swap(holds_);
  all.waiting.swap(waiting_);
  return all;
}

thread_hold& thread_holds::must_find(const owner& thread) {
  if (auto* const newest = find(holds_, thread)) return *newest;
  check_alive();
  throw error(errc::not_held, about("this thread does not hold it by this object"));
}

void thread_holds::check_alive() const {
  if (abandoned_) throw error(errc::closed, about("its object has ended"));
}

}  // namespace holdfast::blocking::detail
