// SPDX-License-Identifier: BSL-1.0
// One lock for all: many tasks of several processes increment a number that nothing else protects.
#include <algorithm>

#include "check_witness.hpp"
#include "stage.hpp"

namespace holdfast::demo {

using namespace std::chrono_literals;

namespace {

constexpr int processes = 4, tasks = 3, rounds = 20;
constexpr long long total = processes * tasks * rounds;
const std::string lock = "contention";

// The pauses between two processes: the time from the release to the next one's entry.
std::vector<steady_clock::duration> hand_overs(const std::vector<witness::entry>& lines) {
  std::vector<steady_clock::duration> all;
  for (std::size_t i = 1; i < lines.size(); ++i)
    if (lines[i].process() != lines[i - 1].process()) all.push_back(lines[i].entered - lines[i - 1].left);
  std::sort(all.begin(), all.end());
  return all;
}

// While the first task is inside, and inside once more in a function that it calls.
asio::awaitable<void> look_at_the_nested_holder(stage& on, std::vector<actor*> crew) {
  auto& first = *crew[0];
  const auto key = on.key(lock);
  first.order("go");
  co_await on.expect(first, "nested");
  const auto inside = on.judge.holders(key);
  on.say("redis", "HGETALL: " + to_string(inside), lock);
  on.judge.check(inside.size() == 1 && inside[0].count == 2, "one holder that is inside twice", to_string(inside));

  for (auto* other : crew)
    if (other != &first) other->order("go");
  on.say("demo", counted((processes - 1) * tasks, "task") + " of the other processes want in, and " +
                     std::to_string(tasks - 1) + " of " + first.what.actor);
  auto all_wait = [&] { return on.judge.subscribers(key) >= processes - 1; };
  co_await on.until(all_wait);
  const auto listening = on.judge.subscribers(key);
  on.say("redis", "PUBSUB NUMSUB: " + counted(static_cast<std::size_t>(listening), "subscriber") +
                      ", at most one for each waiting process");
  on.judge.check(listening >= processes - 1 && listening <= processes, "3 or 4 subscribers for 4 processes",
                 std::to_string(listening));

  if (on.where().broken_owner_check) {
    crew[1]->order("break");
    co_await on.expect(*crew[1], "broke");
  }
  co_await on.pause(150ms);
  const auto lines = witness(on.where().folder + std::string(witness_name)).read();
  on.judge.check(lines.empty(), "nobody to write while " + first.what.actor + ".1 is inside",
                 lines.empty() ? "" : counted(lines.size(), "line") + ", the first by " + lines[0].who);
  const auto still = on.judge.holders(key);
  on.judge.check(still == inside, "the same holder as before: " + to_string(inside), to_string(still));
  first.order("continue");
  co_await on.expect(first, "unnested");
  const auto after = on.judge.holders(key);
  on.say("redis", "HGETALL: " + to_string(after), lock);
  on.judge.check(after.size() == 1 && after[0].field == inside[0].field && after[0].count == 1,
                 "the same holder, inside once", to_string(after));
  first.order("continue");
}

}  // namespace

asio::awaitable<void> contention(stage& on) {
  on.shown.scene("1  Contention: " + counted(processes, "process") + " × " + counted(tasks, "task") + " × " +
                 counted(rounds, "round") + ", one lock, one file that nothing else protects");
  std::vector<job> jobs;
  for (int n = 1; n <= processes; ++n) {
    auto& one = jobs.emplace_back();
    one.what = job::role::contend;
    one.actor = "P" + std::to_string(n);
    one.lock = lock;
    one.tasks = tasks;
    one.rounds = rounds;
    one.pauses = n == 1;
  }
  const auto crew = co_await on.start(jobs);
  co_await look_at_the_nested_holder(on, crew);
  for (auto* one : crew) co_await on.expect(*one, "done", 20s);
  co_await on.end(crew);

  const auto lines = witness(on.where().folder + std::string(witness_name)).read();
  check_witness(on, lines, processes * tasks, rounds);
  const auto gaps = hand_overs(lines);
  // Without a message a waiter tries again after 5 s.
  if (on.judge.check(gaps.size() >= processes - 1 && gaps.back() < 4s,
                     "hand-overs between all processes, each within 4 s: by message, not by polling",
                     counted(gaps.size(), "hand-over") + (gaps.empty() ? "" : ", the longest " + in_ms(gaps.back()))))
    on.say("demo", counted(gaps.size(), "hand-over") + " from process to process by message: median " +
                       in_ms(gaps[gaps.size() / 2]) + ", longest " + in_ms(gaps.back()));
  on.judge.check(!on.judge.exists(on.key(lock)), "the lock free at the end", to_string(on.judge.holders(on.key(lock))));
  on.judge.verdict("the file counts 1 to " + std::to_string(total) +
                   " without gap or repetition, never two tasks inside");
}

}  // namespace holdfast::demo
