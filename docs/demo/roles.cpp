// SPDX-License-Identifier: BSL-1.0
// What the worker processes do: here the library is used as any program would.
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <optional>
#include <utility>

#include "server_link.hpp"
#include "worker.hpp"

namespace holdfast::demo {

using namespace std::chrono_literals;

namespace {

constexpr auto as_code = asio::as_tuple(asio::use_awaitable);

}  // namespace

// ---- contend

asio::awaitable<void> worker::contend_role() {
  while (co_await next_order() != "go") {
  }
  tasks_left_ = job_.tasks;
  auto finished = [this](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
    if (--tasks_left_ == 0) report_done();
  };
  for (int n = 1; n <= job_.tasks; ++n) {
    holdfast::owner task;  // each task is an owner of its own
    asio::co_spawn(task.bind(io_.get_executor()), contend(task_name(n), job_.pauses && n == 1), finished);
  }
  for (;;) {
    const auto order = co_await next_order();
    if (order == "continue") go_on_.cancel();
    if (order == "break") release_without_owner_check();
    if (order == "end") co_return;
  }
}

asio::awaitable<void> worker::contend(std::string who, bool pauses) {
  for (int round = 0; round < job_.rounds; ++round) {
    try {
      co_await enter_once(who, pauses && round == 0, (pauses && round == 0) || round % 5 == 2);
    } catch (const holdfast::error& e) {
      if (e.code() == holdfast::errc::unconfirmed && job_.fails_over)
        report(who, "unconfirmed", "leaves; its release is repeated in the background");
      else if (e.code() == holdfast::errc::lost)
        report(who, "lost", "is told that it was not alone: " + e.code().message());
      else
        throw;
    }
    co_await pause(milliseconds((round * 7 + who.back()) % 8));  // other work
  }
}

asio::awaitable<void> worker::enter_once(std::string who, bool pauses, bool nests) {
  const auto asked = steady_clock::now();
  auto lease = co_await mutex().lock();
  const auto entered = steady_clock::now();
  waited_.push_back(entered - asked);

  const auto number = witness_.last_number();
  if (!std::exchange(been_inside_, true))
    report(who, "inside", "the first of its process inside: reads " + std::to_string(number) + " from the file", true);
  if (nests)
    co_await nested(who, pauses);
  else
    co_await pause(1ms);  // others run; who is inside as well would read the same number
  witness_.append(number + 1, who, entered);
  if (pauses) report(who, "wrote", "writes " + std::to_string(number + 1) + " and leaves");
  co_await lease.unlock();
}

// Knows nothing of its caller, and takes the lock that its caller holds.
asio::awaitable<void> worker::nested(std::string who, bool pauses) {
  auto lease = co_await mutex().lock();
  ++nested_;
  if (pauses) {
    report(who, "nested", "calls a function that takes the same lock: goes in again", true);
    co_await go_on_.async_wait(as_code);
  } else {
    co_await pause(1ms);
  }
  const auto result = co_await holdfast::as_result(lease.unlock());
  if (pauses) {
    // Goes on even when told, as a program would that ignores the code: the witness is to show what comes of it.
    report(who, "unnested",
           result ? "is back from that function" : "is told, and goes on all the same: " + result.error().message(),
           true);
    co_await go_on_.async_wait(as_code);
  }
}

asio::awaitable<void> worker::pause(milliseconds time) {
  asio::steady_timer timer(io_, time);
  co_await timer.async_wait(asio::use_awaitable);
}

void worker::report_done() const {
  auto sorted = waited_;
  std::sort(sorted.begin(), sorted.end());
  report(job_.actor, "done",
         "was inside " + counted(sorted.size(), "time") + " (" + std::to_string(nested_) + " nested), waited " +
             in_ms(sorted[sorted.size() / 2]) + " at the median, " + in_ms(sorted.back()) + " at most");
}

// What a lock does that deletes its key without looking whose it is.
void worker::release_without_owner_check() const {
  const auto lock = job_.prefix + job_.lock;
  server_link server(url_, job_.folder);
  server("DEL", lock);
  server("PUBLISH", channel_of(lock), 0);
  report(job_.actor, "broke", "BREAKS THE RULE: deletes a lock that is not its own");
}

// ---- hold

asio::awaitable<void> worker::hold_role() {
  for (;;) {
    const auto order = co_await next_order();
    if (order == "go") start_takers();
    if (order == "cancel")
      for (auto& signal : cancel_) signal.emit(asio::cancellation_type::terminal);
    if (order == "release") {
      for (auto& lease : leases_) co_await lease.unlock();
      report(job_.actor, "released", "releases the lock");
      leases_.clear();
    }
    if (order == "end") co_return;
  }
}

void worker::start_takers() {
  for (int n = 1; n <= job_.tasks; ++n) {
    const auto who = task_name(n);
    auto finished = [this, who](std::exception_ptr failed) {
      try {
        if (failed) std::rethrow_exception(failed);
      } catch (const boost::system::system_error& e) {
        if (e.code() != asio::error::operation_aborted) throw;
        report(who, "cancelled", "its lock() is cancelled: " + e.code().message());
      }
    };
    holdfast::owner task;
    asio::co_spawn(task.bind(io_.get_executor()), take(who),
                   asio::bind_cancellation_slot(cancel_.emplace_back().slot(), finished));
  }
}

asio::awaitable<void> worker::take(std::string who) {
  auto mutex = this->mutex();
  auto got = co_await mutex.try_lock();
  if (!got) {
    report(who, "waiting", "finds the lock held by another, and waits");
    auto lease = co_await mutex.lock();
    got.emplace(std::move(lease));
  }
  report(who, "holding", "holds the lock", true);
  leases_.push_back(std::move(*got));
}

// ---- guard

asio::awaitable<void> worker::guard_role() {
  while (co_await next_order() != "go") {
  }
  auto body = [this](holdfast::lease& lease) { return work_until_told(lease); };
  auto work = holdfast::as_result(holdfast::with_lock(mutex(), body));
  const auto result = co_await std::move(work);
  report(job_.actor, "stopped", "with_lock ends: " + (result ? std::string("no error") : result.error().message()));

  for (;;) {
    const auto order = co_await next_order();
    if (order == "again") {
      const auto lease = co_await mutex().try_lock();
      report(job_.actor, lease ? "holding" : "busy",
             lease ? "holds the lock" : "is back, and finds the lock held by another");
    }
    if (order == "end") co_return;
  }
}

asio::awaitable<void> worker::work_until_told(holdfast::lease& lease) {
  report(job_.actor, "holding", "works inside with_lock", true);
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (;;) {
    timer.expires_after(1h);
    const auto [cancelled] = co_await timer.async_wait(as_code);
    if (!cancelled) continue;
    report(job_.actor, "told", std::string("the work is cancelled; held() is ") + (lease.held() ? "true" : "false"));
    throw boost::system::system_error(cancelled);
  }
}

}  // namespace holdfast::demo
