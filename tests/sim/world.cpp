// SPDX-License-Identifier: BSL-1.0
#include "sim/world.hpp"

#include <algorithm>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "sim/actor.hpp"
#include "sim/faults.hpp"
#include "sim/judge.hpp"
#include "sim/peer.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t least_acts = 200, least_faults = 5;

constexpr std::string_view simple = "simple_";

std::string_view name_of_script(std::string_view digest) {
  namespace lua = detail::lua;
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
      {lua::acquire.sha1, "acquire"},
      {lua::acquire_fenced.sha1, "acquire_fenced"},
      {lua::acquire_any.sha1, "acquire_any"},
      {lua::acquire_any_fenced.sha1, "acquire_any_fenced"},
      {lua::reenter.sha1, "reenter"},
      {lua::renew.sha1, "renew"},
      {lua::release.sha1, "release"},
      {lua::force_release.sha1, "force_release"},
      {lua::simple_acquire.sha1, "simple_acquire"},
      {lua::simple_acquire_any.sha1, "simple_acquire_any"},
      {lua::simple_renew.sha1, "simple_renew"},
      {lua::simple_release.sha1, "simple_release"},
      {lua::simple_force_release.sha1, "simple_force_release"}};
  const auto found = std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.first == digest; });
  return found == std::end(names) ? std::string_view() : found->second;
}

/// What a script's reply means.
std::string outcome_of(std::string_view script, const reply& r) {
  if (script.starts_with(simple)) script.remove_prefix(simple.size());
  if (r.is_error()) return r.text.substr(0, r.text.find(' '));
  if (script == "acquire_fenced" && r.type == reply::kind::array) return "acquired";
  if (script.starts_with("acquire_any")) return r.type == reply::kind::array || r.integer > 0 ? "acquired" : "busy";
  if (script.starts_with("acquire"))
    return r.type == reply::kind::nil ? "acquired" : r.integer < 0 ? "busy without TTL" : "busy";
  if (script == "release") return r.type == reply::kind::nil ? "not yours" : r.integer < 0 ? "still held" : "freed";
  if (script == "renew")
    return std::any_of(r.elements.begin(), r.elements.end(), [](const reply& e) { return e.integer == 0; })
               ? "not yours"
               : "confirmed";
  return std::to_string(r.integer);
}

std::string outcome_of_set(const reply& r) {
  return r.is_error() ? r.text.substr(0, r.text.find(' ')) : r.type == reply::kind::nil ? "busy" : "acquired";
}

/// Everything of one seed.
class world {
 public:
  world(std::uint64_t seed, coverage& met, std::ostream* out)
      : random_(seed), met_(met), log_(out), server_(plan_, clock_rate()), judge_(plan_, server_, met),
        work_{plan_, log_, met_, judge_, random_, some_names(), {}, least_acts + random_.next() % 100},
        settings_(some_settings()), faults_(work_, server_, clients_, settings_.ttl) {
    work_.pace = nanoseconds(settings_.ttl) / static_cast<int>(2 + random_.next() % 15);
    for (std::size_t i = 0; i < 3 + random_.next() % 2; ++i) add_client(i);
    for (std::size_t i = 0; i < 1 + random_.next() % 2; ++i)
      peers_.push_back(std::make_unique<peer>(work_, server_, i));
    faults_.close_client = [this](sim_client& c) { return close(c); };
    server_.program().on_script = [this](std::string_view digest, const arguments& a, const reply& r) {
      on_script(digest, a, r);
    };
    server_.program().on_command = [this](const arguments& a, const reply& r) {
      judge_.note_backing();
      if (a.front() == "SET") met_.hit("command: SET -> " + outcome_of_set(r));
    };
    plan_.on_step = [this] { judge_.look(); };
  }
  // What is on its way refers to the clients' contexts.
  ~world() {
    server_.shut_down();
    plan_.clear();
  }

  void live(verdict& v) {
    v.clients = clients_.size();
    for (const auto& a : actors_) a->start();
    for (const auto& p : peers_) p->start();
    faults_.start();
    while (work_.acts < work_.acts_wanted || faults_.felt() < least_faults) step();
    v.acts = work_.acts;
    v.faults = faults_.felt();
    log_.note(plan_.now(), "world", "winds down");
    wind_down();
  }
  std::uint64_t hash() const noexcept { return log_.hash(); }

 private:
  double clock_rate() { return 1 + (static_cast<double>(random_.next() % 11) - 5) / 1000; }

  std::vector<detail::shared_keys> some_names() {
    std::vector<detail::shared_keys> all;
    constexpr const detail::kind* kinds[] = {&detail::plain_lock, &detail::fenced_lock, &detail::simple_lock};
    for (const auto name : {"orders:1", "{a}", "orders:2", "orders:3", "b", "orders:4", "c", "d"})
      all.push_back(std::make_shared<const detail::lock_keys>(*kinds[random_.next() % std::size(kinds)], name));
    std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(random_.next() % all.size()), all.end());
    all.resize(1 + random_.next() % all.size());
    return all;
  }

  config some_settings() {
    constexpr milliseconds ttls[] = {300ms, 1s, 3s, 30s};
    config c;
    c.ttl = ttls[random_.next() % std::size(ttls)];
    c.reconnect_cap = 1s;
    c.poll_cap = c.ttl / 3;
    return c;
  }

  void add_client(std::size_t number) {
    auto& c = *clients_.emplace_back(
        std::make_unique<sim_client>(plan_, server_, log_, met_, settings_, random_.next(), number));
    c.way().on_message_lost = [this, &c] { judge_.message_lost(c); };
    c.way().on_unfenced = [this](const arguments& command) { judge_.ran_unfenced(command); };
    c.way().on_killed = [this, &c] { judge_.killed(c); };
    c.way().now = c.way().usual = {work_.between(20us, 1ms), work_.between(20us, 2ms)};
    judge_.add(c);
    std::shared_ptr<person> who;
    for (std::size_t i = 0; i < 2 + random_.next() % 2; ++i) {
      if (!who || !work_.chance(30)) who = std::make_shared<person>();
      actors_.push_back(std::make_shared<actor>(work_, c, who));
    }
  }

  void on_script(std::string_view digest, const arguments& a, const reply& r) {
    const auto name = name_of_script(digest);
    judge_.note_backing();
    if (name.empty()) return;
    log_.abbreviate(std::string(digest), std::string(name));
    met_.hit(std::string("script: ").append(name).append(" -> ").append(outcome_of(name, r)));
    if (name == "acquire_fenced" && r.type == reply::kind::array)
      judge_.token_given(a[3], a[6], static_cast<std::uint64_t>(r.elements[0].integer));
    if (name == "acquire_any_fenced" && r.type == reply::kind::array)
      judge_.token_given(a.at(2 + static_cast<std::size_t>(r.elements[0].integer)), a.back(),
                         static_cast<std::uint64_t>(r.elements[1].integer));
    if (outcome_of(name, r) == "busy without TTL" || (r.is_error() && !detail::classify(r.text).mends_itself()))
      judge_.refused_for_good(a.at(3), a.back());
    if (name.ends_with("force_release") && !r.is_error()) judge_.excuse(a[3], true);
  }

  // Never the last one.
  bool close(sim_client& c) {
    if (c.closing() ||
        std::count_if(clients_.begin(), clients_.end(), [](const auto& each) { return !each->closing(); }) < 2)
      return false;
    const auto call = judge_.begin(c, "close");
    const auto grace = work_.between(0ms, 2s);
    judge_.begin_close(c, grace);
    c.close(grace, [this, &c, call] {
      judge_.closed(c);
      judge_.answered(call);
    });
    return true;
  }

  void step() {
    if (!plan_.step()) throw violation("nothing will ever happen again");
    judge_.decide();
  }

  void wait_until(time_point end) {
    while (plan_.next() && *plan_.next() <= end) step();
    plan_.run_until(end);
  }

  void wind_down() {
    faults_.finish();
    for (const auto& a : actors_) a->finish();
    for (const auto& p : peers_) p->finish();
    wait_until(faults_.mended_at());
    const auto patience = plan_.now() + 4 * settings_.ttl + 1min;
    while (!std::all_of(actors_.begin(), actors_.end(), [](const auto& a) { return a->done(); }) ||
           judge_.waiting_calls() != 0) {
      if (plan_.now() > patience) throw violation("no end:" + judge_.unanswered());
      step();
    }
    // What nobody waits for any more is given back, and what cannot be ends with its TTL.
    wait_until(plan_.now() + 8 * settings_.ttl + 1min);
    judge_.look_for_survivors();
    server_.clock().step(std::chrono::hours(1));
    judge_.look_at_the_end();
    judge_.decide();
  }

  test::seeded_random random_;
  coverage& met_;
  trace log_;
  scheduler plan_;
  server server_;
  sim::judge judge_;
  workload work_;
  const config settings_;
  std::vector<std::unique_ptr<sim_client>> clients_;
  std::vector<std::shared_ptr<actor>> actors_;
  std::vector<std::unique_ptr<peer>> peers_;
  faults faults_;
};

}  // namespace

verdict run_seed(std::uint64_t seed, coverage& met, std::ostream* trace) {
  verdict v;
  v.seed = seed;
  world w(seed, met, trace);
  try {
    w.live(v);
  } catch (const violation& why) {
    v.violation = why.what();
    if (trace) *trace << "VIOLATION " << v.violation << '\n';
  }
  v.hash = w.hash();
  return v;
}

}  // namespace holdfast::sim
