// SPDX-License-Identifier: BSL-1.0
// Clients that divide the primaries of a red_lock among themselves, again and again.
#include <algorithm>
#include <memory>

#include "integration/cancellable_call.hpp"
#include "integration/red_world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr auto attempt = 5000ms;

/// A client with a path of its own to each primary.
struct contender {
  contender(red_world& w, reentrancy n, const std::function<void(config&)>& change) : in(w), nested(n) {
    for (std::size_t i = 0; i < w.size(); ++i) paths.emplace_back(w.node(i));
    redis = w.make([&](config& c) {
      for (std::size_t i = 0; i < paths.size(); ++i) c.red_lock.primaries[i] = paths[i].url();
      change(c);
    });
  }
  void ask() { call.emplace(in, redis->red_lock("m", nested).lock()); }
  bool has_it() const { return call->answer && call->answer->has_value(); }

  red_world& in;
  const reentrancy nested;
  std::deque<proxy> paths;
  std::optional<client> redis;
  std::optional<cancellable_call<lease>> call;
};

/// Counts what clients send to one server.
class attempts {
 public:
  explicit attempts(real_redis& of) : seen_(of), mark_(of) { seen_.monitor(); }
  /// Acquires of this client since the last call.
  std::size_t of(const client& who) {
    mark_("ECHO", "so far");
    std::size_t count = 0;
    for (;;) {
      const auto line = seen_.next_monitor_line(10s);
      if (!line) throw std::runtime_error("the server shows no command");
      const auto& argv = line->argv;
      if (argv.at(0) == "ECHO") return count;
      const bool acquire = line->from != "lua" && argv.size() > 6 && argv[4] == "holdfast:redlock";
      if (acquire && argv[6].starts_with(who.id())) ++count;
    }
  }

 private:
  raw_client seen_, mark_;
};

/// So many clients ask at once, and each finds some of the primaries first, so that none has a majority; unless the
/// machine is too busy to arrange that while an attempt lasts. How often the winner of each contest had to ask.
std::vector<std::size_t> rounds_of_contests(std::size_t clients, std::size_t dead, reentrancy nested,
                                            std::size_t contests) {
  red_world w;
  w.founded();
  std::deque<contender> all;
  for (std::size_t i = 0; i < clients; ++i) all.emplace_back(w, nested, [](config& c) { c.command_timeout = attempt; });
  for (auto& each : all) w.run(each.redis->connect());
  const auto alive = w.size() - dead;
  for (auto n = alive; n < w.size(); ++n) w.node(n).kill();
  attempts seen(w.node(0));
  std::vector<std::size_t> rounds;
  for (std::size_t i = 0; i < contests; ++i) {
    for (std::size_t c = 0; c < clients; ++c)
      for (std::size_t n = 0; n < alive; ++n)
        if (n % clients != c) all[c].paths[n].hold(proxy::direction::to_server);
    for (auto& each : all) each.ask();
    const auto end = std::chrono::steady_clock::now() + attempt / 2;
    w.until([&] { return w.where("m").size() == alive || std::chrono::steady_clock::now() > end; });
    for (auto& each : all)
      for (auto& path : each.paths) path.release();
    const auto has_it = [](const contender& c) { return c.has_it(); };
    w.until([&] { return std::any_of(all.begin(), all.end(), has_it); });
    auto& winner = *std::find_if(all.begin(), all.end(), has_it);
    for (auto& each : all)
      if (&each != &winner) each.call->cancel();
    w.until(
        [&] { return std::all_of(all.begin(), all.end(), [](const auto& c) { return c.call->answer.has_value(); }); });
    CHECK(std::count_if(all.begin(), all.end(), has_it) == 1);
    rounds.push_back(seen.of(*winner.redis));
    winner.call.reset();  // it is given back in the background
    w.until([&] { return w.where("m").empty(); });
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds;
}

}  // namespace

TEST_CASE("clients that divide the primaries among themselves have a winner within ten rounds") {
  constexpr std::size_t contests = 100;
  struct row {
    std::size_t clients, dead;
    reentrancy nested;
  };
  for (const auto& [clients, dead, nested] :
       {row{2, 1, reentrancy::reentrant}, row{3, 0, reentrancy::not_reentrant}, row{5, 0, reentrancy::reentrant}}) {
    INFO(clients << " clients, " << dead << " of 5 dead");
    const auto rounds = rounds_of_contests(clients, dead, nested, contests);
    CHECK(rounds.back() >= 2);  // they were divided
    CHECK(rounds[contests * 99 / 100 - 1] <= 10);
  }
}
