// SPDX-License-Identifier: BSL-1.0
#include "base/asio_timers.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <boost/system/system_error.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/if_memory.hpp"
#include "base/on_its_way.hpp"

namespace holdfast::detail {

namespace {

constexpr auto linger = std::chrono::milliseconds{1};

int make_timerfd() {
  const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0) throw boost::system::system_error(errno, boost::system::system_category(), "timerfd_create");
  return fd;
}

}  // namespace

asio_timers::asio_timers(const direct_strand& strand, timer_queue::action on_wake)
    : strand_(strand), descriptor_(strand.any().get_inner_executor(), make_timerfd()), on_wake_(std::move(on_wake)) {}

struct asio_timers::wake {
  using allocator_type = source_allocator<std::byte, handler_block>;
  allocator_type get_allocator() const noexcept { return allocator_type(self->room_); }

  // Below the strand.
  void operator()(const boost::system::error_code& failed) {
    const auto keep = self;
    if (!failed) keep->strand_.dispatch(std::move(*this));
  }
  void operator()() {
    coming.arrived();
    self->woken();
  }

  std::shared_ptr<asio_timers> self;
  on_its_way coming;
};

void asio_timers::schedule(timer_queue::place& place, time_point when, timer_queue::action act) noexcept {
  queue_.add(place, when, std::move(act));
  if ((when < wake_ || !waiting_) && descriptor_.is_open()) wake_at(*queue_.earliest());
}

void asio_timers::cancel(timer_queue::place& place) noexcept {
  queue_.remove(place);
  if (!queue_.empty() || !waiting_) return;
  if (const auto soon = lease_clock::now() + linger; soon < wake_) wake_at(soon);
}

void asio_timers::close() {
  queue_.clear();
  boost::system::error_code ignored;
  descriptor_.close(ignored);
}

void asio_timers::wake_at(time_point when) {
  if (here_.elsewhere()) return;
  wait();
  wake_ = when;
  const auto since = std::max(when.time_since_epoch(), lease_clock::duration{1});  // 0 would disarm it
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  itimerspec spec{};
  spec.it_value.tv_sec = seconds.count();
  spec.it_value.tv_nsec = (since - seconds).count();
  ::timerfd_settime(descriptor_.native_handle(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void asio_timers::wait() {
  if (waiting_) return;
  // Some version of Asio may need memory of its own: without it the next timer that is started waits.
  if_memory([this] { descriptor_.async_wait(descriptor_.wait_read, wake{shared_from_this(), on_its_way(waiting_)}); });
}

void asio_timers::woken() {
  if (here_.elsewhere() || !descriptor_.is_open()) return;
  std::uint64_t expirations;
  [[maybe_unused]] const auto size = ::read(descriptor_.native_handle(), &expirations, sizeof expirations);
  wake_ = time_point::max();
  each_step step;  // an action that finds no memory delays none of the others
  step([this] { on_wake_(); });
  const auto now = lease_clock::now();
  while (queue_.any_due(now)) step([&] { queue_.run_due(now); });
  step([this] { wait_for_next(); });
  step.rethrow();
}

void asio_timers::wait_for_next() {
  if (!descriptor_.is_open()) return;  // an action closed us
  if (const auto next = queue_.earliest(); next && *next < wake_)
    wake_at(*next);
  else if (next)
    wait();
}

}  // namespace holdfast::detail
