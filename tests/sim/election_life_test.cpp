// SPDX-License-Identifier: BSL-1.0
// Lives of elections in virtual time. Connections lose, delay and repeat commands. Candidates resign, are paused beyond
// their TTL and killed. Messages are lost. No two lead at once, terms rise, and the terms that an observer sees never
// fall. When it is quiet, all observers know the leader.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/owner.hpp>

#include "protocol/election/election_lock.hpp"
#include "sim/coverage.hpp"
#include "sim/deployment.hpp"
#include "sim/judge/findings.hpp"
#include "sim/sim_client.hpp"
#include "sim/wire_trouble.hpp"
#include "support/catch.hpp"
#include "support/run_at.hpp"
#include "support/seeded_random.hpp"

using namespace holdfast;
using namespace holdfast::sim;
using namespace std::chrono_literals;

namespace {

using leader = std::optional<detail::leader_answer>;

constexpr milliseconds ttl{400}, longest_pause{1'500}, poll_cap{2'000};

/// A client with a candidate that campaigns again and again, and an observer that never stops.
struct member {
  explicit member(std::unique_ptr<sim_client> made) : client(std::move(made)) {}

  std::shared_ptr<detail::lease_record> lead{};  // a lease outlives its engine
  const std::unique_ptr<sim_client> client;
  bool campaigns = false;
  bool lives = true;
  leader seen{};
  std::uint64_t newest = 0;  // of the terms that the observer has seen
};

class election_life {
 public:
  election_life(std::uint64_t seed, coverage& met)
      : random_(seed), met_(met), servers_(detail::deployment::one_server, plan_, random_, log_, 1'000ms) {
    node().on_script = [this](std::string_view digest, const arguments&, const reply& answer) {
      if (digest == detail::lua::campaign.sha1) elected(answer);
    };
    for (int n = 0; n < 3; ++n) add_member();
  }
  ~election_life() {
    for (auto& each : servers_.machines()) each.shut_down();
    plan_.clear();
  }

  void live() {
    for (int act = 0; act < 150; ++act) {
      run_for(between(100us, chance(30) ? 200ms : 10ms));
      if (chance(20)) disturb();
      act_of(*living_[random_.next() % living_.size()]);
    }
    for (auto* const each : living_) each->client->process().pause(false);
    settle([this] { return agreed(); });
  }
  std::size_t elections() const noexcept { return elections_; }
  std::size_t proclaimed() const noexcept { return proclaimed_; }
  std::size_t lost() const noexcept { return lost_; }
  std::size_t news() const noexcept { return news_; }

 private:
  sim::node& node() { return servers_.machines().front().program(); }
  bool chance(unsigned percent) { return random_.next() % 100 < percent; }
  nanoseconds between(nanoseconds from, nanoseconds to) { return from + random_.up_to(to - from); }

  void add_member() {
    config settings;
    settings.ttl = ttl;
    settings.reconnect_cap = 200ms;
    settings.command_timeout = 100ms;
    settings.poll_cap = poll_cap;
    auto& made = *members_.emplace_back(std::make_unique<member>(
        std::make_unique<sim_client>(plan_, servers_, log_, met_, settings, random_.next(), members_.size())));
    auto& way = made.client->ways().front();
    way.now = way.usual = {between(20us, 300us), between(20us, 300us)};
    living_.push_back(&made);
    in(made, [this, &made] { observe(made); });
  }
  template <class Act>
  void in(member& of, Act act) {
    test::run_at(of.client->process(), plan_.now(), [this, &of, act] {
      if (of.lives) act();
      check_alone();
    });
  }
  void run_for(nanoseconds time) {
    const auto end = plan_.now() + time;
    while (plan_.next() && *plan_.next() <= end) {
      plan_.step();
      check_alone();
      if (!violated_.empty()) throw violation(violated_);
    }
    plan_.run_until(end);
  }
  template <class Condition>
  void settle(Condition over) {
    for (const auto end = plan_.now() + 20s; !over(); run_for(10ms))
      if (plan_.now() > end) throw violation("the observers do not agree");
  }

  static std::shared_ptr<const detail::election_keys> chief(std::string value = {}) {
    return std::make_shared<const detail::election_keys>(detail::election_keys("e"), std::move(value));
  }

  void act_of(member& of) {
    in(of, [this, &of] {
      if (!of.lead) return campaign(of);
      if (of.lead->of->ended()) {
        ++lost_;
        return resign(of);
      }
      if (chance(40)) return resign(of);
      proclaim(of);
    });
  }
  void campaign(member& of) {
    if (std::exchange(of.campaigns, true)) return;
    detail::terms asked{.ttl = std::chrono::duration_cast<detail::terms::duration>(ttl), .renew = true};
    const detail::lock_request request{.owner = holdfast::owner(), .asked = asked};
    of.client->locks().lock(chief("v"), request, [&of](detail::lock_answer answer) {
      of.campaigns = false;
      if (!answer.value) return;
      of.lead = std::move(answer.value);
    });
  }
  void resign(member& of) {
    of.client->locks().unlock(std::exchange(of.lead, nullptr), [](const auto&) {});
  }
  void proclaim(member& of) {
    of.client->locks().elections().proclaim(of.lead, chief("v" + std::to_string(++values_)),
                                            [this](const auto& failed) { proclaimed_ += !failed; });
  }
  void observe(member& of) {
    of.client->locks().elections().next(chief(), of.seen, [this, &of](detail::answer<leader>&& now) {
      if (now.failed) {
        violated_ = "an observer has failed: " + now.failed->detail;
        return;
      }
      ++news_;
      if (now.value && now.value->term < std::exchange(of.newest, now.value->term)) violated_ = "a term has fallen";
      if (now.value.has_value() == of.seen.has_value() && !detail::is_news(of.seen, now.value))
        violated_ = "an observer was told what it knew";
      of.seen = std::move(now.value);
      // A handler must not call the engine.
      plan_.after(0us, [this, &of] { in(of, [this, &of] { observe(of); }); });
    });
  }

  void elected(const reply& answer) {
    if (answer.type != reply::kind::array) return;
    const auto term = static_cast<std::uint64_t>(answer.elements.at(0).integer);
    if (term < newest_) violated_ = "a term is less than an earlier one";
    elections_ += term > newest_;
    newest_ = term;
  }
  void check_alone() {
    const auto leads = [](const auto& each) { return each->lives && each->lead && each->lead->of->exclusive(); };
    if (std::count_if(members_.begin(), members_.end(), leads) > 1) violated_ = "two lead at once";
  }
  bool agreed() {
    const auto now = detail::election_steps::read_leader(
        {{}, node().execute({"EVAL", std::string(detail::lua::observe.body), "2", "e", "redisson_lock_token:{e}"})});
    return std::all_of(living_.begin(), living_.end(), [&](const member* each) {
      const bool none = !each->seen && !now.value;
      return none || (each->seen && now.value && !detail::is_news(each->seen, now.value));
    });
  }

  void disturb() {
    auto& of = *living_[random_.next() % living_.size()];
    const wire_trouble wires(*of.client);
    switch (random_.next() % 6) {
      case 0: return wires.lose_replies();
      case 1: return wires.lose_requests();
      case 2: return wires.delay_requests(plan_.now() + between(1ms, 1s));
      case 3:
      case 4:
        of.client->process().pause(true);
        plan_.after(between(1ms, longest_pause), [&of] { of.client->process().pause(!of.lives); });
        return;
      default:
        if (!chance(40)) return;
        of.client->process().pause(true);
        of.lives = false;
        std::erase(living_, &of);
        return add_member();
    }
  }

  scheduler plan_;
  test::seeded_random random_;
  trace log_{nullptr};
  coverage& met_;
  deployment servers_;
  std::vector<std::unique_ptr<member>> members_;
  std::vector<member*> living_;
  std::uint64_t newest_ = 0;  // term
  std::size_t elections_ = 0, proclaimed_ = 0, lost_ = 0, news_ = 0, values_ = 0;
  std::string violated_;
};

}  // namespace

TEST_CASE("an election has one leader, whose terms rise for everybody, whatever becomes of its clients") {
  coverage met;
  std::size_t elections = 0, proclaimed = 0, lost = 0, news = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    election_life life(seed, met);
    INFO("seed " << seed);
    REQUIRE_NOTHROW(life.live());
    elections += life.elections();
    proclaimed += life.proclaimed();
    lost += life.lost();
    news += life.news();
  }
  CHECK(elections > 3'000);
  CHECK(proclaimed > 1'000);
  CHECK(lost > 100);
  CHECK(news > 5'000);
}
