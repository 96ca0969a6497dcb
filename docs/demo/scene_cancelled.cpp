// SPDX-License-Identifier: BSL-1.0
// Waiters that no longer want the lock.
#include "stage.hpp"

namespace holdfast::demo {

using namespace std::chrono_literals;

asio::awaitable<void> cancelled_waiters(stage& on) {
  constexpr int waiters = 3;
  const std::string lock = "cancelled", key = on.key(lock);
  on.shown.scene("5  Waiters are cancelled, and leave nothing");
  job holds, waits;
  holds.actor = "A";
  waits.actor = "B";
  waits.tasks = waiters;
  holds.lock = waits.lock = lock;
  std::vector<job> jobs{holds, waits};
  const auto crew = co_await on.start(std::move(jobs));
  auto& holder = *crew[0];
  auto& waiting = *crew[1];
  holder.order("go");
  co_await on.expect(holder, "holding");
  const auto owner = on.judge.holders(key);
  waiting.order("go");
  for (int n = 0; n < waiters; ++n) co_await on.expect(waiting, "waiting");
  auto subscribed = [&] { return on.judge.subscribers(key) == 1; };
  on.judge.check(co_await on.until(subscribed), "one subscription for three waiters of one process",
                 std::to_string(on.judge.subscribers(key)));
  on.say("redis", "PUBSUB NUMSUB: " + std::to_string(on.judge.subscribers(key)) + "; HGETALL: " + to_string(owner),
         lock);

  const auto asked = steady_clock::now();
  waiting.order("cancel");
  auto last = asked;
  for (int n = 0; n < waiters; ++n) last = std::max(last, (co_await on.expect(waiting, "cancelled")).at);
  auto silent = [&] { return on.judge.subscribers(key) == 0; };
  on.judge.check(co_await on.until(silent), "no subscription after the cancellation",
                 std::to_string(on.judge.subscribers(key)));
  const auto channels = on.judge.channels_with(on.where().id);
  on.judge.check(channels.empty(), "no channel of the demo", std::to_string(channels.size()));
  const auto still = on.judge.holders(key);
  on.say("redis", "PUBSUB NUMSUB: " + std::to_string(on.judge.subscribers(key)) + "; HGETALL: " + to_string(still),
         lock);
  on.judge.check(still == owner && owner.size() == 1, "A's hold alone, as before: " + to_string(owner),
                 to_string(still));

  holder.order("release");
  co_await on.expect(holder, "released");
  co_await on.pause(100ms);
  on.say("redis", std::string("EXISTS: ") + (on.judge.exists(key) ? "1" : "0") + ", 100 ms after the release");
  on.judge.check(!on.judge.exists(key), "nobody to take the lock that nobody wants any more",
                 to_string(on.judge.holders(key)));
  co_await on.end(crew);
  on.judge.verdict(counted(waiters, "waiter") + " gone " + in_ms(last - asked) +
                   " after the order: no subscription, no field, no key left behind");
}

}  // namespace holdfast::demo
