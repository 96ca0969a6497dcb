// SPDX-License-Identifier: BSL-1.0
// Lives of latches in virtual time. Connections lose, delay and repeat commands. Processes are paused and killed. A
// client of Redisson counts as well. After each script the count is what was set, less each call that has run, once. A
// caller that waited is let in when the count is 0, and not before.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/latch/countdown_latch.hpp"
#include "sim/coverage.hpp"
#include "sim/deployment.hpp"
#include "sim/judge/counted_latch.hpp"
#include "sim/judge/findings.hpp"
#include "sim/sim_client.hpp"
#include "sim/wire_trouble.hpp"
#include "support/catch.hpp"
#include "support/redisson_scripts.hpp"
#include "support/run_at.hpp"
#include "support/seeded_random.hpp"

using namespace holdfast;
using namespace holdfast::sim;
using namespace std::chrono_literals;

namespace {

constexpr milliseconds longest_pause{3'000};

class latch_life {
 public:
  latch_life(std::uint64_t seed, coverage& met)
      : random_(seed), met_(met), servers_(detail::deployment::one_server, plan_, random_, log_, 1'000ms) {
    node().on_script = [this](std::string_view digest, const arguments& asked, const reply& answer) {
      look(digest, asked, answer);
    };
    for (int n = 0; n < 3; ++n) add_client();
  }
  ~latch_life() {
    for (auto& each : servers_.machines()) each.shut_down();
    plan_.clear();
  }

  void live() {
    set();
    for (int act = 0; act < 200; ++act) {
      run_for(between(20us, chance(30) ? 60ms : 4ms));
      if (chance(25)) disturb();
      act_of(some_client());
    }
    ending_ = true;
    for (auto* const client : alive_) client->process().pause(false);
    // A count-down goes on for 30 s, and is answered long before in a network that is well again.
    settle([this] { return counts_under_way() == 0; }, "a count-down is not answered");
    while (!latch_.open()) count_as_redisson();
    settle([this] { return waits_under_way() == 0; }, "a caller still waits for a latch that is open");
    for (const auto& mark : confirmed_)
      if (!ran_.contains(mark)) throw violation("a call was confirmed, and has not run");
  }
  std::size_t confirmed() const noexcept { return confirmed_.size(); }
  std::size_t repeated() const noexcept { return repeated_; }
  std::size_t let_in() const noexcept { return let_in_; }

 private:
  sim::node& node() { return servers_.machines().front().program(); }
  bool chance(unsigned percent) { return random_.next() % 100 < percent; }
  nanoseconds between(nanoseconds from, nanoseconds to) { return from + random_.up_to(to - from); }
  sim_client& some_client() { return *alive_[random_.next() % alive_.size()]; }
  bool lives(const sim_client& client) const {
    return std::find(alive_.begin(), alive_.end(), &client) != alive_.end();
  }
  std::size_t sum_of_living(const std::map<const sim_client*, std::size_t>& calls) const {
    std::size_t sum = 0;
    for (const auto& [client, number] : calls) sum += lives(*client) ? number : 0;
    return sum;
  }
  std::size_t counts_under_way() const { return sum_of_living(counting_); }
  std::size_t waits_under_way() const { return sum_of_living(waiting_); }

  void add_client() {
    config settings;
    settings.reconnect_cap = 200ms;
    settings.command_timeout = 100ms;
    settings.poll_cap = 500ms;
    auto& made = *clients_.emplace_back(
        std::make_unique<sim_client>(plan_, servers_, log_, met_, settings, random_.next(), clients_.size()));
    auto& way = made.ways().front();
    way.now = way.usual = {between(20us, 300us), between(20us, 300us)};
    alive_.push_back(&made);
  }
  void run_for(nanoseconds time) {
    const auto end = plan_.now() + time;
    while (plan_.next() && *plan_.next() <= end) {
      plan_.step();
      if (!latch_.violated().empty()) throw violation(latch_.violated());
      if (!wrong_.empty()) throw violation(wrong_);
    }
    plan_.run_until(end);
  }
  template <class Condition>
  void settle(Condition over, const char* otherwise) {
    for (const auto end = plan_.now() + 40s; !over(); run_for(10ms))
      if (plan_.now() > end) throw violation(otherwise);
  }

  detail::shared_keys keys() const { return std::make_shared<const detail::lock_keys>(detail::countdown_latch, "l"); }
  static std::string mark_of(const detail::owner_field& field) {
    return "holdfast_done:{l}:" + std::string(std::string_view(field.to_text()));
  }

  void set() {
    auto& client = some_client();
    test::run_at(client.process(), plan_.now(), [this, &client] {
      client.locks().latches().try_set(keys(), 1 + random_.next() % 300, client.locks().new_field(),
                                       [](detail::answer<bool>&&) {});
    });
    run_for(50ms);
  }
  void act_of(sim_client& client) {
    test::run_at(client.process(), plan_.now(), [this, &client] {
      if (ending_ || !lives(client)) return;
      const auto dice = random_.next() % 10;
      if (dice < 6) return count_down(client);
      if (dice < 8) return wait(client);
      if (dice < 9) return count_as_redisson();
      if (places_.empty()) return;
      const auto place = places_[random_.next() % places_.size()];
      if (place.second == &client) place.first->cancel();
    });
  }
  void count_down(sim_client& client) {
    const auto field = client.locks().new_field();
    const auto n = static_cast<std::uint32_t>(1 + random_.next() % 3);
    ++counting_[&client];
    const auto answered = [this, &client, mark = mark_of(field)](const std::optional<detail::failure>& failed) {
      --counting_[&client];
      if (!failed) confirmed_.insert(mark);
    };
    client.locks().latches().count_down(keys(), n, field, answered);
  }
  void wait(sim_client& client) {
    ++waiting_[&client];
    const auto deadline = chance(50) ? detail::time_point::max() : plan_.now() + between(1ms, 1s);
    auto answered = [this, &client](detail::answer<bool>&& open) {
      --waiting_[&client];
      if (open.failed || !open.value) return;
      ++let_in_;
      if (was_set_ && !latch_.open()) wrong_ = "a caller was let in by a closed latch";
    };
    if (auto place = client.locks().latches().wait(keys(), deadline, std::move(answered)))
      places_.emplace_back(std::move(place), &client);
    if (places_.size() > 20) places_.erase(places_.begin());
  }
  void count_as_redisson() {
    latch_.count(1);
    node().execute({"EVAL", std::string(test::redisson::count_down), "2", "l", "redisson_countdownlatch__channel__{l}",
                    "0", "publish"});
    check();
  }

  void disturb() {
    auto& client = some_client();
    const wire_trouble wires(client);
    const auto late = plan_.now() + between(1ms, 1s);
    switch (random_.next() % 6) {
      case 0: return wires.lose_replies();
      case 1: return wires.lose_requests();
      case 2: return wires.delay_requests(late);
      case 3:
      case 4:
        client.process().pause(true);
        plan_.after(between(1ms, longest_pause), [this, &client] { client.process().pause(!lives(client)); });
        return;
      default:
        if (!chance(40)) return;
        client.process().pause(true);
        std::erase(alive_, &client);
        return add_client();
    }
  }

  void look(std::string_view digest, const arguments& asked, const reply& answer) {
    for (const auto* const script : {&detail::lua::latch_set, &detail::lua::count_down}) {
      if (digest != script->sha1) continue;
      const auto& mark = asked.at(4);
      const auto n = std::stoll(asked.at(5));
      const bool sets = script == &detail::lua::latch_set;
      if (!answer.is_error()) {
        repeated_ += !ran_.insert(mark).second;
        was_set_ |= sets;
      }
      sets ? latch_.ran_set(mark, n, answer, plan_.now(), time_point::max())
           : latch_.ran_count_down(mark, n, answer, plan_.now(), time_point::max());
      check();
    }
  }
  void check() {
    const auto* const count = node().keys().find("l");
    latch_.compare(count ? std::stoll(*count->text()) : 0);
  }

  scheduler plan_;
  test::seeded_random random_;
  trace log_{nullptr};
  coverage& met_;
  deployment servers_;
  counted_latch latch_;
  bool was_set_ = false;
  std::string wrong_;                // a rule that a caller saw broken
  std::set<std::string> ran_;        // marks
  std::set<std::string> confirmed_;  // the marks of count-downs that were answered without a failure
  std::vector<std::unique_ptr<sim_client>> clients_;
  std::vector<sim_client*> alive_;
  std::vector<std::pair<detail::cancellable_ptr, const sim_client*>> places_;
  std::map<const sim_client*, std::size_t> counting_, waiting_;  // calls that are not answered
  std::size_t repeated_ = 0, let_in_ = 0;
  bool ending_ = false;
};

}  // namespace

TEST_CASE("a latch counts each call once and opens once, whatever becomes of its clients") {
  coverage met;
  std::size_t confirmed = 0, repeated = 0, let_in = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    latch_life life(seed, met);
    INFO("seed " << seed);
    REQUIRE_NOTHROW(life.live());
    confirmed += life.confirmed();
    repeated += life.repeated();
    let_in += life.let_in();
  }
  CHECK(confirmed > 10'000);
  CHECK(repeated > 100);
  CHECK(let_in > 1'000);
}
