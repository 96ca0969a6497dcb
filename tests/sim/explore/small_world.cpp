// SPDX-License-Identifier: BSL-1.0
#include "sim/explore/small_world.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "protocol/fair/fair_lock.hpp"
#include "protocol/permits/permit_lock.hpp"
#include "protocol/shared/shared_lock.hpp"
#include "protocol/vote/vote.hpp"
#include "sim/script_listener.hpp"

namespace holdfast::sim::explore {
namespace {

using namespace std::chrono_literals;

/// Longer than bounds::undisturbed, so that a judge still finds the key that a fault has left.
constexpr milliseconds ttl = 4s, shortest_timeout = 500ms, no_check = 30s;
constexpr nanoseconds latency = 100us;
/// Something lasts for longer than the TTL, also by a clock that is slow.
constexpr nanoseconds beyond_ttl = ttl * 6 / 5;
/// In this time connections are made and the scripts are known.
constexpr nanoseconds warm_up_step = 20ms;
/// In this time after the last fault each call must have its answer.
constexpr nanoseconds patience = 4 * ttl + 1min;
/// In this time each release is over that nobody waits for.
constexpr nanoseconds end_of_releases = 8 * ttl + 10s;
constexpr std::size_t primaries = 3;
constexpr std::uint64_t seed = 1;

class small_world {
 public:
  small_world(const setting& of, std::ostream* out)
      : setting_(of), random_(seed), log_(out), settings_(settings()),
        servers_(of.servers, plan_, random_, log_, ttl, primaries), judge_(plan_, servers_, met_),
        scripts_(judge_, servers_, log_, met_), name_(keys("orders")),
        strikes_(of.faults, beyond_ttl, plan_, servers_, clients_, judge_) {
    judge_add(*name_);
    if (of.faults == no_fault) judge_.expect_bounds();
    if (of.servers == detail::deployment::primaries) found();
    for (std::size_t n = 0; n < of.clients; ++n) add_client(n);
    for (const auto& each : of.callers) callers_.push_back(make_caller(each, name_));
    scripts_.listen();
    plan_.on_step = [this] { look(); };
  }
  // Events on their way refer to the contexts of the clients.
  ~small_world() {
    for (auto& node : servers_.machines()) node.shut_down();
    plan_.clear();
  }

  path_end live(chooser& decides) {
    warm_up();
    began_ = plan_.now();
    plan_.hold_flows(true);
    while (!callers_done()) {
      auto offers = offers_now();
      std::vector<option> options;
      for (const auto& each : offers) options.push_back(each.option);
      const auto taken = decides.choose(options);
      if (!taken) return {};
      log_.note(plan_.now(), "search", options[*taken].label);
      offers[*taken].take();
      plan_.run_due();
      look();
      judge_.decide();
    }
    wind_down();
    return {};
  }

 private:
  void look() {
    strikes_.look();
    judge_.look();
  }

  config settings() const {
    config c;
    c.ttl = ttl;
    c.connect_timeout = c.reconnect_cap = shortest_timeout;
    c.health_check_interval = no_check;  // its pings would multiply the orders
    c.poll_cap = ttl / 3;
    c.turns = setting_.turns;
    c.push = setting_.push ? push_mode::automatic : push_mode::off;
    if (setting_.servers == detail::deployment::primaries) c.red_lock.longest_ttl = ttl;
    return c;
  }

  detail::shared_keys keys(const char* name) const {
    const detail::naming naming{.prefix = {}, .word = detail::publish_word::publish};
    if (setting_.of->semaphore.make)
      return std::make_shared<const detail::permit_keys>(*setting_.of, name, naming, setting_.permits);
    return std::make_shared<const detail::lock_keys>(*setting_.of, name, naming);
  }

  void judge_add(const detail::lock_keys& name) {
    if (setting_.of->semaphore.make) judge_.add(static_cast<const detail::permit_keys&>(name));
    if (setting_.of == &detail::shared_writer) judge_.add_shared(name);
    if (setting_.of == &detail::fair_lock) judge_.add_fair(name);
  }

  void found() {
    for (auto& node : servers_.machines())
      node.program().tamper().put(std::string(detail::vote_marker),
                                  detail::vote_text(node.program().run_id(), settings_.red_lock.longest_ttl));
  }

  void add_client(std::size_t number) {
    auto& client = *clients_.emplace_back(
        std::make_unique<sim_client>(plan_, servers_, log_, met_, settings_, random_.next(), number));
    for (std::size_t m = 0; m < servers_.machines().size(); ++m) {
      auto& way = client.ways()[m];
      way.on_message_lost = [this, &client] { judge_.message_lost(client); };
      way.on_unfenced = [this, m](const arguments& command) { judge_.ran_unfenced(m, command); };
      way.on_killed = [this, &client] { judge_.killed(client); };
      way.on_pushed = [this, &client](const std::string& key) { judge_.pushed(client, key); };
      way.now = way.usual = {latency, {}};
    }
    judge_.add(client);
  }

  std::shared_ptr<caller> make_caller(const role& plays, const detail::shared_keys& name) {
    auto& acts_for = owners_.try_emplace({plays.client, plays.owner}).first->second;
    return std::make_shared<caller>(plays, acts_for, *clients_[plays.client], name, judge_, plan_, log_);
  }

  // Each client waits for another one and is let in, so that it has all its connections and the node all scripts.
  void warm_up() {
    const auto name = keys("warm");
    judge_add(*name);
    std::vector<std::shared_ptr<caller>> all;
    const auto act = [&](caller& who) {
      who.act();
      plan_.run_until(plan_.now() + warm_up_step);
      judge_.decide();
    };
    for (std::size_t n = 0; n <= setting_.clients; ++n)
      for (std::size_t permit = 0; permit < std::max<std::uint32_t>(1, setting_.permits); ++permit) {
        all.push_back(warms_up(n, name));
        act(*all.back());
      }
    const auto latest = plan_.now() + patience;
    while (!std::ranges::all_of(all, [](const auto& each) { return each->done(); })) {
      if (plan_.now() > latest) throw violation("no end:" + judge_.unanswered());
      bool waits = true;
      for (const auto& each : all) {
        if (!each->next()) continue;
        act(*each);
        waits = false;
      }
      // A waiter that no message wakes is let in later, or never.
      if (waits) plan_.run_until(plan_.now() + warm_up_step);
    }
    // The judges expect nothing of a client that has just begun.
    plan_.run_until(plan_.now() + bounds::undisturbed(settings_));
    for (std::size_t n = 0; n < setting_.clients && setting_.fresh; ++n)
      for (const auto who = warms_up(n, name); who->next();) act(*who);
  }

  std::shared_ptr<caller> warms_up(std::size_t number, const detail::shared_keys& name) {
    const bool shared = setting_.of == &detail::shared_writer;
    return make_caller({.client = number % setting_.clients,
                        .owner = setting_.callers.size() + number,
                        .acts = {shared ? verb::write : verb::lock, verb::unlock}},
                       name);
  }

  bool callers_done() {
    return std::ranges::all_of(callers_, [](const auto& each) { return each->done(); });
  }

  std::vector<offer> offers_now() {
    std::vector<offer> all;
    const auto held = plan_.held();
    for (const auto& each : held)
      all.push_back({arrival(each, servers_, clients_), [this, on = each.on] { plan_.let_in(*on); }});
    offer_acts(all);
    // While a caller can act, and is slow to do it, time may go on.
    if (held.empty() && plan_.next() && !strikes_.waits_for_end())
      all.push_back(
          {{"time goes on", all_objects, all.empty() ? option_kind::step : option_kind::delay}, [this] { go_on(); }});
    if (all.empty() && !strikes_.lasts()) throw violation("nothing will ever happen again");
    offer_cancels(all);
    strikes_.offer_end(all);
    strikes_.offer_faults(all);
    return all;
  }

  bool yields(caller& outer) {
    return std::ranges::any_of(callers_, [&](const auto& inner) { return outer.yields_to(*inner) && !inner->done(); });
  }

  bool runs(const caller& who) const { return !clients_[who.client()]->process().paused(); }

  void offer_acts(std::vector<offer>& to) {
    for (std::size_t at = 0; at < callers_.size(); ++at) {
      auto& who = *callers_[at];
      if (setting_.symmetric && at > 0 && !callers_[at - 1]->has_begun()) break;
      const auto next = runs(who) ? who.next() : std::nullopt;
      if (!next || yields(who)) continue;
      const auto label = "caller" + std::to_string(at) + ' ' + *next;
      to.push_back({{label, object_of_client(who.client()), option_kind::act}, [&who] { who.act(); }});
    }
  }

  void offer_cancels(std::vector<offer>& to) {
    for (std::size_t at = 0; at < callers_.size(); ++at) {
      auto& who = *callers_[at];
      if (!runs(who) || !who.can_cancel()) continue;
      const auto label = "caller" + std::to_string(at) + " cancel";
      to.push_back({{label, object_of_client(who.client()), option_kind::act}, [&who] { who.cancel(); }});
    }
  }

  void go_on() {
    if (plan_.now() > began_ + patience) throw violation("no end:" + judge_.unanswered());
    plan_.step();
  }

  void wind_down() {
    strikes_.end();
    plan_.hold_flows(false);
    const auto latest = plan_.now() + patience;
    while (!callers_done()) {
      for (const auto& each : callers_)
        if (each->next() && !yields(*each)) each->act();
      if (plan_.now() > latest) throw violation("no end:" + judge_.unanswered());
      if (!plan_.step()) throw violation("nothing will ever happen again");
      judge_.decide();
    }
    plan_.run_until(plan_.now() + end_of_releases);
    judge_.decide();
    judge_.look_for_survivors();
    for (auto& node : servers_.machines()) node.clock().step(1h);
    judge_.look_at_the_end();
    judge_.decide();
  }

  const setting& setting_;
  test::seeded_random random_;
  coverage met_;
  trace log_;
  scheduler plan_;
  const config settings_;
  deployment servers_;
  sim::judge judge_;
  script_listener scripts_;
  const detail::shared_keys name_;
  client_list clients_;
  strikes strikes_;
  std::map<std::pair<std::size_t, std::size_t>, lease_owner> owners_;  // by client and number
  std::vector<std::shared_ptr<caller>> callers_;
  time_point began_{};
};

}  // namespace

path_end live(const setting& of, chooser& decides, std::ostream* out) {
  small_world world(of, out);
  try {
    return world.live(decides);
  } catch (const violation& why) {
    if (out) *out << "VIOLATION " << why.what() << '\n';
    return {why.what(), false};
  }
}

}  // namespace holdfast::sim::explore
