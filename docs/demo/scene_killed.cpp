// SPDX-License-Identifier: BSL-1.0
// A holder that dies without a word, and the waiter that comes after it.
#include "stage.hpp"

namespace holdfast::demo {

using namespace std::chrono_literals;

asio::awaitable<void> killed_holder(stage& on) {
  constexpr auto ttl = 1500ms;
  const std::string lock = "killed", key = on.key(lock);
  on.shown.scene("3  A holder is killed: SIGKILL, TTL " + in_ms(ttl));
  job dies, waits;
  dies.actor = "A";
  waits.actor = "B";
  dies.lock = waits.lock = lock;
  dies.ttl = waits.ttl = ttl;
  std::vector<job> jobs{dies, waits};
  const auto crew = co_await on.start(std::move(jobs));
  auto& holder = *crew[0];
  auto& waiter = *crew[1];
  holder.order("go");
  co_await on.expect(holder, "holding");
  waiter.order("go");
  co_await on.expect(waiter, "waiting");
  auto subscribed = [&] { return on.judge.subscribers(key) == 1; };
  on.judge.check(co_await on.until(subscribed), "one subscriber: the waiter",
                 std::to_string(on.judge.subscribers(key)));
  co_await on.pause(200ms);

  const auto dead = on.judge.holders(key);
  holder.process.kill();
  on.say("demo", "kills process " + std::to_string(holder.process.pid()) + " of A with SIGKILL", lock);
  co_await on.pause(20ms);  // what it had sent has arrived by now
  const auto end = on.judge.end_of(key);
  on.judge.check(end.has_value(), "the lock to outlive its holder", "no key");
  const auto taken = (co_await on.expect(waiter, "holding", ttl + 5s)).at;
  const auto next = on.judge.holders(key);
  on.say("redis", "HGETALL: " + to_string(next), lock);

  const auto late = end ? taken - end->latest : steady_clock::duration::zero();
  if (end) {
    on.judge.check(taken >= end->earliest, "nobody to take over before the lease ended",
                   in_ms(end->earliest - taken) + " too early");
    on.judge.check(late < 1s, "the waiter to take over within 1 s after the lease's end", in_ms(late));
  }
  on.judge.check(next.size() == 1 && next != dead && next[0].count == 1, "one new holder",
                 to_string(next) + ", before: " + to_string(dead));
  waiter.order("release");
  co_await on.expect(waiter, "released");
  co_await on.end(&waiter);
  on.judge.check(holder.process.wait(0ms) == 128 + 9, "A ended by SIGKILL", "another status");
  on.judge.check(!on.judge.exists(key), "no key at the end", to_string(on.judge.holders(key)));
  on.judge.verdict("B took over " + in_ms(std::max(late, steady_clock::duration::zero())) +
                   " after the dead holder's lease ended");
}

}  // namespace holdfast::demo
