// SPDX-License-Identifier: BSL-1.0
// Lives of one semaphore in virtual time. Clients want one permit or several. Their connections lose, delay and repeat
// commands. Processes are paused beyond their TTL, and killed. The counter is evicted. Two rules hold after each
// instant and each script: no more permits are believed to be held than there are, and what is left and what is out are
// all that there are.
#include <holdfast/owner.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/arguments.hpp"
#include "protocol/permits/permit_lock.hpp"
#include "sim/coverage.hpp"
#include "sim/deployment.hpp"
#include "sim/judge/findings.hpp"
#include "sim/sim_client.hpp"
#include "support/catch.hpp"
#include "support/run_at.hpp"
#include "support/seeded_random.hpp"

using namespace holdfast;
using namespace holdfast::sim;
using namespace std::chrono_literals;

namespace {

constexpr milliseconds ttl{1'000};
constexpr std::uint32_t total = 4;

struct had_permits {
  std::shared_ptr<detail::lease_record> lease;
  sim_client* by;
};

class semaphore_life {
 public:
  semaphore_life(std::uint64_t seed, coverage& met)
      : random_(seed), met_(met), servers_(detail::deployment::one_server, plan_, random_, log_, ttl) {
    node().on_script = [this](std::string_view, const std::vector<std::string>&, const reply&) { check_sum(); };
    plan_.on_step = [this] { check_holders(); };
    for (int n = 0; n < 3; ++n) add_client();
  }
  ~semaphore_life() {
    for (auto& each : servers_.machines()) each.shut_down();
    plan_.clear();
  }

  void live() {
    for (int act = 0; act < 300; ++act) {
      run_for(between(20us, chance(30) ? 60ms : 4ms));
      if (chance(10)) disturb();
      act_of(some_client());
    }
    ending_ = true;
    for (auto* const client : alive_) client->process().pause(false);
    // A call waits for a killed process's TTL, and for its own connection.
    const auto end = plan_.now() + 20 * ttl;
    while (any_is_busy()) {
      for (auto* const client : alive_) give_back_all(*client);
      if (plan_.now() > end) throw violation("a call is not answered");
      run_for(10ms);
    }
    run_for(3 * ttl);
    check_sum();
  }
  std::size_t granted() const noexcept { return granted_; }
  std::size_t several() const noexcept { return several_; }

 private:
  sim::node& node() { return servers_.machines().front().program(); }
  bool chance(unsigned percent) { return random_.next() % 100 < percent; }
  nanoseconds between(nanoseconds from, nanoseconds to) { return from + random_.up_to(to - from); }
  sim_client& some_client() { return *alive_[random_.next() % alive_.size()]; }
  bool any_is_busy() {
    return std::any_of(alive_.begin(), alive_.end(), [this](auto* const client) { return waiting_[client] > 0; }) ||
           std::any_of(had_.begin(), had_.end(), [this](const auto& each) { return lives(*each.by); });
  }
  bool lives(const sim_client& client) const {
    return std::find(alive_.begin(), alive_.end(), &client) != alive_.end();
  }

  void add_client() {
    config settings;
    settings.ttl = ttl;
    settings.reconnect_cap = 200ms;
    settings.poll_cap = ttl / 2;
    settings.turns = true;
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
      if (!violated_.empty()) throw violation(violated_);
    }
    plan_.run_until(end);
  }

  void act_of(sim_client& client) {
    test::run_at(client.process(), plan_.now(), [this, &client] {
      if (ending_ || !lives(client)) return;
      const auto dice = random_.next() % 10;
      if (dice < 5) return acquire(client);
      if (dice < 9) return give_back(client);
      if (!places_.empty()) {
        const auto place = places_[random_.next() % places_.size()];
        if (place.second == &client) place.first->cancel();
      }
    });
  }
  void acquire(sim_client& client) {
    using wait_mode = detail::lock_request::wait_mode;
    const auto keys = std::make_shared<const detail::permit_keys>(detail::permit_lock, "s", detail::naming(), total);
    const wait_mode modes[] = {wait_mode::forever, wait_mode::forever, wait_mode::once, wait_mode::until_deadline};
    detail::lock_request request{.owner = owner(),
                                 .wait = modes[random_.next() % std::size(modes)],
                                 .asked = detail::resolve_terms(client.settings(), {})};
    if (request.wait == wait_mode::until_deadline) request.deadline = plan_.now() + between(1ms, ttl);
    request.amount = static_cast<std::uint8_t>(chance(25) ? 1 + random_.next() % total : 1);
    ++waiting_[&client];
    auto place = client.locks().lock(keys, request, [this, &client](detail::lock_answer&& answer) {
      --waiting_[&client];
      if (!answer.value) return;
      ++granted_;
      several_ += answer.value->of->field().amount() > 1;
      had_.push_back({std::move(answer.value), &client});
    });
    if (place) places_.emplace_back(std::move(place), &client);
    if (places_.size() > 20) places_.erase(places_.begin());
  }
  void give_back(sim_client& client) {
    const auto mine = std::find_if(had_.begin(), had_.end(), [&](const auto& each) { return each.by == &client; });
    if (mine == had_.end()) return;
    const auto lease = mine->lease;
    had_.erase(mine);
    client.locks().unlock(lease, [](const std::optional<detail::failure>&) {});
  }
  void give_back_all(sim_client& client) {
    test::run_at(client.process(), plan_.now(), [this, &client] {
      while (std::any_of(had_.begin(), had_.end(), [&](const auto& each) { return each.by == &client; }))
        give_back(client);
    });
  }

  void disturb() {
    auto& client = some_client();
    const auto wires = client.ways().front().wires();
    const auto late = plan_.now() + between(1ms, ttl);
    switch (random_.next() % 7) {
      case 0:  // replies are lost, and the commands have run
        for (const auto& each : wires) {
          each->end_at_client();
          each->end_at_server({});
        }
        return;
      case 1:  // requests are lost
        for (const auto& each : wires) {
          each->lose_up();
          each->end_at_client();
          each->end_at_server({});
        }
        return;
      case 2:  // requests are late: a second copy may overtake them
        for (const auto& each : wires) {
          each->hold_up_until(late);
          each->end_at_client();
          each->end_at_server({});
        }
        return;
      case 3:
      case 4: {
        client.process().pause(true);
        plan_.after(between(1ms, 5 * ttl / 2), [this, &client] { client.process().pause(!lives(client)); });
        return;
      }
      case 5:
        if (!chance(40)) return;
        client.process().pause(true);
        std::erase(alive_, &client);
        return add_client();
      default: node().tamper().erase(chance(50) ? "s" : "holdfast_turn:{s}");
    }
  }

  void check_holders() {
    std::size_t held = 0;
    for (const auto& each : had_)
      if (each.lease->of->exclusive()) held += each.lease->of->field().amount();
    if (held > total && violated_.empty()) violated_ = std::to_string(held) + " permits are believed to be held";
  }
  void check_sum() {
    const auto& keys = node().keys();
    const auto* const counter = keys.find("s");
    if (!counter || !violated_.empty()) return;
    const auto* const out = keys.find("{s}:timeout");
    const auto sum = std::stol(*counter->text()) + static_cast<long>(out ? out->sorted()->members().size() : 0);
    if (sum != total) violated_ = "the sum is " + std::to_string(sum);
  }

  scheduler plan_;
  test::seeded_random random_;
  trace log_{nullptr};
  coverage& met_;
  deployment servers_;
  std::vector<had_permits> had_;  // of a killed client the leases outlive the engine
  std::vector<std::unique_ptr<sim_client>> clients_;
  std::vector<sim_client*> alive_;
  std::vector<std::pair<detail::cancellable_ptr, const sim_client*>> places_;
  std::map<const sim_client*, std::size_t> waiting_;  // calls that are not answered
  std::size_t granted_ = 0, several_ = 0;
  bool ending_ = false;
  std::string violated_;
};

}  // namespace

TEST_CASE("a semaphore gives no more than it has, and loses nothing, whatever becomes of its clients") {
  coverage met;
  std::size_t granted = 0, several = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    semaphore_life life(seed, met);
    INFO("seed " << seed);
    REQUIRE_NOTHROW(life.live());
    granted += life.granted();
    several += life.several();
  }
  CHECK(granted > 10'000);
  CHECK(several > 1'000);
}
