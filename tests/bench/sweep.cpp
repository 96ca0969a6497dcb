// SPDX-License-Identifier: BSL-1.0
#include "bench/sweep.hpp"

#include <algorithm>
#include <array>
#include <boost/version.hpp>
#include <map>
#include <utility>
#include <vector>

#include "bench/baselines.hpp"
#include "bench/contest.hpp"
#include "bench/pairs.hpp"
#include "bench/work.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::real_redis;

constexpr int times = 3;  // each point; all of a plot before the next time, so that they see the same machine
constexpr std::array under_way{1, 4, 16, 64, 256, 1024, 4096};
constexpr std::array tasks{2, 4, 8, 16, 32, 64, 128};

std::string words_about_it() {
  const real_redis server;
  const auto info = test::raw_client(server)("INFO", "server").to_string();
  const auto value_of = [&](const std::string& name) {
    const auto at = info.find(name + ":");
    return at == info.npos ? "" : info.substr(at + name.size() + 1, info.find('\r', at) - at - name.size() - 1);
  };
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "g++ " __VERSION__;
#endif
  return "{\"machine\":{\"redis\":\"" + value_of("redis_version") + "\",\"compiler\":\"" + compiler +
         "\",\"boost\":\"" + std::to_string(BOOST_VERSION / 100'000) + "." +
         std::to_string(BOOST_VERSION / 100 % 1000) + "\"}}";
}

/// Every value that was measured, of each series at each x.
class plot {
 public:
  plot(std::string name, const std::function<void(const std::string&)>& say) : name_(std::move(name)), say_(say) {}
  void add(const std::string& series, int x, double y) { all_[series][x].push_back(y); }
  void tell() const {
    for (const auto& [series, points] : all_)
      for (const auto& [x, values] : points)
        say_("{\"plot\":\"" + name_ + "\",\"series\":\"" + series + "\",\"x\":" + std::to_string(x) +
             ",\"y\":" + std::to_string(median(values)) + "}");
  }

 private:
  const std::string name_;
  const std::function<void(const std::string&)>& say_;
  std::map<std::string, std::map<int, std::vector<double>>> all_;
};

void throughput(const plan& p, plot& to) {
  const real_redis server;
  load_scripts(server);
  test::raw_client admin(server);
  const redisson_sequences redisson(admin);
  const auto path = server.socket_path();
  p.rounds("sweep of pairs", times, [&] {
    for (const int width : under_way) {
      const auto pairs = p.scaled(width < 16 ? 20'000 : 60'000);
      to.add("holdfast", width, holdfast_pairs(path, width, pairs).rate);
      to.add("bare", width, bare_pairs(path, width, pairs, our_pair).rate);
      to.add("redisson", width, bare_pairs(path, width, pairs, [&](int slot) { return redisson.pair(slot); }).rate);
    }
  });
}

/// They think for so short a time that one of two always waits while the other holds, and for so long that who has left
/// is not back before who was woken.
void hand_over(const plan& p, plot& to) {
  const std::chrono::milliseconds how_long(p.scaled(1'000) + 100);
  p.rounds("sweep of hand-overs", times, [&] {
    for (const int all : tasks)
      for (const int processes : {1, 2})
        for (const bool redisson : {false, true}) {
          const auto r = run({.processes = processes,
                              .turns = true,
                              .redissons = redisson ? processes : 0,
                              .think = 500us,
                              .all_tasks = all},
                             how_long);
          const std::string who = redisson ? "redisson" : "holdfast";
          processes == 1 ? to.add(who, all, r.own_hand_over) : to.add(who + "-processes", all, r.hand_over);
          if (processes == 2) to.add("two-trips", all, r.two_trips);
        }
  });
}

}  // namespace

void sweep(const plan& p, const std::function<void(const std::string&)>& say) {
  say(words_about_it());
  plot pairs("throughput", say), times_of_hand_over("hand_over", say);
  throughput(p, pairs);
  pairs.tell();
  hand_over(p, times_of_hand_over);
  times_of_hand_over.tell();
}

}  // namespace holdfast::bench
