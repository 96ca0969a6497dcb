// SPDX-License-Identifier: BSL-1.0
// A task of two writes. Checked one by one, a stale holder can get its first write in before a newer holder comes, and
// its second refused: half a task. In one step with the check inside, it is done whole or not at all.
#include <iostream>

#include "fenced_store.hpp"

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis+unix:///run/redis/redis.sock";
  fenced_store store(url);
  const std::uint64_t older = 41, newer = 42;  // of two holds
  const auto balance = [&] {
    return store.run_unfenced({"HGET", "balance", "ann"}) + " + " + store.run_unfenced({"HGET", "balance", "bob"});
  };
  store.run_unfenced({"HSET", "balance", "ann", "100", "bob", "100"});
  std::cout << std::boolalpha << "ann + bob: " << balance() << '\n';

  std::cout << "one by one: " << store.run(older, {{"HINCRBY", "balance", "ann", "-30"}});
  store.run(newer, {{"HSET", "balance", "seen", "1"}});  // the older holder was paused here, and the next one works
  std::cout << ", " << store.run(older, {{"HINCRBY", "balance", "bob", "30"}}) << ", ann + bob: " << balance() << '\n';

  store.run_unfenced({"DEL", "balance:fence"});
  store.run_unfenced({"HSET", "balance", "ann", "100", "bob", "100"});
  store.run(newer, {{"HSET", "balance", "seen", "1"}});
  const bool done = store.run(older, {{"HINCRBY", "balance", "ann", "-30"}, {"HINCRBY", "balance", "bob", "30"}});
  std::cout << "in one step: " << done << ", ann + bob: " << balance() << '\n';
}

// Output:
//   ann + bob: 100 + 100
//   one by one: true, false, ann + bob: 70 + 100
//   in one step: false, ann + bob: 100 + 100
