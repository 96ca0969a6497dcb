// SPDX-License-Identifier: BSL-1.0
// Any thread may drop the last reference to a client. The client ends on its own executor, where its timers and sockets
// live.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <future>
#include <thread>

#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// A context with a thread of its own.
struct elsewhere {
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> open{io.get_executor()};
  std::thread thread{[this] { io.run(); }};
  std::function<void()> before_next;  // called in execute(), once

  ~elsewhere() {
    open.reset();
    thread.join();
  }
};

/// Runs everything elsewhere, and returns to other threads only when it has run.
struct waiting_executor {
  elsewhere* where;

  asio::execution_context& query(asio::execution::context_t) const noexcept { return where->io; }
  static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
    return asio::execution::blocking.never;
  }
  waiting_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
  bool operator==(const waiting_executor&) const noexcept = default;

  template <class F>
  void execute(F f) const {
    if (std::this_thread::get_id() == where->thread.get_id()) return asio::post(where->io, std::move(f));
    if (const auto first = std::exchange(where->before_next, nullptr)) first();
    const auto over = std::make_shared<std::promise<void>>();  // who sets it may still be at it when we go on
    asio::post(where->io, [over, f = std::move(f)]() mutable {
      std::move(f)();
      over->set_value();
    });
    over->get_future().wait();
  }
};

/// Ends with the client's inside.
struct witness final : observer {
  explicit witness(std::promise<std::thread::id>& p) : ended_on(p) {}
  ~witness() override { ended_on.set_value(std::this_thread::get_id()); }
  void on(const event&) noexcept override {}
  std::promise<std::thread::id>& ended_on;
};

}  // namespace

TEST_CASE("a client whose last owner is a caller on another thread ends on its own executor") {
  world w;
  std::promise<std::thread::id> ended;
  elsewhere other;
  std::optional<client> redis;
  {
    auto settings = w.settings();
    settings.observer = std::make_shared<witness>(ended);
    redis.emplace(waiting_executor{&other}, std::move(settings));
  }
  const auto m = redis->mutex("m");
  auto held = w.run(m.lock());
  other.before_next = [&] { redis.reset(); };  // while the caller's thread is on its way to the strand
  error_code said;
  do said = w.code_of(m.is_locked());
  while (other.before_next);  // a strand that is still busy takes it along
  CHECK(said == errc::shutting_down);
  CHECK(ended.get_future().get() == other.thread.get_id());
  CHECK_FALSE(held.held());
}
