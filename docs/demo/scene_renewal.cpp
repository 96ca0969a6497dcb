// SPDX-License-Identifier: BSL-1.0
// A holder that works for longer than its TTL.
#include "stage.hpp"

namespace holdfast::demo {

using namespace std::chrono_literals;

asio::awaitable<void> renewal(stage& on) {
  constexpr auto ttl = 900ms, work = 3000ms;
  const std::string lock = "renewal", key = on.key(lock);
  on.shown.scene("2  Renewal: TTL " + in_ms(ttl) + ", work " + in_ms(work));
  job one;
  one.actor = "A";
  one.lock = lock;
  one.ttl = ttl;
  auto* holder = co_await on.start(one);
  holder->order("go");
  const auto since = (co_await on.expect(*holder, "holding")).at;
  const auto owner = on.judge.holders(key);
  on.say("redis", "HGETALL: " + to_string(owner), lock);

  int renewals = 0;
  auto least = milliseconds(ttl);
  auto last = on.judge.ttl(key);
  while (last && steady_clock::now() < since + work) {
    co_await on.pause(10ms);
    const auto left = on.judge.ttl(key);
    if (left && *left > *last) {
      ++renewals;
      on.say("redis", "renewed: the TTL was down to " + in_ms(*last), lock);
    }
    last = left;
    least = std::min(least, left.value_or(0ms));
  }
  const auto worked = steady_clock::now() - since;
  const auto still = on.judge.holders(key);
  on.judge.check(last.has_value(), "the lock to exist all the time", "no key after " + in_ms(worked));
  on.judge.check(still == owner && owner.size() == 1, "the same owner after " + in_ms(worked), to_string(still));
  // Fewer could not have kept it: each lasts one TTL.
  const auto needed = static_cast<int>(work / ttl);
  on.judge.check(renewals >= needed, "at least " + std::to_string(needed) + " renewals", std::to_string(renewals));
  holder->order("release");
  co_await on.expect(*holder, "released");
  on.judge.check(!on.judge.exists(key), "no key after the release", to_string(on.judge.holders(key)));
  co_await on.end(holder);
  on.judge.verdict("held for " + in_ms(worked) + ", renewed " + counted(static_cast<std::size_t>(renewals), "time") +
                   ", TTL never below " + in_ms(least) + ", owner unchanged");
}

}  // namespace holdfast::demo
