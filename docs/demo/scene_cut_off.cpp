// SPDX-License-Identifier: BSL-1.0
// A holder whose network goes silent: no error, no answer. It must stop before another can start.
#include "gate.hpp"
#include "stage.hpp"

namespace holdfast::demo {

using namespace std::chrono_literals;

namespace {

const std::string cut_off_lock = "cut-off";

// It finds its connection dead, makes a new one, and releases what is no longer its own.
asio::awaitable<void> let_the_old_holder_back(stage& on, gate& network, actor& holder,
                                              std::vector<judge::holder> present) {
  on.say("demo", "mends the network");
  network.mend();
  holder.order("again");
  co_await on.expect(holder, "busy");
  co_await on.pause(50ms);
  const auto undisturbed = on.judge.holders(on.key(cut_off_lock));
  on.say("redis", "HGETALL: " + to_string(undisturbed), cut_off_lock);
  on.judge.check(undisturbed == present, "A's late release to leave B's hold alone: " + to_string(present),
                 to_string(undisturbed));
}

}  // namespace

asio::awaitable<void> cut_off_holder(stage& on) {
  constexpr auto ttl = 2000ms;
  constexpr auto drift = 0.05;  // how much faster the server's clock may be: a holder stops that much earlier
  const std::string key = on.key(cut_off_lock);
  on.shown.scene("4  A holder is cut off from Redis: its network goes silent, TTL " + in_ms(ttl));
  gate network(on.where().folder + "/network", detail::parse_url(on.where().url));
  job works, waits;
  works.what = job::role::guard;
  works.actor = "A";
  works.url = url_through(network.path(), on.where().url);
  works.drift = drift;
  waits.actor = "B";
  works.lock = waits.lock = cut_off_lock;
  works.ttl = waits.ttl = ttl;
  std::vector<job> jobs{works, waits};
  const auto crew = co_await on.start(std::move(jobs));
  auto& holder = *crew[0];
  auto& waiter = *crew[1];
  holder.order("go");
  co_await on.expect(holder, "holding");
  waiter.order("go");
  co_await on.expect(waiter, "waiting");
  co_await on.pause(100ms);
  const auto before = on.judge.holders(key);

  network.silence();
  on.say("demo", "cuts A off: from now on its bytes disappear", cut_off_lock);
  co_await on.pause(20ms);  // what it had sent has arrived by now
  const auto end = on.judge.end_of(key);
  on.judge.check(end.has_value() && before.size() == 1, "A to hold the lock", to_string(before));
  if (!end) throw scene_failed("A's lock on the server", "no key");
  const auto told = (co_await on.expect(holder, "told", ttl + 3s)).at;
  on.say("redis", on.judge.exists(key) ? "the lease is still there" : "the lease has ended meanwhile", cut_off_lock);
  co_await on.expect(holder, "stopped");
  co_await on.pause(std::chrono::ceil<milliseconds>(end->latest - steady_clock::now()));
  on.say("redis", "by now A's lease has ended on the server");
  const auto started = (co_await on.expect(waiter, "holding", ttl + 5s)).at;
  const auto next = on.judge.holders(key);
  on.say("redis", "HGETALL: " + to_string(next), cut_off_lock);
  on.judge.check(told < end->earliest, "A to be told before its lease ends on the server",
                 in_ms(told - end->earliest) + " after its end");
  on.judge.check(told < started, "A to stop before B starts", "B started " + in_ms(told - started) + " earlier");
  on.judge.check(next.size() == 1 && next != before, "B to hold the lock", to_string(next));

  co_await let_the_old_holder_back(on, network, holder, next);
  waiter.order("release");
  co_await on.expect(waiter, "released");
  co_await on.end(crew);
  on.judge.check(!on.judge.exists(key), "no key at the end", to_string(on.judge.holders(key)));
  on.judge.verdict("A was told " + in_ms(end->earliest - told) + " before its lease ended on the server; B started " +
                   in_ms(started - told) + " after A had stopped");
}

}  // namespace holdfast::demo
