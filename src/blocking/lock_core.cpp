// SPDX-License-Identifier: BSL-1.0
#include "blocking/lock_core.hpp"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <cstddef>
#include <utility>

#include "base/escape.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking::detail {
namespace {

/// Waits for it for ever without `wait`.
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

bool held(const any_lease& what) noexcept {
  return std::visit([](const auto& l) { return l.held(); }, what);
}

bool lost(const any_lease& what) noexcept {
  return std::visit([](const auto& l) { return l.state() == lease_state::lost; }, what);
}

lease& over(lease& l) { return l; }
/// The lock that is not held. The others may be well, and a renewal would ask Redis about them.
lease& over(multi_lease& all) {
  std::size_t n = 0;
  while (n + 1 < all.size() && all[n].held()) ++n;
  return const_cast<lease&>(all[n]);
}

/// Hands the stop over when it ends: with its coroutine, or with the context in which that waits.
class loss_teller {
 public:
  loss_teller(io_thread& by, const std::stop_source& to) : by_(by), to_{to} {}
  loss_teller(loss_teller&&) noexcept = default;
  loss_teller& operator=(loss_teller&&) = delete;
  ~loss_teller() {
    if (!to_.empty()) by_.request(std::move(to_));
  }
  void nothing_to_tell() noexcept { to_.clear(); }

 private:
  io_thread& by_;       // its context has the coroutine
  stop_to_request to_;  // empty when moved from
};

asio::awaitable<void> tell_loss(asio::awaitable<error_code> lost, loss_teller to) {
  try {
    co_await std::move(lost);
  } catch (const error& e) {
    if (e.code() == errc::not_held) to.nothing_to_tell();
  }
}

}  // namespace

const holdfast::mutex& plain(const any_lock& what) {
  if (const auto* const fenced = std::get_if<holdfast::fenced_mutex>(&what)) return *fenced;
  return std::get<holdfast::mutex>(what);
}

lock_core::lock_core(std::vector<std::shared_ptr<io_thread>> homes, any_lock what, lock_options terms, std::string name)
    : homes_(std::move(homes)), what_(std::move(what)), terms_(terms), name_(std::move(name)) {}

std::string lock_core::about(std::string_view said) const {
  std::string text = name_.empty() ? "several locks" : "lock " + holdfast::detail::in_quotes(name_);
  return text.append(": ").append(said);
}

void lock_core::check_here() const {
  if (elsewhere()) throw error(errc::closed, about("the parent process holds it"));
}

std::optional<lock_core::number> lock_core::acquire(const owner& who, std::optional<milliseconds> wait) {
  for (const auto& each : homes_) each->check_may_wait();
  if (!wait) rest_after_failed_tries();
  const auto as = std::make_shared<call>();
  {
    const std::lock_guard lock(guard_);
    if (abandoned_) throw error(errc::closed, about("its object has ended"));
    waiting_.push_back(as);
  }
  const struct in_line {
    ~in_line() {
      const std::lock_guard lock(of.guard_);
      std::erase(of.waiting_, as);
    }
    lock_core& of;
    const call_ptr& as;
  } place{*this, as};
  try {
    auto got = home().get(who, std::visit([&](const auto& l) { return taken(l, wait, terms_); }, what_),
                          errc::shutting_down, as);
    if (!got) return std::nullopt;
    return keep(who, std::move(*got));
  } catch (const boost::system::system_error& e) {
    if (e.code() != asio::error::operation_aborted) throw;
    throw error(errc::closed, about("its object has ended"));
  }
}

lock_core::number lock_core::keep(const owner& who, any_lease got) {
  const auto first = [&] {
    const std::lock_guard lock(guard_);
    return !find(who);
  }();
  if (first) note_hold(shared_from_this());
  const std::lock_guard lock(guard_);
  if (abandoned_) throw error(errc::closed, about("its object has ended"));
  holds_.push_back({who, ++last_, std::move(got)});
  return last_;
}

lock_core::number lock_core::lock(const owner& who) { return *acquire(who, std::nullopt); }

std::optional<lock_core::number> lock_core::try_lock(const owner& who, milliseconds wait) {
  const auto got = acquire(who, wait);
  if (!got) note_failed_try();
  return got;
}

const lock_core::hold* lock_core::find(const owner& who) const noexcept {
  const auto newest = std::find_if(holds_.rbegin(), holds_.rend(), [&](const hold& h) { return h.who == who; });
  return newest == holds_.rend() ? nullptr : &*newest;
}

lock_core::hold* lock_core::find(const owner& who) noexcept {
  return const_cast<hold*>(std::as_const(*this).find(who));
}

lock_core::hold& lock_core::must_find(const owner& who) {
  if (auto* const h = find(who)) return *h;
  if (abandoned_) throw error(errc::closed, about("its object has ended"));
  throw error(errc::not_held, about("this thread does not hold it by this object"));
}

std::optional<lock_core::hold> lock_core::take_out(const owner& who, std::optional<number> which) noexcept {
  if (elsewhere()) return std::nullopt;
  std::optional<hold> taken;
  bool last = false;
  {
    const std::lock_guard lock(guard_);
    const auto newest = std::find_if(holds_.rbegin(), holds_.rend(),
                                     [&](const hold& h) { return h.who == who && (!which || h.which == *which); });
    if (newest == holds_.rend()) return std::nullopt;
    taken.emplace(std::move(*newest));
    holds_.erase(std::next(newest).base());
    last = !find(who);
  }
  if (last) forget_hold(*this);
  return taken;
}

void lock_core::give_back(hold what) noexcept {
  hold_ending how{.known = true, .lost = lost(what.what)};
  try {
    home().run(what.who, std::visit([](auto& l) { return l.unlock(); }, what.what), errc::closed);
  } catch (const boost::system::system_error& e) {
    how.failed = std::current_exception();
    if (e.code() == condition::no_longer_held) home().request(std::move(what.loss));
  } catch (...) {
    how.failed = std::current_exception();  // what could not be asked for is released in the background
  }
  if (what.ended) *what.ended = std::move(how);
}

void lock_core::unlock(const owner& who) noexcept {
  if (elsewhere()) return;
  if (auto held = take_out(who)) {
    give_back(std::move(*held));
    return;
  }
  try {
    home().tell_foreign_unlock(who, name_);
  } catch (...) {
    // No memory to tell it.
  }
}

void lock_core::check(const owner& who) {
  check_here();
  std::optional<asio::awaitable<void>> cause;
  {
    const std::lock_guard lock(guard_);
    auto& what = must_find(who).what;
    if (held(what)) return;
    cause.emplace(
        std::visit([](auto& l) { return over(l).renew(); }, what));  // throws, with the cause, and asks nobody
  }
  home().run(who, std::move(*cause), errc::closed);
}

void lock_core::renew(const owner& who, milliseconds ttl) {
  check_here();
  std::optional<asio::awaitable<void>> renewed;
  {
    const std::lock_guard lock(guard_);
    renewed.emplace(std::visit([&](auto& l) { return l.renew(ttl); }, must_find(who).what));
  }
  home().run(who, std::move(*renewed), errc::closed);
}

void lock_core::feed(const owner& who) noexcept {
  if (elsewhere()) return;
  const std::lock_guard lock(guard_);
  if (auto* const h = find(who)) std::visit([](auto& l) { l.feed(); }, h->what);
}

std::stop_token lock_core::stop_token(const owner& who) {
  check_here();
  std::stop_source source;
  std::optional<asio::awaitable<error_code>> lost;
  number which = 0;
  {
    const std::lock_guard lock(guard_);
    const auto& h = must_find(who);
    if (!h.loss.empty()) return h.loss.front().get_token();
    if (!held(h.what)) source.request_stop();
    which = h.which;
    lost.emplace(std::visit([](const auto& l) { return l.lost(); }, h.what));
  }
  stop_to_request loss{source};
  if (!home().start_operation(tell_loss(std::move(*lost), loss_teller(home(), source)))) source.request_stop();
  const std::lock_guard lock(guard_);
  if (auto* const h = find(who); h && h->which == which)
    h->loss.swap(loss);
  else
    source.request_stop();  // the object has ended meanwhile; nobody has the token yet
  return source.get_token();
}

std::shared_ptr<const hold_ending> lock_core::watch(const owner& who) {
  auto ended = std::make_shared<hold_ending>();
  const std::lock_guard lock(guard_);
  must_find(who).ended = ended;
  return ended;
}

void lock_core::abandon() noexcept {
  stop_to_request stops;
  std::vector<hold> had;
  std::vector<call_ptr> waiters;
  {
    const std::lock_guard lock(guard_);
    abandoned_ = true;
    had.swap(holds_);
    waiters.swap(waiting_);
  }
  for (auto& h : had) stops.splice(stops.end(), h.loss);
  home().request(std::move(stops));
  for (const auto& w : waiters) {
    try {
      home().cancel(w);
    } catch (...) {
      // No memory: it gets closed when it has its turn.
    }
  }
}

void lock_core::thread_ends(const owner& who) noexcept {
  if (elsewhere()) return;
  while (const auto dropped = take_out(who)) {
  }
}

}  // namespace holdfast::blocking::detail
