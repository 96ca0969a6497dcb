// SPDX-License-Identifier: BSL-1.0
// A primary dies, and sentinels put a replica in its place: before a holder, a waiter and a counter.
#include <algorithm>

#include "check_witness.hpp"
#include "stage.hpp"
#include "support/real_sentinel.hpp"
#include "support/wait_for_servers.hpp"

namespace holdfast::demo {

using namespace std::chrono_literals;

namespace {

constexpr int counting_processes = 2, counting_tasks = 2, counting_rounds = 150;
constexpr auto ttl = 10'000ms;
constexpr auto missed_after = 1'000ms;  // on a busy machine half of that replaces servers that are well
const std::string held = "failover", counted_under = "counter";

// The judge looks at a server of this scene, until the scene ends.
class other_eyes {
 public:
  explicit other_eyes(stage& on) : on_(on) {}
  other_eyes(const other_eyes&) = delete;
  other_eyes& operator=(const other_eyes&) = delete;
  ~other_eyes() {
    try {
      on_.judge.look_at(on_.where().url);
    } catch (const std::exception&) {  // interrupted, and the server with us
    }
  }

 private:
  stage& on_;
};

std::string number_of(const test::real_sentinel& servers) {
  return "server " + std::to_string(servers.primary_number() + 1);
}

std::vector<job> jobs_of(const std::string& url) {
  std::vector<job> all(2 + counting_processes);
  for (auto& one : all) one.url = url, one.ttl = ttl;
  all[0].actor = "A";
  all[1].actor = "B";
  all[0].lock = all[1].lock = held;
  for (int n = 1; n <= counting_processes; ++n) {
    auto& one = all[static_cast<std::size_t>(1 + n)];
    one.what = job::role::contend;
    one.actor = "P" + std::to_string(n);
    one.lock = counted_under;
    one.tasks = counting_tasks;
    one.rounds = counting_rounds;
    one.fails_over = true;
  }
  return all;
}

asio::awaitable<void> let_all_begin(stage& on, const std::vector<actor*>& crew, const witness& counter) {
  crew[0]->order("go");
  co_await on.expect(*crew[0], "holding");
  crew[1]->order("go");
  co_await on.expect(*crew[1], "waiting");
  auto subscribed = [&] { return on.judge.subscribers(on.key(held)) == 1; };
  on.judge.check(co_await on.until(subscribed), "one subscriber: B",
                 std::to_string(on.judge.subscribers(on.key(held))));
  for (std::size_t n = 2; n < crew.size(); ++n) crew[n]->order("go");
  on.say("demo", counted(counting_processes * counting_tasks, "task") +
                     " of P1 and P2 count under a lock; a grant needs one replica");
  auto under_way = [&] { return counter.last_number() >= counting_processes * counting_tasks * counting_rounds / 4; };
  on.judge.check(co_await on.until(under_way, 20s), "a quarter of the numbers", std::to_string(counter.last_number()));
}

// When the primary died, and when another was announced.
struct change {
  steady_clock::time_point killed, announced;
};

asio::awaitable<change> fail_over(stage& on, test::real_sentinel& servers) {
  servers.replicate();
  on.say("demo", "kills " + number_of(servers) + ", the primary, with SIGKILL", held);
  on.judge.look_away();
  change times{steady_clock::now(), {}};
  servers.primary().kill();
  while (!servers.announced()) {
    if (steady_clock::now() > times.killed + 30s) throw scene_failed("another primary", "none within 30 s");
    co_await on.pause(20ms);
  }
  times.announced = steady_clock::now();
  on.judge.look_at(servers.primary().unix_url());
  on.say("sentinels",
         number_of(servers) + " is the primary: all of them, " + in_ms(times.announced - times.killed) +
             " after the death of the other",
         held);
  co_return times;
}

// The longest time in which nobody wrote.
steady_clock::duration pause_of(const std::vector<witness::entry>& lines) {
  auto longest = steady_clock::duration::zero();
  for (std::size_t i = 1; i < lines.size(); ++i) longest = std::max(longest, lines[i].left - lines[i - 1].left);
  return longest;
}

asio::awaitable<void> pass_on(stage& on, actor& holder, actor& waiter) {
  on.judge.check(waiter.inbox.empty() || waiter.inbox.back().event != "holding", "B to wait while A holds the lock",
                 "that B holds it");
  auto listening = [&] { return on.judge.subscribers(on.key(held)) == 1; };
  on.judge.check(co_await on.until(listening), "B to listen at the new primary",
                 std::to_string(on.judge.subscribers(on.key(held))));
  holder.order("release");
  co_await on.expect(holder, "released");
  co_await on.expect(waiter, "holding", 5s);
  waiter.order("release");
  co_await on.expect(waiter, "released");
}

}  // namespace

asio::awaitable<void> failover(stage& on) {
  on.shown.scene("A failover: a primary, two replicas, and three sentinels that miss it after " + in_ms(missed_after) +
                 "; TTL " + in_ms(ttl));
  test::real_sentinel servers;
  for (std::size_t n = 0; n < servers.sentinels; ++n)
    test::briefly(servers.sentinel(n))("SENTINEL", "SET", servers.name, "down-after-milliseconds",
                                       missed_after.count());
  const other_eyes at_them(on);
  on.judge.look_at(servers.primary().unix_url());
  on.say("sentinels", number_of(servers) + " is the primary");
  const witness counter(on.where().folder + std::string(witness_name));
  const auto crew = co_await on.start(jobs_of(servers.url()));
  auto &holder = *crew[0], &waiter = *crew[1];
  co_await let_all_begin(on, crew, counter);
  const auto owner = on.judge.holders(on.key(held));

  const auto times = co_await fail_over(on, servers);
  const auto suspended = (co_await on.expect(holder, "suspended")).at;
  const auto changed = (co_await on.expect(holder, "changed")).at;
  const auto restored = (co_await on.expect(holder, "restored")).at;
  const auto still = on.judge.holders(on.key(held));
  on.say("redis", number_of(servers) + " says: HGETALL: " + to_string(still), held);
  on.judge.check(still == owner && owner.size() == 1, "the same owner: " + to_string(owner), to_string(still));
  co_await pass_on(on, holder, waiter);

  for (std::size_t n = 2; n < crew.size(); ++n) co_await on.expect(*crew[n], "done", 60s);
  co_await on.end(crew);
  const auto lines = counter.read();
  check_witness(on, lines, counting_processes * counting_tasks, counting_rounds);
  on.judge.check(!lines.empty() && lines.front().left < times.killed && lines.back().left > times.announced,
                 "numbers from before the failover and after it", "only from one side");
  auto no_key = [&] { return on.judge.keys_with(on.where().id, {}).empty(); };
  on.judge.check(co_await on.until(no_key), "no key at the end",
                 counted(on.judge.keys_with(on.where().id, {}).size(), "key"));
  on.judge.verdict("A was suspended for " + in_ms(restored - suspended) + ", and confirmed " +
                   in_ms(restored - changed) + " after it heard of the new primary; the file counts 1 to " +
                   std::to_string(lines.size()) + " without gap or repetition, with a pause of " +
                   in_ms(pause_of(lines)));
}

}  // namespace holdfast::demo
