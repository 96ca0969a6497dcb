// SPDX-License-Identifier: BSL-1.0
#include "sim/world.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

#include "protocol/vote/vote.hpp"
#include "sim/actor.hpp"
#include "sim/fair_peer.hpp"
#include "sim/faults.hpp"
#include "sim/judge/judge.hpp"
#include "sim/peer.hpp"
#include "sim/script_listener.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t least_acts = 200, least_faults = 5, acts_of_a_quiet_seed = 5;

/// In so many of the seeds with locks of a majority nobody may ask which run a server is.
constexpr int percent_of_secrets = 25;
/// So many of the names of other seeds are semaphores. A life with one costs more time.
constexpr int percent_of_semaphores = 15;
/// So many are shared mutexes.
constexpr int percent_of_shared = 15;
/// So many are fair mutexes.
constexpr int percent_of_fair = 12;
/// So many are elections.
constexpr int percent_of_elections = 8;
/// So many are latches. In a cluster only names without braces can be.
constexpr int percent_of_latches = 8;
/// In so many of those with a cluster messages go to the nodes of their slot alone.
constexpr int percent_of_sharded = 80;
/// Of twenty seeds one has locks of a majority, one has sentinels, and one a cluster.
detail::deployment kind_of(std::uint64_t seed) {
  switch (seed % 20) {
    case 0: return detail::deployment::primaries;
    case 5: return detail::deployment::cluster;
    case 10: return detail::deployment::sentinel;
    default: return detail::deployment::one_server;
  }
}

/// One seed of twenty has shared and fair mutexes of our clients alone, and no fault.
bool is_quiet(std::uint64_t seed) { return seed % 20 == 15; }

/// Of two seeds of a kind, in the order of all, one has turns.
bool takes_turns(std::uint64_t seed) { return seed / 20 % 2 == 1; }
/// Of four seeds of each of these, one has notes.
bool keeps_notes(std::uint64_t seed) { return seed / 40 % 4 == 1; }

/// Of four seeds of each of these, three have servers that push changes.
bool is_pushed(std::uint64_t seed) { return seed / 160 % 4 != 3; }

/// Everything of one seed.
class world {
 public:
  world(std::uint64_t seed, coverage& met, std::ostream* out)
      : random_(seed), met_(met), log_(out), quiet_(is_quiet(seed)), settings_(some_settings(seed)),
        servers_(kind_of(seed), plan_, random_, log_, settings_.ttl), judge_(plan_, servers_, met),
        scripts_(judge_, servers_, log_, met),
        work_{
            plan_, log_, met_, judge_, random_, some_names(), {}, least_acts + random_.next() % 100, takes_turns(seed),
            quiet_},
        faults_(work_, servers_, clients_, settings_.ttl) {
    work_.pace = nanoseconds(settings_.ttl) / static_cast<int>(2 + random_.next() % 15);
    if (quiet_) make_quiet();
    for (const auto& name : work_.names) {
      if (work_.is_semaphore(name->name)) judge_.add(static_cast<const detail::permit_keys&>(*name));
      if (work_.is_shared(name->name)) judge_.add_shared(*name);
      if (work_.is_fair(name->name)) judge_.add_fair(*name);
      if (work_.is_latch(name->name)) judge_.add_latch(*name);
      if (work_.is_election(name->name)) judge_.add_election(*name);
    }
    if (votes()) found();
    for (std::size_t i = 0; i < 3 + random_.next() % 2; ++i) add_client(i);
    // Who writes by hand writes to one node.
    for (std::size_t i = 0; !votes() && !quiet_ && i < 1 + random_.next() % 2; ++i)
      peers_.push_back(std::make_unique<peer>(work_, servers_, i));
    const bool fair = std::ranges::any_of(work_.names, [&](const auto& each) { return work_.is_fair(each->name); });
    const auto waiting_peers = fair && !quiet_ ? random_.next() % 3 : 0;
    for (std::size_t i = 0; i < waiting_peers; ++i)
      fair_peers_.push_back(std::make_unique<fair_peer>(work_, servers_, i));
    faults_.close_client = [this](sim_client& c) { return close(c); };
    scripts_.listen();
    plan_.on_step = [this] { judge_.look(); };
  }
  // What is on its way refers to the clients' contexts.
  ~world() {
    for (auto& node : servers_.machines()) node.shut_down();
    plan_.clear();
  }

  void live(verdict& v) {
    v.clients = clients_.size();
    for (const auto& a : actors_) a->start();
    for (const auto& p : peers_) p->start();
    for (const auto& p : fair_peers_) p->start();
    if (!quiet_) faults_.start();
    while (work_.acts < work_.acts_wanted || (!quiet_ && faults_.felt() < least_faults)) step();
    v.acts = work_.acts;
    v.faults = faults_.felt();
    log_.note(plan_.now(), "world", "winds down");
    wind_down();
  }
  std::uint64_t hash() const noexcept { return log_.hash(); }

 private:
  bool votes() const noexcept { return servers_.what() == detail::deployment::primaries; }

  // Holds are short, so that a bound is judged which depends on them.
  void make_quiet() {
    judge_.expect_bounds();
    work_.pace = work_.between(1ms, 20ms);
    work_.acts_wanted *= acts_of_a_quiet_seed;
  }

  /// As an operator does it. Some let nobody see which run a server is.
  void found() {
    const bool secret = work_.chance(percent_of_secrets);
    for (auto& node : servers_.machines()) {
      if (secret) node.program().refuse_info();
      const auto run = secret ? std::string() : node.program().run_id();
      node.program().tamper().put(std::string(detail::vote_marker),
                                  detail::vote_text(run, settings_.red_lock.longest_ttl));
    }
  }

  std::vector<detail::shared_keys> some_names() {
    std::vector<detail::shared_keys> all;
    const auto& fenced = settings_.turns ? detail::fenced_lock_in_turns : detail::fenced_lock;
    const detail::kind* const of_one[] = {&detail::plain_lock, &fenced, &detail::simple_lock};
    constexpr const detail::kind* of_several[] = {&detail::red_plain_lock, &detail::red_simple_lock};
    const std::span<const detail::kind* const> kinds =
        votes() ? std::span<const detail::kind* const>(of_several) : of_one;
    const bool sharded =
        settings_.cluster.pubsub == pubsub_mode::automatic && servers_.what() == detail::deployment::cluster;
    const auto word = sharded ? detail::publish_word::automatic : detail::publish_word::publish;
    constexpr const char* alone[] = {"orders:1", "{a}", "orders:2", "orders:3", "b", "orders:4", "c", "d"};
    constexpr const char* in_slots[] = {"orders:1", "{a}", "{a}:2", "{a}:3", "b", "{b}:2", "c", "d"};
    const detail::naming naming{.prefix = {}, .word = word};
    for (const auto* name : servers_.what() == detail::deployment::cluster ? in_slots : alone) {
      const auto dice = static_cast<int>(random_.next() % 100);
      if (quiet_ ? dice < 50 : !votes() && dice < percent_of_shared)
        all.push_back(std::make_shared<const detail::lock_keys>(detail::shared_writer, name, naming));
      else if (quiet_ || (!votes() && dice >= 100 - percent_of_fair))
        all.push_back(std::make_shared<const detail::lock_keys>(detail::fair_lock, name, naming));
      else if (!votes() && dice < percent_of_shared + percent_of_semaphores)
        all.push_back(std::make_shared<const detail::permit_keys>(detail::permit_lock, name, naming,
                                                                  static_cast<std::uint32_t>(1 + random_.next() % 4)));
      else if (!votes() && dice < percent_of_shared + percent_of_semaphores + percent_of_latches &&
               (servers_.what() != detail::deployment::cluster ||
                std::string_view(name).find('{') == std::string_view::npos))
        all.push_back(detail::latch_keys(name, naming));
      else if (!votes() && dice < percent_of_shared + percent_of_semaphores + percent_of_latches + percent_of_elections)
        all.push_back(std::make_shared<const detail::election_keys>(name, naming));
      else
        all.push_back(std::make_shared<const detail::lock_keys>(*kinds[random_.next() % kinds.size()], name, naming));
    }
    std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(random_.next() % all.size()), all.end());
    all.resize(1 + random_.next() % (settings_.turns ? 2 : all.size()));
    return all;
  }

  config some_settings(std::uint64_t seed) {
    const auto kind = kind_of(seed);
    constexpr milliseconds ttls[] = {300ms, 1s, 3s, 30s}, longer_ttls[] = {1s, 3s, 10s, 30s};
    const bool fails_over = kind == detail::deployment::sentinel || kind == detail::deployment::cluster;
    config c;
    c.ttl = (fails_over ? longer_ttls : ttls)[random_.next() % std::size(ttls)];
    c.reconnect_cap = 1s;
    c.poll_cap = c.ttl / 3;
    c.turns = takes_turns(seed);
    c.notes = keeps_notes(seed);
    if (kind == detail::deployment::primaries) c.red_lock.longest_ttl = c.ttl;
    if (kind == detail::deployment::cluster && random_.next() % 100 >= percent_of_sharded)
      c.cluster.pubsub = pubsub_mode::classic;
    c.push = is_pushed(seed) ? push_mode::automatic : push_mode::off;
    return c;
  }

  void add_client(std::size_t number) {
    auto& c = *clients_.emplace_back(
        std::make_unique<sim_client>(plan_, servers_, log_, met_, settings_, random_.next(), number));
    for (std::size_t n = 0; n < servers_.machines().size(); ++n) {
      auto& way = c.ways()[n];
      way.on_message_lost = [this, &c] { judge_.message_lost(c); };
      way.on_unfenced = [this, n](const arguments& command) { judge_.ran_unfenced(n, command); };
      way.on_killed = [this, &c] { judge_.killed(c); };
      way.on_pushed = [this, &c](const std::string& key) { judge_.pushed(c, key); };
      way.now = way.usual = {work_.between(20us, 1ms), work_.between(20us, 2ms)};
    }
    judge_.add(c);
    std::shared_ptr<person> who;
    for (std::size_t i = 0; i < 2 + random_.next() % 2; ++i) {
      if (!who || !work_.chance(30)) who = std::make_shared<person>();
      actors_.push_back(std::make_shared<actor>(work_, c, who));
    }
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
    for (const auto& p : fair_peers_) p->finish();
    wait_until(faults_.mended_at());
    faults_.sweep();
    const auto patience = plan_.now() + 4 * settings_.ttl + 1min;
    while (!std::all_of(actors_.begin(), actors_.end(), [](const auto& a) { return a->done(); }) ||
           judge_.waiting_calls() != 0) {
      if (plan_.now() > patience) throw violation("no end:" + judge_.unanswered());
      step();
    }
    // What nobody waits for any more is given back, and what cannot be ends with its TTL.
    wait_until(plan_.now() + 8 * settings_.ttl + 1min);
    faults_.delete_latches();
    judge_.look_for_survivors();
    for (auto& node : servers_.machines()) node.clock().step(std::chrono::hours(1));
    judge_.look_at_the_end();
    judge_.decide();
  }

  test::seeded_random random_;
  coverage& met_;
  trace log_;
  const bool quiet_;
  scheduler plan_;
  const config settings_;
  deployment servers_;
  sim::judge judge_;
  script_listener scripts_;
  workload work_;
  std::vector<std::unique_ptr<sim_client>> clients_;
  std::vector<std::shared_ptr<actor>> actors_;
  std::vector<std::unique_ptr<peer>> peers_;
  std::vector<std::unique_ptr<fair_peer>> fair_peers_;
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
