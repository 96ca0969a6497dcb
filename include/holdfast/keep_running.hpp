// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/any_of.hpp>
#include <holdfast/export.hpp>
#include <holdfast/keep_options.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_options.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/with_lock.hpp>
#include <holdfast/worker_monitor.hpp>

#include <boost/asio/awaitable.hpp>
#include <exception>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace holdfast {
namespace asio = boost::asio;

namespace detail {

/// Options of a keep_running() that starts later: its monitor is copied.
class HOLDFAST_EXPORT worker_terms {
 public:
  worker_terms(const keep_options& given);

 private:
  friend class worker;
  keep_options options_;
  std::shared_ptr<worker_record> record_;
};

/// One keep_running(): it decides after each run, and shows its state. The code that waits calls it, in a coroutine or
/// in a thread of holdfast::blocking.
class HOLDFAST_EXPORT worker {
 public:
  /// Throws invalid_argument.
  worker(const mutex& lock, const worker_terms& terms);
  worker(const any_of& lock, const worker_terms& terms);
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker();

  void wait_for_lock();
  /// Under the lock of this name.
  void begin_run(std::string_view name);
  /// After a run, if one has begun, or else after a failed wait. `failed`: its exception, or null. True: goes on, after
  /// pause(). False: the worker has ended well. Rethrows `failed` if the worker ends with it.
  bool goes_on(const std::exception_ptr& failed);
  /// Waits as the last goes_on() has decided. The wait is on the client's strand, and its timer the client's. Throws
  /// shutting_down when the client drains or ends. Cancelled: operation_aborted.
  asio::awaitable<void> pause();

 private:
  struct parts;
  worker(std::unique_ptr<parts> made);

  const std::unique_ptr<parts> parts_;
};

HOLDFAST_EXPORT asio::awaitable<void> run_kept(mutex lock, body_ref body, worker_terms terms, kept_options options);
HOLDFAST_EXPORT asio::awaitable<void> run_kept(any_of lock, body_ref body, worker_terms terms, kept_options options);

template <class F, class Lock>
asio::awaitable<void> kept_running(Lock lock, F body, worker_terms terms, kept_options options) {
  kept_body<F, lease> kept{body};
  co_await run_kept(std::move(lock), kept.ref(), std::move(terms), std::move(options));
}

}  // namespace detail

/// The body of a worker: awaitable<void> body(lease&).
template <class F>
concept worker_body = lock_body<F> && std::is_void_v<detail::body_value_t<F>>;

/// A worker on one of N processes. Each of them calls this for the same lock. Again and again it takes the lock, runs
/// `body(lease)` as with_lock() does, and gives the lock up. So the body runs in one process at a time, while its lease
/// is held. If that process dies, another one takes over when the TTL ends; if its body ends, within a round trip.
/// | event                             | always               | on_failure           | never               |
/// |-----------------------------------|----------------------|----------------------|---------------------|
/// | body returns                      | runs again: pause    | returns              | returns             |
/// | body throws X                     | runs again: backoff  | runs again: backoff  | throws X            |
/// | hold lost: body gets terminal     | waits again: backoff | waits again: backoff | throws lost         |
/// | cancellation                      |                      |                      |                     |
/// | lock() fails, may mend            | waits again: backoff | waits again: backoff | the same            |
/// | lock() fails with a final error   | throws it            | throws it            | throws it           |
/// | client drains, shuts down or ends | returns              | throws shutting_down | throws shutting_down |
/// | cancelled from outside            | operation_aborted    | operation_aborted    | operation_aborted   |
///
/// **The lock is given up after each run,** also before a pause or a backoff. So a process that fails leaves the work
/// to the others, and one that returns gives each of them its turn. A body that wants to keep its lease for more work
/// loops itself. Which process comes next is as for mutex: the next notified one, in no order of processes.
///
/// **A failure backs off,** exponentially, with jitter, up to a cap: see keep_options. Runs and lock() count together.
/// The count begins anew after a run that returned, and after one that lasted for backoff_cap or longer.
///
/// **lock() waits through an outage** of Redis, without a failure. Errors that may mend without a new program are
/// retried: condition::retry_later, auth_failed, no_permission, not_primary, tls_failed, protocol_error, corrupt_lock,
/// lost, and a lack of memory. All others are final: invalid_name, invalid_ttl, invalid_config, already_held, closed.
/// Call client::connect() before, to fail early on a wrong setting.
///
/// A drain lets a body that holds the lease go on, until it ends or the grace is over. No run follows. A body cut off
/// by the end of its client counts as lost; with never its error is closed.
/// Cancelled from outside: a body that stops releases in the background. A body that returns all the same ends it as if
/// it had not been cancelled, unless a run would follow. A run that fails, or loses its lease, ends it so. Nothing is
/// left of it at any point: no key, waiter, timer, renewal.
///
/// Copies what it needs, and returns a lazy awaitable. Resumes on the awaiting coroutine's executor; the body is on a
/// strand of it, as in with_lock(). Timers and randomness are the client's, in a test those of its kit. Any thread.
/// Throws invalid_argument for options outside their ranges, and for a monitor in use, before it locks anything. If
/// the client is gone already it throws shutting_down.
/// Source: userver's DistLockedWorker and DistLockedTask.
/// `lock`: mutex, fenced_mutex, simple_mutex, red_lock, or a side of a shared_mutex. election::candidate() gives a
/// leader with a term. expirable_semaphore::as_mutex() gives workers on k of N processes. `terms`: those of each lease.
template <class F>
  requires worker_body<std::decay_t<F>>
asio::awaitable<void> keep_running(mutex lock, F&& body, keep_options options = {}, lock_options terms = {}) {
  static_assert(detail::passes_body_safely<F>, "g++ 12 destroys this closure twice: give it a name, and pass the name");
  return detail::kept_running<std::decay_t<F>>(std::move(lock), std::forward<F>(body), detail::worker_terms(options),
                                               detail::kept_options(terms));
}

/// The same under any one of several locks: a worker for whichever is free. lease::name() says which lock it is. With a
/// call for each of k names in each of N processes, every name has its worker, and k are spread over the processes.
template <class F>
  requires worker_body<std::decay_t<F>>
asio::awaitable<void> keep_running(any_of lock, F&& body, keep_options options = {}, lock_options terms = {}) {
  static_assert(detail::passes_body_safely<F>, "g++ 12 destroys this closure twice: give it a name, and pass the name");
  return detail::kept_running<std::decay_t<F>>(std::move(lock), std::forward<F>(body), detail::worker_terms(options),
                                               detail::kept_options(terms));
}

}  // namespace holdfast
