// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <iostream>

#include "integration/world.hpp"

/// Cancels an operation after the first, second, … handler that the context runs for it, until it completes before the
/// cancellation comes: every suspension point, found by the test itself.
namespace holdfast::test {

using step = std::function<asio::awaitable<void>()>;

/// One run: how it ended, and the caller's cancellation state after it.
struct trace {
  bool ended = false;
  error_code code;
  bool state_as_expected = true;
};

inline asio::awaitable<void> observe(step operation, trace& into, const bool& cancelled) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  std::exception_ptr failed;
  try {
    co_await operation();
  } catch (...) {
    failed = std::current_exception();
  }
  const auto state = co_await asio::this_coro::cancellation_state;
  into.state_as_expected = (state.cancelled() != asio::cancellation_type::none) == cancelled;
  co_await asio::this_coro::reset_cancellation_state();
  co_await asio::post(asio::use_awaitable);  // the coroutine goes on as if nothing had been
  try {
    if (failed) std::rethrow_exception(failed);
  } catch (const boost::system::system_error& e) {
    into.code = e.code();
  }
  into.ended = true;
}

/// Runs `operation`, cancels it after `handlers` handlers; true when it had ended by then.
inline bool run_and_cancel(world& w, const step& operation, int handlers, asio::cancellation_type type, trace& into) {
  asio::cancellation_signal signal;
  bool cancelled = false;
  w.io.restart();
  auto done = [](std::exception_ptr) {};
  asio::co_spawn(w.io, observe(operation, into, cancelled), asio::bind_cancellation_slot(signal.slot(), done));
  // From inside the context: co_spawn hands an emission from elsewhere over with a pointer that may be stale by then
  // (Boost 1.81).
  bool completed = false, driven = false;
  auto drive = [&] {
    for (int i = 0; i < handlers && !into.ended; ++i) w.io.run_one();
    completed = into.ended;
    if (!completed) {
      cancelled = true;
      signal.emit(type);
    }
    driven = true;
  };
  asio::post(w.io, drive);
  w.until([&] { return driven; });
  w.until([&] { return into.ended; });
  return completed;
}

struct bounded {
  std::chrono::milliseconds wait{};
  error_code late{};
};

/// `make` gets a client and gives the operation; `settle` brings the world back to nothing. `own_end`: how it may end
/// by itself after its deadline, on a machine that is slower than that.
template <class World, class Make, class Settle>
void cancel_everywhere(const std::string& what, World& w, Make make, Settle settle, bounded own_end = {}) {
  for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::total}) {
    int handlers = 0;
    for (bool completed = false; !completed; ++handlers) {
      REQUIRE(handlers < 2000);
      auto redis = w.make([](config& c) { c.ttl = 2s; });
      INFO(what << " cancelled after " << handlers << " handlers");
      trace t;
      {
        const step operation = make(redis);
        const auto called = std::chrono::steady_clock::now();
        completed = run_and_cancel(w, operation, handlers, type, t);
        const bool late = std::chrono::steady_clock::now() >= called + own_end.wait;
        if (!completed)
          CHECK((!t.code || (late && t.code == own_end.late) || t.code == asio::error::operation_aborted));
        CHECK(t.state_as_expected);
        settle(redis);
      }
      drain(w.io, 10s);  // throws when a waiter, a renewal or a release is left
      CHECK(w.locks().empty());
      CHECK(w.eye("PUBSUB", "CHANNELS", of_locks).array().empty());
    }
    std::cout << what << ": " << handlers << " suspension points ("
              << (type == asio::cancellation_type::total ? "total" : "terminal") << ")\n";
  }
}

}  // namespace holdfast::test
