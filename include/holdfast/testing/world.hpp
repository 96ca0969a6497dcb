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

/// What a test gives its servers to run on: an io_context.
template <class Context>
concept runnable_context =
    requires(Context& io) { io.poll(), io.restart(), io.get_executor().running_in_this_thread(); };

/// What a test's servers and clients have in common: virtual time, and the test's io_context, on which clients,
/// coroutines and the service that is tested run. A part of testing::server and testing::primaries.
///
/// When the io_context runs, by io.poll() or run_until_idle(), everything happens that can happen at this instant; a
/// command and its reply take no time, unless a link is given a latency. Time goes on only in advance(), run() and
/// pause_process(). Nothing sleeps, and the same test does the same each time, to the uuids of its clients.
///
/// Timers of the library are in this virtual time. Timers of Asio, and sockets, are in real time: one that the service
/// waits for is not reached by advance(), but it is cancelled with the coroutine that waits. What shall wait in virtual
/// time waits for sleep_for(). io.run() does not return while a coroutine waits for virtual time; io.poll() does.
///
/// One thread: all of it, clients and leases included, on the thread that runs the io_context. The io_context is not
/// run by several threads, and not stopped by the test meanwhile: this restarts it.
class world {
 public:
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  /// Everything that can happen at this instant has happened when it returns. Not inside of a handler of the
  /// io_context: throws std::logic_error.
  void run_until_idle();

  /// Time goes on by so much: what is due in it happens at its time and in order, handlers of the io_context included.
  /// Not inside of a handler: std::logic_error. Time does not go backwards: a negative time is refused with
  /// std::invalid_argument, and so is more than ten years.
  void advance(nanoseconds by);

  /// Runs a coroutine on the io_context to its end, and gives what it gives, or throws what it throws. Time goes on
  /// meanwhile as far as it must, from one event to the next. Throws std::logic_error inside of a handler; where the
  /// coroutine waits for something that cannot happen any more, for example a timer of Asio; and where it has not ended
  /// after `at_most` of virtual time. Then it is cancelled.
  template <class T>
  T run(asio::awaitable<T> operation, nanoseconds at_most = std::chrono::hours(1)) {
    const auto result = std::make_shared<std::optional<T>>();
    run_to_its_end(kept(std::move(operation), result), at_most);
    return std::move(**result);
  }
  void run(asio::awaitable<void> operation, nanoseconds at_most = std::chrono::hours(1)) {
    run_to_its_end(std::move(operation), at_most);
  }

  /// Waits in virtual time, for coroutines of the io_context; resumes on the awaiting coroutine's executor. Throws
  /// std::invalid_argument as advance(). Cancelled: operation_aborted.
  asio::awaitable<void> sleep_for(nanoseconds);

  /// This process stands still for so long, as by SIGSTOP, in a debugger or on a machine that sleeps: nothing of it
  /// runs, while time goes on for the server, which does what it was sent before. What the process was to do meanwhile,
  /// and what has arrived for it, comes late: when the io_context runs again. A negative time, or more than ten years:
  /// std::invalid_argument. Also inside of a handler.
  void pause_process(nanoseconds);

  /// Virtual time since it was made.
  nanoseconds elapsed() const noexcept;

  /// For the end of a test: runs what can happen, and throws std::logic_error when one of its clients still holds
  /// something. The text says which lock, by which lease::id(), and since when. Not inside of a handler.
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
