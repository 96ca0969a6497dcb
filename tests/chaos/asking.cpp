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

asio::awaitable<std::optional<lease>> ask_patiently(mutex m, section::patience how, milliseconds wait,
                                                    lock_options terms) {
  if (how == section::patience::once) co_return co_await m.try_lock(terms);
  if (how == section::patience::bounded) co_return co_await m.try_lock_for(wait, terms);
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
  return terms;
}

asio::awaitable<result<std::optional<lease>>> ask(mutex m, const section& s, history& log, std::uint64_t operation) {
  auto asked = ask_patiently(std::move(m), s.how, s.wait, terms_of(s));
  if (!s.cancel) co_return co_await as_result(std::move(asked));
  const auto here = co_await asio::this_coro::executor;
  const auto button = std::make_shared<stop_button>(here);
  button->alarm.expires_after(*s.cancel);
  auto press = [button, &log, operation](const error_code& stopped) {
    if (stopped || button->over) return;
    log.write("cancel").add("op", operation);
    button->signal.emit(asio::cancellation_type::terminal);
  };
  button->alarm.async_wait(press);
  auto token = asio::bind_cancellation_slot(button->signal.slot(), asio::use_awaitable);
  auto got = co_await as_result(asio::co_spawn(here, std::move(asked), token));
  button->over = true;
  button->alarm.cancel();
  co_return got;
}

}  // namespace holdfast::chaos
