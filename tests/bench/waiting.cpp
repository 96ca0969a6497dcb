// SPDX-License-Identifier: BSL-1.0
// The cost of a crowd of waiters. The time until the next process has the lock, or runs the worker, of one that is
// killed.
#include <malloc.h>

#include <boost/asio/async_result.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "bench/baselines.hpp"
#include "bench/child_run.hpp"
#include "bench/meter.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"
#include "protocol/derived_keys.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::real_redis;

constexpr auto wanted = "bench:wanted";

// ---- a crowd

std::size_t heap() { return ::mallinfo2().uordblks; }

using parked = asio::async_result<asio::use_awaitable_t<>, void()>::handler_type;

asio::awaitable<void> park(std::vector<parked>& all) {
  return asio::async_initiate<const asio::use_awaitable_t<>&, void()>([&all](auto h) { all.push_back(std::move(h)); },
                                                                      asio::use_awaitable);
}

/// Waits in the place where a waiter has called lock(), and is a waiter of the same size.
asio::awaitable<void> idle(mutex m, std::vector<parked>& all, long& had) {
  lease held;
  co_await park(all);
  held = co_await m.lock();
  ++had;
  co_await held.unlock();
}
asio::awaitable<void> queue(mutex m, std::vector<parked>&, long& had) {
  lease held;
  held = co_await m.lock();
  ++had;
  co_await held.unlock();
}

asio::awaitable<void> lock_first(mutex m, lease& held) { held = co_await m.lock(); }
asio::awaitable<void> unlock_first(lease& held) { co_await held.unlock(); }

struct crowd_result {
  double bytes = 0;  // of each waiter, beyond its caller's frame
  double subscriptions = 0;
  double seconds_for_all = 0;  // from the release to the last grant
};

/// Runs what is ready, and ends when nothing was for a while.
void settle(asio::io_context& io) {
  while (io.run_one_for(50ms) > 0) {
  }
}

void crowd(const real_redis& server, long n, const teller<crowd_result>& tell) {
  asio::io_context io(1);
  auto redis = make_client(io, of_url(server.unix_url()));
  test::raw_client admin(server);
  auto m = redis.mutex(wanted);
  long had = 0;
  std::vector<parked> all;
  all.reserve(static_cast<std::size_t>(n));
  const auto heap_of = [&](auto make) {
    const auto before = heap();
    for (long i = 0; i < n; ++i) asio::co_spawn(io, make(m, all, had), rethrow);
    settle(io);
    return static_cast<double>(heap() - before);
  };
  const auto frames = heap_of(idle);
  lease first;
  asio::co_spawn(io, lock_first(m, first), rethrow);
  settle(io);
  crowd_result r;
  r.bytes = (heap_of(queue) - frames) / static_cast<double>(n);
  const auto channel = admin("PUBSUB", "CHANNELS", "*").strings().at(0);
  r.subscriptions = static_cast<double>(admin("PUBSUB", "NUMSUB", channel).array().at(1).integer());
  const auto begun = clock::now();
  asio::co_spawn(io, unlock_first(first), rethrow);
  run_handlers(
      io, [&] { return had == n; }, clock::now() + plan::patience);
  r.seconds_for_all = seconds_since(begun);
  if (had < n) throw not_finished(std::to_string(had) + " of " + std::to_string(n) + " had it");
  tell(r);
}

std::vector<finding> waiters(const plan& p) {
  const auto n = p.scaled(100'000);
  std::vector<double> bytes, subscriptions, hand_over, trip;
  p.rounds("waiters-100k", [&] {
    const real_redis server;
    load_scripts(server);
    child_run<crowd_result> run([&](const teller<crowd_result>& tell) { crowd(server, n, tell); });
    const auto r = run.result_until(clock::now() + plan::patience);
    bytes.push_back(r.bytes);
    subscriptions.push_back(r.subscriptions);
    hand_over.push_back(r.seconds_for_all * 1e6 / static_cast<double>(n));
    trip.push_back(bare_round_trip(server.socket_path(), p.scaled(5'000)));
  });
  return {{median(bytes)},
          {median(subscriptions)},
          {median(hand_over) / median(trip), {{"hand_over_us", median(hand_over)}, {"round_trip_us", median(trip)}}}};
}

// ---- a process that is killed

/// Locks it, tells when it was had, and keeps it.
void lock_and_keep(const real_redis& server, milliseconds ttl, const teller<clock::time_point>& tell) {
  asio::io_context io(1);
  auto settings = of_url(server.unix_url());
  settings.ttl = ttl;
  auto redis = make_client(io, std::move(settings));
  lease held;
  asio::co_spawn(io, lock_first(redis.mutex(wanted), held), [&](std::exception_ptr failed) {
    rethrow(failed);
    tell(clock::now());
  });
  io.run();
}

using locker = child_run<clock::time_point>;
using work_of_locker = void (*)(const real_redis&, milliseconds ttl, const teller<clock::time_point>&);

std::unique_ptr<locker> start_locker(const real_redis& server, milliseconds ttl, work_of_locker work = lock_and_keep) {
  return std::make_unique<locker>(
      [&server, ttl, work](const teller<clock::time_point>& tell) { work(server, ttl, tell); });
}

void wait_for_waiters(test::raw_client& admin, long n) {
  const auto channel = detail::channel_of(detail::lock_keys(detail::plain_lock, wanted));
  const auto deadline = clock::now() + plan::patience;
  while (admin("PUBSUB", "NUMSUB", channel).array().at(1).integer() < n) {
    if (clock::now() > deadline) throw not_finished("nobody waits");
    std::this_thread::sleep_for(1ms);
  }
}

/// The holder is killed: how long after the end of its TTL the next has the lock, in ms.
double after_holder(milliseconds ttl, work_of_locker work) {
  const real_redis server;
  test::raw_client admin(server);
  auto holder = start_locker(server, ttl, work);
  holder->result_until(clock::now() + plan::patience);
  const auto next = start_locker(server, ttl, work);
  wait_for_waiters(admin, 1);
  holder.reset();
  const auto left = admin("PTTL", wanted).integer();
  const auto ends = clock::now() + std::chrono::milliseconds(left);
  const auto had = next->result_until(clock::now() + plan::patience);
  return std::chrono::duration<double, std::milli>(had - ends).count();
}

/// Who would have the lock next is killed just before it is released: how long after that another has it, in ms.
double after_next_in_line() {
  const real_redis server;
  test::raw_client admin(server);
  asio::io_context io(1);
  auto redis = make_client(io, of_url(server.unix_url()));
  lease held;
  asio::co_spawn(io, lock_first(redis.mutex(wanted), held), rethrow);
  run_handlers(
      io, [&] { return held.held(); }, clock::now() + plan::patience);
  auto victim = start_locker(server, default_ttl);
  wait_for_waiters(admin, 1);
  const auto other = start_locker(server, default_ttl);
  wait_for_waiters(admin, 2);
  victim.reset();
  const auto begun = clock::now();
  asio::co_spawn(io, unlock_first(held), rethrow);
  io.run();
  const auto had = other->result_until(clock::now() + plan::patience);
  return std::chrono::duration<double, std::milli>(had - begun).count();
}

std::vector<finding> takeover(const plan& p) {
  const milliseconds ttl(p.scaled(1'000) + 200);
  std::vector<double> holder, next;
  p.rounds("takeover", [&] {
    holder.push_back(after_holder(ttl, lock_and_keep));
    next.push_back(after_next_in_line());
  });
  return {{std::ranges::max(holder)}, {std::ranges::max(next)}};
}

// ---- a worker on one of several processes

asio::awaitable<void> wait_until_cancelled(asio::steady_timer& timer) {
  error_code cancelled;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

/// Tells when its body begins, which never ends.
void keep_and_tell(const real_redis& server, milliseconds ttl, const teller<clock::time_point>& tell) {
  asio::io_context io(1);
  auto settings = of_url(server.unix_url());
  settings.ttl = ttl;
  auto redis = make_client(io, std::move(settings));
  asio::steady_timer never(io, clock::time_point::max());
  auto body = [&](lease&) {
    tell(clock::now());
    return wait_until_cancelled(never);
  };
  asio::co_spawn(io, keep_running(redis.mutex(wanted), body), rethrow);
  io.run();
}

/// The body of a worker ends: how long after that the body of the next one begins, in ms.
double after_body() {
  const real_redis server;
  test::raw_client admin(server);
  asio::io_context io(1);
  auto redis = make_client(io, of_url(server.unix_url()));
  asio::steady_timer end(io, clock::time_point::max());
  bool runs = false;
  auto body = [&](lease&) {
    runs = true;
    return wait_until_cancelled(end);
  };
  asio::co_spawn(io, keep_running(redis.mutex(wanted), body, {.restart = restart_policy::on_failure}), rethrow);
  run_handlers(
      io, [&] { return runs; }, clock::now() + plan::patience);
  const auto next = start_locker(server, default_ttl, keep_and_tell);
  wait_for_waiters(admin, 1);
  const auto begun = clock::now();
  end.cancel();
  io.run();
  const auto runs_again = next->result_until(clock::now() + plan::patience);
  return std::chrono::duration<double, std::milli>(runs_again - begun).count();
}

std::vector<finding> keep(const plan& p) {
  const milliseconds ttl(p.scaled(1'000) + 200);
  std::vector<double> killed, ended;
  p.rounds("keep", [&] {
    killed.push_back(after_holder(ttl, keep_and_tell));
    ended.push_back(after_body());
  });
  return {{std::ranges::max(killed)}, {std::ranges::max(ended)}};
}

}  // namespace

std::vector<scenario> waiting_scenarios() {
  return {{"waiters-100k",
           {{"waiters-100k/memory", "bytes of a waiter beyond its caller's frame", at_most(1024)},
            {"waiters-100k/subscriptions", "subscriptions", at_most(1)},
            {"waiters-100k/hand-over", "from one to the next / a bare round trip", at_most(1.5)}},
           waiters},
          {"takeover",
           {{"takeover/holder", "ms after the end of the TTL of a holder that was killed, at most", at_most(5)},
            {"takeover/next", "ms after the release, the next in line killed, at most", at_most(50)}},
           takeover},
          {"keep",
           {{"keep/killed", "ms after the end of the TTL of a worker that was killed, at most", at_most(50)},
            {"keep/ended", "ms after the end of a worker's body, at most", at_most(10)}},
           keep}};
}

}  // namespace holdfast::bench
