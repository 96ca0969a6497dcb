// SPDX-License-Identifier: BSL-1.0
// Clients that take turns beside clients that take none, in virtual time. The windows are real. The lock and the
// network are a model.
#include <algorithm>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "support/catch.hpp"
#include "support/seeded_random.hpp"
#include "sync/line/handoff_window.hpp"

using holdfast::detail::handoff_window;
using holdfast::detail::stint;
using holdfast::detail::time_point;
using namespace std::chrono_literals;

namespace {

using duration = handoff_window::duration;

constexpr duration way = 40us;  // to the server, or back
/// Of one side: how long a task holds the lock, and how long it then does without.
struct habit {
  duration hold, think = 3ms;
};

struct crowd {
  int clients;  // with turns, and as many without
  habit ours, theirs;
  duration reaction;  // of a client without turns, from a message to its next attempt; up to twice as long
  int tasks = 16;     // of all clients
};

/// One lock, and the clients that want it.
class contest {
 public:
  explicit contest(crowd of) : of_(of), random_(1) {
    for (int n = 0; n < of_.clients; ++n) {
      ours_.push_back(client{*this, true});
      others_.push_back(client{*this, false});
    }
    for (auto* const side : {&ours_, &others_})
      for (auto& each : *side)
        for (int task = 0; task < of_.tasks / (2 * of_.clients); ++task)
          at(now_ + up_to(each.habits().think), [&each] { each.wants(); });
  }

  void run(duration how_long) {
    const auto end = now_ + how_long;
    while (!events_.empty() && events_.begin()->first < end) {
      auto event = events_.extract(events_.begin());
      now_ = event.key();
      event.mapped()();
    }
  }
  double share() const { return 2. * held_by(ours_) / (held_by(ours_) + held_by(others_)); }
  double attempts() const { return static_cast<double>(attempts_) / (held_by(ours_) + held_by(others_)); }
  duration longest_wait() const {
    duration longest{};
    for (const auto& each : ours_) longest = std::max(longest, each.longest_wait);
    return longest;
  }

 private:
  struct client {
    contest& in;
    bool takes_turns;
    std::list<time_point> waits{};  // the times of the calls
    handoff_window window{time_point(1h), 0ns};
    stint turn{};
    bool holds = false, asking = false, woken = false;
    unsigned asks = 0;  // the number of the attempt that is due
    int held = 0;
    duration longest_wait{};

    const habit& habits() const { return takes_turns ? in.of_.ours : in.of_.theirs; }
    void wants() {
      waits.push_back(in.now_);
      if (waits.size() == 1 && !holds && !asking) ask_at(start());
    }
    time_point start() const { return takes_turns ? std::max(in.now_, window.cool_down_until()) : in.now_; }
    void ask_at(time_point when) {
      in.at(when, [this, number = ++asks] {
        if (number == asks && !asking && !holds && !waits.empty()) ask();
      });
    }
    void ask() {
      asking = true;
      woken = false;
      in.at(in.now_ + way, [this] {
        const bool got = !in.holder_;
        const bool barging = in.holder_ && !in.holder_->takes_turns;
        if (got) in.holder_ = this;
        ++in.attempts_;
        in.at(in.now_ + way, [this, got, barging] { answered(got, barging); });
      });
    }
    void answered(bool got, bool barging) {
      asking = false;
      if (got) {
        turn = {in.now_, static_cast<std::uint32_t>(waits.size() - 1)};
        if (takes_turns) window.begin(in.now_);
        return hold();
      }
      const auto pause = takes_turns ? window.found_busy(in.now_, barging) : duration::max();
      if (woken) return ask_at(start());
      if (pause != duration::max()) ask_at(in.now_ + pause);
    }
    void hold() {
      holds = true;
      longest_wait = std::max<duration>(longest_wait, in.now_ - waits.front());
      waits.pop_front();
      in.at(in.now_ + habits().hold + in.up_to(200us), [this] {
        ++held;
        in.at(in.now_ + habits().think, [this] { wants(); });
        if (takes_turns && !waits.empty() && window.may_pass(turn, in.now_)) {
          ++turn.passed;
          return hold();
        }
        release();
      });
    }
    void release() {
      window.release_begins(in.now_, turn);
      in.at(in.now_ + way, [this] {
        in.holder_ = nullptr;
        ++in.attempts_;
        const auto told = in.tell_others(*this);
        in.at(in.now_ + way, [this, told] {
          window.release_ends(in.now_, told, handoff_window::own_notification::none);
          holds = false;
          if (!waits.empty()) ask_at(start());
        });
      });
    }
    void hear() {
      if (takes_turns) window.hear(in.now_);
      if (waits.empty() || holds) return;
      woken = true;
      if (!asking) ask_at(takes_turns ? start() + 100us : in.now_ + in.of_.reaction + in.up_to(in.of_.reaction));
    }
  };

  /// A client without turns has another waiter, which hears of the release as well.
  std::uint64_t tell_others(client& by) {
    std::uint64_t told = 0;
    for (auto* const side : {&ours_, &others_})
      for (auto& each : *side) {
        if (&each == &by && by.takes_turns) continue;
        if (each.waits.empty()) continue;
        ++told;
        at(now_ + way, [&each] { each.hear(); });
      }
    return told;
  }
  void at(time_point when, std::function<void()> what) { events_.emplace(when, std::move(what)); }
  duration up_to(duration most) {
    return duration(static_cast<duration::rep>(random_.next() % static_cast<std::uint64_t>(most.count() + 1)));
  }
  static double held_by(const std::vector<client>& side) {
    double sum = 0;
    for (const auto& each : side) sum += each.held;
    return sum;
  }

  const crowd of_;
  holdfast::test::seeded_random random_;
  time_point now_{1h};
  std::multimap<time_point, std::function<void()>> events_;
  std::vector<client> ours_, others_;
  client* holder_ = nullptr;
  long attempts_ = 0;
};

}  // namespace

TEST_CASE("beside as many clients that take no turns each client has a fair share, if all holds are equally long") {
  const int clients = GENERATE(1, 2, 4);
  const duration hold = GENERATE(1ms, 10ms, 50ms, 500ms);
  const duration reaction = GENERATE(60us, 500us);
  const crowd of{clients, {hold}, {hold}, reaction};
  contest all(of);
  all.run(2'000 * (hold + 300us));
  CAPTURE(clients, hold.count(), reaction.count(), all.share(), all.attempts(), all.longest_wait().count());
  CHECK(all.share() > 0.8);
  CHECK(all.share() < 1.25);
  CHECK(all.attempts() < (clients < 4 ? 6 : 10));
  CHECK(all.longest_wait() < (clients < 4 ? 3 : 4) * of.tasks * hold + 100ms);
}

TEST_CASE("a lock that a client without turns leaves free is had at once, however long its holds are") {
  const duration hold = GENERATE(5ms, 20ms, 50ms);
  contest all({1, {5ms, 1ms}, {hold, 15ms}, 100us, 2});
  all.run(2'000 * (hold + 20ms));
  CAPTURE(hold.count(), all.share(), all.longest_wait().count());
  CHECK(all.share() > 0.9);
  CHECK(all.longest_wait() < hold + 30ms);
}
