// SPDX-License-Identifier: BSL-1.0
#include "chaos/asking.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

namespace holdfast::chaos {
namespace {

template <class Lock>
asio::awaitable<std::optional<lease_of<Lock>>> ask_patiently(Lock m, section::wait_mode how, milliseconds wait,
                                                             lock_options terms) {
  if (how == section::wait_mode::once) co_return co_await m.try_lock(terms);
  if (how == section::wait_mode::bounded) co_return co_await m.try_lock_for(wait, terms);
  co_return co_await m.lock(terms);
}

/// Cancels what hangs on its slot, later. Shared with its alarm, which may have gone off just before the end.
struct stop_button {
  explicit stop_button(const asio::any_io_executor& on) : alarm(on) {}
  asio::cancellation_signal signal;
  asio::steady_timer alarm;
  bool over = false;
};

}  // namespace

lock_options terms_of(const section& s) {
  lock_options terms;
  terms.ttl = s.ttl;
  terms.renew = s.renewed;
  terms.max_hold = s.max_hold;
  terms.min_replicas = s.replicas;
  return terms;
}

mutex mutex_of(const client& redis, const lock_name& lock, const owner& who) {
  switch (lock.by) {
    case lock_name::kind::fenced: return redis.fenced_mutex(lock.text, who);
    case lock_name::kind::simple: return redis.simple_mutex(lock.text, who);
    case lock_name::kind::plain: return redis.mutex(lock.text, who);
    case lock_name::kind::red: return redis.red_lock(lock.text, who);
    case lock_name::kind::red_simple: return redis.red_lock(lock.text, who, reentrancy::not_reentrant);
    case lock_name::kind::reader: return redis.shared_mutex(lock.text, who).reader();
    case lock_name::kind::writer: return redis.shared_mutex(lock.text, who).writer();
    case lock_name::kind::fair: return redis.fair_mutex(lock.text, who);
    case lock_name::kind::permits: break;
  }
  return redis.expirable_semaphore(lock.text, permits_in_all).as_mutex();
}

std::vector<mutex> mutexes_of(const client& redis, const std::vector<lock_name>& locks, const owner& who) {
  std::vector<mutex> all;
  for (const auto& lock : locks) all.push_back(mutex_of(redis, lock, who));
  return all;
}

template <class Lock>
asio::awaitable<result<std::optional<lease_of<Lock>>>> ask(Lock m, const section& s, std::function<void()> cancelling) {
  auto asked = ask_patiently(std::move(m), s.how, s.wait, terms_of(s));
  if (!s.cancel) co_return co_await as_result(std::move(asked));
  const auto here = co_await asio::this_coro::executor;
  const auto button = std::make_shared<stop_button>(here);
  button->alarm.expires_after(*s.cancel);
  auto press = [button, cancelling = std::move(cancelling)](const error_code& stopped) {
    if (stopped || button->over) return;
    cancelling();
    button->signal.emit(asio::cancellation_type::terminal);
  };
  button->alarm.async_wait(press);
  auto token = asio::bind_cancellation_slot(button->signal.slot(), asio::use_awaitable);
  auto got = co_await as_result(asio::co_spawn(here, std::move(asked), token));
  button->over = true;
  button->alarm.cancel();
  co_return got;
}

template asio::awaitable<result<std::optional<lease>>> ask(mutex, const section&, std::function<void()>);
template asio::awaitable<result<std::optional<lease>>> ask(any_of, const section&, std::function<void()>);
template asio::awaitable<result<std::optional<lease>>> ask(several_permits, const section&, std::function<void()>);
template asio::awaitable<result<std::optional<multi_lease>>> ask(multi_lock, const section&, std::function<void()>);

}  // namespace holdfast::chaos
