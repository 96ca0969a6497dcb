// SPDX-License-Identifier: BSL-1.0
#include "cli/acquisition.hpp"

#include <csignal>
#include <exception>
#include <utility>

#include "cli/until_signal.hpp"

namespace holdfast::cli {
namespace {

struct attempt {
  std::optional<lease> held{};
  std::exception_ptr failure{};
};

/// Several permits under the names of a mutex.
struct several_permits {
  asio::awaitable<lease> lock(lock_options terms) const { return of.acquire(amount, terms); }
  asio::awaitable<std::optional<lease>> try_lock(lock_options terms) const { return of.try_acquire(amount, terms); }
  asio::awaitable<std::optional<lease>> try_lock_for(milliseconds wait, lock_options terms) const {
    return of.try_acquire_for(wait, amount, terms);
  }

  expirable_semaphore of;
  unsigned amount;
};

template <class Lock>
asio::awaitable<std::optional<lease>> take(Lock lock, acquire_options options, config settings) {
  lock_options terms;
  terms.ttl = options.ttl;
  terms.renew = true;
  terms.max_hold = options.max_hold;
  terms.note = options.note;
  if (options.wait) co_return co_await lock.try_lock_for(*options.wait, terms);
  const auto attempt = [&] { return lock.try_lock(terms); };
  auto held = co_await first_call<std::optional<lease>>(settings, attempt);
  if (!held && !options.no_wait) held.emplace(co_await lock.lock(terms));
  co_return held;
}

/// Never throws: see until_signal().
template <class Lock>
asio::awaitable<attempt> try_to_take(Lock lock, acquire_options options, config settings) {
  attempt made;
  try {
    made.held = co_await take(std::move(lock), std::move(options), std::move(settings));
  } catch (...) {
    made.failure = std::current_exception();
  }
  co_return made;
}

}  // namespace

config config_of(const acquire_options& options) {
  auto settings = config_of(options.access);
  if (options.note.empty()) return settings;
  if (options.lock.permits > 0 || options.lock.shared)
    throw usage_error("--note goes with a lock of one holder: permits and readers stand beside each other");
  settings.notes = true;
  return settings;
}

job_signals::job_signals(const asio::any_io_executor& executor) : asio::signal_set(executor) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    struct sigaction present {};
    ::sigaction(number, nullptr, &present);
    if (present.sa_handler != SIG_IGN) add(number);
  }
}

asio::awaitable<acquisition> acquire(const client& redis, acquire_options options, const config& settings,
                                     asio::signal_set& signals) {
  const auto wanted = options.lock;
  check(wanted, settings);
  auto taken = wanted.take > 1
                   ? try_to_take(several_permits{redis.expirable_semaphore(wanted.name, wanted.permits), wanted.take},
                                 std::move(options), settings)
                   : try_to_take(mutex_of(redis, wanted, settings), std::move(options), settings);
  auto first = co_await until_signal(std::move(taken), signals);
  if (!first.result) co_return acquisition{std::nullopt, first.signal};
  if (first.result->failure) std::rethrow_exception(first.result->failure);
  co_return acquisition{std::move(first.result->held), 0};
}

}  // namespace holdfast::cli
