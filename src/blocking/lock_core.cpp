// SPDX-License-Identifier: BSL-1.0
#include "blocking/lock_core.hpp"

#include <boost/asio/error.hpp>
#include <cstddef>
#include <exception>
#include <utility>

#include "blocking/loss_stop.hpp"
#include "blocking/stop_of_call.hpp"

namespace holdfast::blocking::detail {
namespace {

/// Waits indefinitely without `wait`.
template <class Lock>
asio::awaitable<std::optional<any_lease>> taken(Lock lock, std::optional<milliseconds> wait, lock_options terms) {
  if (!wait) {
    auto got = co_await lock.lock(terms);
    co_return std::optional<any_lease>(std::move(got));
  }
  auto got = co_await lock.try_lock_for(*wait, terms);  // 0: as try_lock()
  if (!got) co_return std::nullopt;
  co_return std::optional<any_lease>(std::move(*got));
}

struct lease_after {
  lease granted{};
  std::exception_ptr failed{};
};

asio::awaitable<lease_after> downgraded(holdfast::shared_mutex of, lease write) {
  lease_after after;
  try {
    co_await of.downgrade(write);
  } catch (...) {
    after.failed = std::current_exception();
  }
  after.granted = std::move(write);
  co_return after;
}

bool is_held(const any_lease& granted) noexcept {
  return std::visit([](const auto& each) { return each.held(); }, granted);
}

bool is_lost(const any_lease& granted) noexcept {
  return std::visit([](const auto& each) { return each.state() == lease_state::lost; }, granted);
}

lease& over(lease& own) { return own; }
/// The first lease that is not held. The others may be held, and a renewal would ask Redis about them.
lease& over(multi_lease& all) {
  std::size_t n = 0;
  while (n + 1 < all.size() && all[n].held()) ++n;
  return const_cast<lease&>(all[n]);  // const, so that users cannot move one of several leases out
}

}  // namespace

const holdfast::mutex& plain(const any_lock& lock) {
  if (const auto* const fair = std::get_if<holdfast::fair_mutex>(&lock)) return *fair;
  if (const auto* const fenced = std::get_if<holdfast::fenced_mutex>(&lock)) return *fenced;
  return std::get<holdfast::mutex>(lock);
}

lock_core::lock_core(std::vector<std::shared_ptr<io_thread>> homes, any_lock lock, lock_options terms, std::string name)
    : homes_(std::move(homes)), underlying_(std::move(lock)), note_(terms.note), terms_(terms),
      holds_(std::move(name)) {
  terms_.note = note_;
}

void lock_core::check_here() const {
  if (elsewhere()) throw error(errc::closed, about("the parent process holds it"));
}

// The calling thread asks, also for a holder that is no thread. A client that drains lets holders take more. A common
// holder would let each thread in.
std::optional<lock_core::serial> lock_core::acquire(const owner& thread, std::optional<milliseconds> wait,
                                                    const std::stop_token& stop) {
  for (const auto& each : homes_) each->check_may_wait();
  if (!wait) rest_after_failed_tries();
  const auto waiting = std::make_shared<call>();
  const place_in_line place(holds_, waiting);
  const stop_of_call on_stop(home(), waiting, stop);
  try {
    auto got =
        home().get(this_thread(), std::visit([&](const auto& lock) { return taken(lock, wait, terms_); }, underlying_),
                   errc::shutting_down, waiting);
    if (!got) return std::nullopt;
    return keep(thread, std::move(*got));
  } catch (const boost::system::system_error& failure) {
    if (failure.code() != asio::error::operation_aborted) throw;
    if (stop.stop_requested()) return std::nullopt;
    throw_object_ended();
  }
}

void lock_core::throw_object_ended() const { throw error(errc::closed, about("its object has ended")); }

// Before the hold is kept: without memory for the note, the lock is not taken.
lock_core::serial lock_core::keep(const owner& thread, any_lease granted) {
  note_thread(thread);
  return holds_.keep(thread, std::move(granted));
}

void lock_core::note_thread(const owner& thread) {
  if (thread == this_thread() && !holds_.any_of(thread)) note_hold(shared_from_this());
}

lock_core::serial lock_core::lock(const owner& thread) { return *acquire(thread, std::nullopt); }

std::optional<lock_core::serial> lock_core::lock_until_stopped(const owner& thread, const std::stop_token& stop) {
  return acquire(thread, std::nullopt, stop);
}

std::optional<lock_core::serial> lock_core::try_lock(const owner& thread, milliseconds wait) {
  const auto got = acquire(thread, wait);
  if (!got) note_failed_try();
  return got;
}

std::optional<thread_hold> lock_core::take_out(const owner& thread, std::optional<serial> number) noexcept {
  if (elsewhere()) return std::nullopt;
  auto taken = holds_.take_out(thread, number);
  if (taken && !holds_.any_of(thread)) forget_hold(*this);
  return taken;
}

std::optional<thread_hold> lock_core::take_out_lost_first(const owner& thread) noexcept {
  if (elsewhere()) return std::nullopt;
  auto taken = holds_.take_out(thread, is_lost);
  if (taken && !holds_.any_of(thread)) forget_hold(*this);
  return taken;
}

void lock_core::give_back(thread_hold held) noexcept {
  hold_ending ending{.known = true, .lost = is_lost(held.granted)};
  try {
    home().run(held.thread, std::visit([](auto& granted) { return granted.unlock(); }, held.granted), errc::closed);
  } catch (const boost::system::system_error& failure) {
    ending.failed = std::current_exception();
    if (failure.code() == condition::no_longer_held) home().request(std::move(held.loss));
  } catch (...) {
    ending.failed = std::current_exception();  // an unlock that could not be started is done in the background
  }
  if (held.ended) *held.ended = std::move(ending);
}

void lock_core::unlock(const owner& thread) noexcept {
  if (elsewhere()) return;
  if (auto held = take_out(thread)) {
    give_back(std::move(*held));
    return;
  }
  try {
    home().tell_foreign_unlock(thread, name());
  } catch (...) {
    // No memory for the event.
  }
}

void lock_core::check(const owner& thread) {
  check_here();
  auto cause = holds_.with_own(thread, [](thread_hold& own) -> std::optional<asio::awaitable<void>> {
    if (is_held(own.granted)) return std::nullopt;
    // It throws the cause, and sends nothing.
    return std::visit([](auto& granted) { return over(granted).renew(); }, own.granted);
  });
  if (cause) home().run(thread, std::move(*cause), errc::closed);
}

void lock_core::renew(const owner& thread, milliseconds ttl) {
  run_on_newest(thread, [ttl](any_lease& newest) {
    return std::visit([ttl](auto& granted) { return granted.renew(ttl); }, newest);
  });
}

// During the command the hold is in no list: a lease that is replaced must not move. So the end of the object does not
// see its stop, which is requested here if the hold is gone after a failure.
void lock_core::downgrade(const owner& thread, const holdfast::shared_mutex& of, lock_core& reader) {
  check_here();
  auto write = take_newest(thread);
  std::exception_ptr failed;
  try {
    auto after = home().get(thread, downgraded(of, std::get<lease>(std::move(write.granted))), errc::closed);
    failed = after.failed;
    if (failed) {
      write.granted = std::move(after.granted);
      note_thread(thread);
      holds_.put_back(std::move(write));
    } else {
      if (write.ended) *write.ended = {.known = true};
      reader.keep(thread, std::move(after.granted));
    }
  } catch (...) {
    home().request(std::move(write.loss));
    throw;
  }
  if (failed) std::rethrow_exception(failed);
}

thread_hold lock_core::take_newest(const owner& thread) {
  auto newest = take_out(thread);
  if (!newest) holds_.with_own(thread, [](const thread_hold&) {});
  return std::move(*newest);
}

void lock_core::feed(const owner& thread) noexcept {
  if (elsewhere()) return;
  holds_.with_newest(thread, [](thread_hold* own) {
    if (own) std::visit([](auto& granted) { granted.feed(); }, own->granted);
  });
}

std::stop_token lock_core::stop_token(const owner& thread) {
  check_here();
  std::stop_source source;
  std::optional<asio::awaitable<error_code>> lost;
  serial number = 0;
  const auto known = holds_.with_own(thread, [&](thread_hold& own) -> std::optional<std::stop_token> {
    if (!own.loss.empty()) return own.loss.front().get_token();
    if (!is_held(own.granted)) source.request_stop();
    number = own.serial;
    lost.emplace(std::visit([](const auto& granted) { return granted.lost(); }, own.granted));
    return std::nullopt;
  });
  if (known) return *known;
  stop_to_request loss{source};
  stop_on_loss(home(), std::move(*lost), source);
  holds_.with_newest(thread, [&](thread_hold* own) {
    if (own && own->serial == number)
      own->loss.swap(loss);
    else
      source.request_stop();  // the object has ended meanwhile; no caller has the token yet
  });
  return source.get_token();
}

std::vector<thread_hold> lock_core::close() noexcept {
  auto left = holds_.abandon();
  stop_to_request stops;
  for (auto& hold : left.holds) stops.splice(stops.end(), hold.loss);
  home().request(std::move(stops));
  for (const auto& waiter : left.waiting) {
    try {
      home().cancel(waiter);
    } catch (...) {
      // No memory: the waiter gets closed when its lock() is granted.
    }
  }
  return std::move(left.holds);
}

void lock_core::thread_ends(const owner& thread) noexcept {
  if (elsewhere()) return;
  while (const auto dropped = take_out(thread)) {
  }
}

}  // namespace holdfast::blocking::detail
