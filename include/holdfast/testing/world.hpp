// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast::testing {

namespace asio = boost::asio;
using std::chrono::nanoseconds;

class stage;

/// The context that a test gives its servers to run on: an io_context.
template <class Context>
concept runnable_context =
    requires(Context& io) { io.poll(), io.restart(), io.get_executor().running_in_this_thread(); };

/// The common base of testing::server and testing::primaries: virtual time, and the test's io_context. Clients,
/// coroutines and the tested service run on that io_context.
///
/// When the io_context runs, by io.poll() or run_until_idle(), everything happens that can happen at this instant. A
/// command and its reply take no time, unless a link is given a latency. Time passes only in advance(), run() and
/// pause_process(). Nothing sleeps, and the same test does the same each time, including the uuids of its clients.
///
/// Timers of the library are in this virtual time. Timers of Asio, and sockets, are in real time. advance() does not
/// reach a timer of Asio that the service waits for. Such a timer is cancelled with the coroutine that waits. Use
/// sleep_for() to wait in virtual time. io.run() does not return while a coroutine waits for virtual time; io.poll()
/// does.
///
/// One thread: use everything, clients and leases included, on the thread that runs the io_context. Do not run the
/// io_context on several threads. Do not stop it meanwhile: the world restarts it.
class world {
 public:
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  /// Returns when everything that can happen at this instant has happened. Throws std::logic_error inside of a handler
  /// of the io_context.
  void run_until_idle();

  /// Moves time forward by `by`. Everything due happens at its time and in order, handlers of the io_context included.
  /// Throws std::logic_error inside of a handler. Throws std::invalid_argument for a negative time and for more than
  /// ten years.
  void advance(nanoseconds by);

  /// Runs a coroutine on the io_context to its end. Returns its result or throws its exception. Time passes meanwhile
  /// as far as it must, from one event to the next. Throws std::logic_error inside of a handler. Also throws it in two
  /// cases. The coroutine waits for something that cannot happen any more, for example a timer of Asio. Or it has not
  /// ended after `at_most` of virtual time. In both cases the coroutine is cancelled.
  template <class T>
  T run(asio::awaitable<T> operation, nanoseconds at_most = std::chrono::hours(1)) {
    const auto result = std::make_shared<std::optional<T>>();
    run_to_its_end(kept(std::move(operation), result), at_most);
    return std::move(**result);
  }
  void run(asio::awaitable<void> operation, nanoseconds at_most = std::chrono::hours(1)) {
    run_to_its_end(std::move(operation), at_most);
  }

  /// Waits in virtual time, for coroutines of the io_context. Resumes on the awaiting coroutine's executor. Throws
  /// std::invalid_argument as advance(). Cancelled: operation_aborted.
  asio::awaitable<void> sleep_for(nanoseconds);

  /// Stops this process for that time, as by SIGSTOP, in a debugger or on a machine that sleeps. Nothing of the process
  /// runs. Time goes on for the server, which executes what it was sent before. Work of the process, and what has
  /// arrived for it, comes late: when the io_context runs again. Throws std::invalid_argument for a negative time and
  /// for more than ten years. Also inside of a handler.
  void pause_process(nanoseconds);

  /// Virtual time since the object was made.
  nanoseconds elapsed() const noexcept;

  /// For the end of a test: runs what can happen. Throws std::logic_error if one of its clients still holds a lock. The
  /// text names the lock, its lease::id() and since when. Not inside of a handler.
  void check();

 protected:
  struct context {
    asio::any_io_executor executor;
    std::function<void()> poll;    // runs all that is ready
    std::function<bool()> inside;  // whether this thread runs it now
  };
  template <class Context>
  static context context_of(Context& io) {
    return {io.get_executor(),
            [&io] {
              io.restart();
              io.poll();
            },
            [&io] { return io.get_executor().running_in_this_thread(); }};
  }
  world(context, std::size_t servers);
  explicit world(std::shared_ptr<stage> of_another) noexcept : stage_(std::move(of_another)) {}
  ~world() = default;

  const std::shared_ptr<stage> stage_;  // clients and leases keep it, too

 private:
  template <class T>
  static asio::awaitable<void> kept(asio::awaitable<T> operation, std::shared_ptr<std::optional<T>> into) {
    into->emplace(co_await std::move(operation));
  }
  void run_to_its_end(asio::awaitable<void>, nanoseconds at_most);
};

}  // namespace holdfast::testing
