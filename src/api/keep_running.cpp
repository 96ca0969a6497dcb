// SPDX-License-Identifier: BSL-1.0
#include <holdfast/keep_running.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <exception>
#include <utility>

#include "api/guarded_run.hpp"

namespace holdfast::detail {
namespace {

/// Decision: the lease is given up after each run, also after one that returned. A worker that kept its lease would
/// need two rules: for a pause, and for the next run. And its peers would never have a turn. A body can loop itself.
template <class Lock>
asio::awaitable<void> run_on(worker& shown, Lock& lock, body_ref body, const kept_options& options) {
  shown.wait_for_lock();
  lease held = co_await lock.lock(options.get());
  shown.begin_run(held.name());
  co_await run_guarded(held, body, afterwards::unlocked);
}

template <class Lock>
asio::awaitable<void> work(Lock lock, body_ref body, worker_terms terms, kept_options options) {
  worker shown(lock, terms);
  for (bool first = true;; first = false) {
    std::exception_ptr failed;
    try {
      if (!first) co_await shown.pause();
      co_await run_on(shown, lock, body, options);
    } catch (...) {
      failed = std::current_exception();
    }
    // A cancellation from outside. Others, such as a timer of the body's own, are failures of the body.
    const auto state = co_await asio::this_coro::cancellation_state;
    if (failed && state.cancelled() != asio::cancellation_type::none) std::rethrow_exception(failed);
    if (!shown.goes_on(failed)) co_return;
    // The caller's coroutine may have switched off the exception of the next suspension.
    if (state.cancelled() != asio::cancellation_type::none)
      throw boost::system::system_error(asio::error::operation_aborted);
  }
}

}  // namespace

asio::awaitable<void> run_kept(mutex lock, body_ref body, worker_terms terms, kept_options options) {
  return work(std::move(lock), body, std::move(terms), std::move(options));
}

asio::awaitable<void> run_kept(any_of lock, body_ref body, worker_terms terms, kept_options options) {
  return work(std::move(lock), body, std::move(terms), std::move(options));
}

}  // namespace holdfast::detail
