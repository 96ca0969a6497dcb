// SPDX-License-Identifier: BSL-1.0
#include "sim/world.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "protocol/vote/vote.hpp"
#include "sim/actor.hpp"
#include "sim/faults.hpp"
#include "sim/judge/judge.hpp"
#include "sim/peer.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t least_acts = 200, least_faults = 5, acts_of_a_quiet_seed = 5;

constexpr std::string_view simple = "simple_";

/// In so many of the seeds with locks of a majority nobody may ask which run a server is.
constexpr int percent_of_secrets = 25;
/// So many of the names of other seeds are semaphores. A life with one costs more time.
constexpr int percent_of_semaphores = 15;
/// So many are shared mutexes.
constexpr int percent_of_shared = 15;
/// So many are elections.
constexpr int percent_of_elections = 8;
/// So many are latches. In a cluster only names without braces can be.
constexpr int percent_of_latches = 8;
/// In so many of those with a cluster messages go to the nodes of their slot alone.
constexpr int percent_of_sharded = 80;
const std::string marker(detail::vote_marker);

std::string_view name_of_script(std::string_view digest) {
  namespace lua = detail::lua;
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
      {lua::acquire.sha1, "acquire"},
      {lua::acquire_fenced.sha1, "acquire_fenced"},
      {lua::acquire_any.sha1, "acquire_any"},
      {lua::acquire_any_fenced.sha1, "acquire_any_fenced"},
      {lua::acquire_all.sha1, "acquire_all"},
      {lua::acquire_all_fenced.sha1, "acquire_all_fenced"},
      {lua::set_hold_count.sha1, "set_hold_count"},
      {lua::renew.sha1, "renew"},
      {lua::release.sha1, "release"},
      {lua::force_release.sha1, "force_release"},
      {lua::simple_acquire.sha1, "simple_acquire"},
      {lua::simple_acquire_any.sha1, "simple_acquire_any"},
      {lua::simple_acquire_all.sha1, "simple_acquire_all"},
      {lua::simple_renew.sha1, "simple_renew"},
      {lua::simple_release.sha1, "simple_release"},
      {lua::simple_force_release.sha1, "simple_force_release"},
      {lua::change_marker.sha1, "change_marker"},
      {lua::tell_apart.sha1, "tell_apart"},
      {lua::write_note.sha1, "write_note"},
      {lua::permits_acquire.sha1, "permits_acquire"},
      {lua::permits_renew.sha1, "permits_renew"},
      {lua::permits_release.sha1, "permits_release"},
      {lua::permits_set.sha1, "permits_set"},
      {lua::permits_force.sha1, "permits_force"},
      {lua::read_acquire.sha1, "read_acquire"},
      {lua::write_acquire.sha1, "write_acquire"},
      {lua::read_release.sha1, "read_release"},
      {lua::write_release.sha1, "write_release"},
      {lua::shared_renew.sha1, "shared_renew"},
      {lua::downgrade.sha1, "downgrade"},
      {lua::shared_force.sha1, "shared_force"},
      {lua::shared_holder.sha1, "shared_holder"},
      {lua::latch_set.sha1, "latch_set"},
      {lua::count_down.sha1, "count_down"},
      {lua::campaign.sha1, "campaign"},
      {lua::proclaim.sha1, "proclaim"},
      {lua::resign.sha1, "resign"},
      {lua::election_force.sha1, "election_force"},
      {lua::observe.sha1, "observe"}};
  const auto found = std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.first == digest; });
  return found == std::end(names) ? std::string_view() : found->second;
}

/// What a script's reply means.
std::string outcome_of(std::string_view script, const reply& r) {
  if (script.starts_with(simple)) script.remove_prefix(simple.size());
  const bool of_votes = script == "change_marker" || script == "tell_apart";
  if (of_votes && r.is_error() && !r.text.starts_with("NOSCRIPT")) return "refused";
  if (r.is_error()) return r.text.substr(0, r.text.find(' '));
  const bool makes_term = script == "acquire_fenced" || script == "campaign";
  if (makes_term && r.type == reply::kind::array) return "acquired";
  if (script.starts_with("acquire_any")) return r.type == reply::kind::array || r.integer > 0 ? "acquired" : "busy";
  if (script.starts_with("acquire_all")) {
    if (r.type == reply::kind::nil || r.elements.at(0).integer == 0) return "acquired";
    const auto what = r.elements.at(1).integer;
    return what >= 0 ? "busy" : what == -1 ? "busy without TTL" : "no lock";
  }
  if (script.starts_with("acquire") || script == "campaign")
    return r.type == reply::kind::nil ? "acquired" : r.integer < 0 ? "busy without TTL" : "busy";
  if (script == "change_marker") return r.integer == 1 ? "changed" : "something else";
  if (script == "tell_apart") return "told apart";
  if (script == "permits_acquire") {
    const auto state = r.elements.at(0).integer;
    return state > 0 ? "acquired" : state == 0 ? "busy" : "door";
  }
  if (script == "read_acquire" || script == "write_acquire") {
    if (r.elements.at(0).integer == 1) return "acquired";
    const auto left = r.elements.at(1).integer;
    return left >= 0 ? "busy" : left == -1 ? "busy without TTL" : "free, and another client's turn";
  }
  if (script == "read_release" && r.type == reply::kind::array && r.elements.at(0).integer == 0) return "others read";
  if (script == "shared_holder")
    return r.type == reply::kind::array ? "held" : r.type == reply::kind::nil ? "free" : "no lock";
  if (script == "downgrade") return r.type == reply::kind::integer && r.integer == 0 ? "not yours" : "reads";
  if (script == "permits_set") return "set";
  if (script == "latch_set") return r.elements.at(0).integer == 1 ? "set" : "was set";
  if (script == "count_down") return r.elements.at(0).integer > 0 ? "counted" : "open";
  if (script == "observe")
    return r.type == reply::kind::nil ? "nobody" : r.elements.size() > 3 ? "a candidate" : "another lock's holder";
  if (script == "proclaim") return r.type == reply::kind::nil ? "not yours" : "proclaimed";
  if (script == "permits_force") return r.elements.at(0).integer > 0 ? "broken" : "0";
  if (script == "resign" || (script.ends_with("release") && !script.ends_with("force_release")))
    return r.type == reply::kind::nil ? "not yours" : "freed";
  if (script.ends_with("renew"))
    return std::any_of(r.elements.begin(), r.elements.end(), [](const reply& e) { return e.integer != 1; })
               ? "not yours"
               : "confirmed";
  return std::to_string(r.integer);
}

std::string outcome_of_set(const reply& r) {
  return r.is_error() ? r.text.substr(0, r.text.find(' ')) : r.type == reply::kind::nil ? "busy" : "acquired";
}

/// Of twenty seeds one has locks of a majority, one has sentinels, and one a cluster.
detail::deployment kind_of(std::uint64_t seed) {
  switch (seed % 20) {
    case 0: return detail::deployment::primaries;
    case 5: return detail::deployment::cluster;
    case 10: return detail::deployment::sentinel;
    default: return detail::deployment::one_server;
  }
}

/// One seed of twenty has shared mutexes of our clients alone, and no fault.
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
        work_{
            plan_, log_, met_, judge_, random_, some_names(), {}, least_acts + random_.next() % 100, takes_turns(seed),
            quiet_},
        faults_(work_, servers_, clients_, settings_.ttl) {
    work_.pace = nanoseconds(settings_.ttl) / static_cast<int>(2 + random_.next() % 15);
    if (quiet_) make_quiet();
    for (const auto& name : work_.names) {
      if (work_.is_semaphore(name->name)) judge_.add(static_cast<const detail::permit_keys&>(*name));
      if (work_.is_shared(name->name)) judge_.add_shared(*name);
      if (work_.is_latch(name->name)) judge_.add_latch(*name);
      if (work_.is_election(name->name)) judge_.add_election(*name);
    }
    if (votes()) found();
    for (std::size_t i = 0; i < 3 + random_.next() % 2; ++i) add_client(i);
    // Who writes by hand writes to one node.
    for (std::size_t i = 0; !votes() && !quiet_ && i < 1 + random_.next() % 2; ++i)
      peers_.push_back(std::make_unique<peer>(work_, servers_, i));
    faults_.close_client = [this](sim_client& c) { return close(c); };
    for (std::size_t m = 0; m < servers_.machines().size(); ++m) {
      auto& node = servers_.machines()[m];
      node.program().on_script = [this, m](std::string_view digest, const arguments& a, const reply& r) {
        on_script(m, digest, a, r);
      };
      node.program().on_command = [this, m](const arguments& a, const reply& r) {
        judge_.note_backing();
        if (a.front() == "GET") judge_.latches().read(a.at(1), r);
        if (a.front() != "SET" || a.at(1) == marker) return;
        const auto outcome = outcome_of_set(r);
        met_.hit("command: SET -> " + outcome);
        if (replaced(m, a[1]) && !r.is_error()) judge_.answered_by_another(m, a[1], a[2], outcome == "acquired");
      };
    }
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
      node.program().tamper().put(marker, detail::vote_text(run, settings_.red_lock.longest_ttl));
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
      if (quiet_ || (!votes() && dice < percent_of_shared))
        all.push_back(std::make_shared<const detail::lock_keys>(detail::shared_writer, name, naming));
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

  void on_script(std::size_t machine, std::string_view digest, const arguments& a, const reply& r) {
    const auto name = name_of_script(digest);
    if (name == "permits_acquire" && outcome_of(name, r) == "acquired") permits_granted(machine, a, r);
    judge_.ran_script(machine);
    if (name.empty()) return;
    log_.abbreviate(std::string(digest), std::string(name));
    met_.hit(std::string("script: ").append(name).append(" -> ").append(outcome_of(name, r)));
    if (name == "latch_set") return judge_.latches().ran(machine, latch_judge::change::set, a, r);
    if (name == "count_down") return judge_.latches().ran(machine, latch_judge::change::count_down, a, r);
    if (servers_.fails_over()) look_for_another(machine, name, a, r);
    if (name == "observe") return judge_.elections().read(a.at(3), r);
    if (name == "proclaim" && outcome_of(name, r) == "proclaimed") judge_.elections().changed(a.at(5));
    if ((name == "acquire_fenced" || name == "campaign") && r.type == reply::kind::array)
      token_given(machine, a[3], a[6], r.elements[0], r.elements.size() > 1 ? r.elements[1].integer : 0);
    if (name == "acquire_any_fenced" && r.type == reply::kind::array)
      token_given(machine, a.at(2 + static_cast<std::size_t>(r.elements[0].integer)), a.at(3 + std::stoul(a.at(2)) + 1),
                  r.elements[1]);
    if (name.find("acquire_all") != name.npos) return on_several(machine, name, a, r);
    const bool asks = name == "shared_holder";
    if (!asks &&
        (outcome_of(name, r) == "busy without TTL" || (r.is_error() && !detail::classify(r.text).mends_itself())))
      judge_.refused_for_good(
          a.at(3), a.at(3 + std::stoul(a.at(2)) + 1));  // of a node that votes nobody wants any one of several
    if ((name.ends_with("force_release") || name == "permits_force" || name == "shared_force" ||
         name == "election_force") &&
        !r.is_error())
      judge_.excuse(a[3], true);
  }

  /// See permits_acquire.lua.
  void permits_granted(std::size_t machine, const arguments& a, const reply& r) {
    constexpr std::size_t waiters = 11, amounts = waiters + 1;
    const auto first = a.begin() + static_cast<std::ptrdiff_t>(amounts + std::stoul(a.at(waiters)));
    std::ptrdiff_t granted = 0;
    for (long long k = 0; k < r.elements.at(0).integer; ++k)
      granted += std::stol(a.at(amounts + static_cast<std::size_t>(k)));
    judge_.permits_granted(machine, a.at(3), {first, first + granted});
  }

  /// It has this key no more, and answers for it.
  bool replaced(std::size_t machine, const std::string& key) const { return !servers_.serves(machine, key); }

  void token_given(std::size_t machine, const std::string& name, const std::string& field, const reply& first,
                   long long spare = 0) {
    const token_range all{static_cast<std::uint64_t>(first.integer), static_cast<std::uint64_t>(spare) + 1};
    replaced(machine, name) ? judge_.tokens_given_by_another(field, all) : judge_.tokens_given(name, field, all);
  }

  // Who has been replaced and does not know it says what nobody else will know.
  void look_for_another(std::size_t machine, std::string_view name, const arguments& a, const reply& r) {
    const auto outcome = outcome_of(name, r);
    const bool has_it = outcome == "acquired" || outcome == "confirmed" || outcome == "reads" ||
                        outcome == "proclaimed" || (name == "set_hold_count" && outcome == "1");
    const auto keys = std::stoul(a.at(2));
    for (std::size_t i = 0; !r.is_error() && i < keys; ++i) {
      const auto& key = a.at(3 + i);
      if (!replaced(machine, key)) continue;
      // Of several in one renewal each has its own answer.
      const bool is_held =
          has_it || (name.ends_with("renew") && r.elements.at(i * r.elements.size() / keys).integer == 1);
      for (std::size_t arg = 3 + keys; arg < a.size(); ++arg) judge_.answered_by_another(machine, key, a[arg], is_held);
    }
  }

  void on_several(std::size_t machine, std::string_view name, const arguments& a, const reply& r) {
    const bool fenced = name.ends_with("fenced"), acquired = outcome_of(name, r) == "acquired";
    const auto keys = std::stoul(a.at(2)), locks = fenced ? keys / 2 : keys;
    std::vector<std::pair<std::string, std::string>> asked;
    for (std::size_t i = 0; i < locks; ++i) {
      asked.emplace_back(a.at(3 + i), a.at(3 + keys + 1 + i));
      if (fenced && acquired) token_given(machine, asked[i].first, asked[i].second, r.elements.at(1 + i));
    }
    if (!replaced(machine, asked.front().first)) judge_.several_answered(asked, acquired);
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
  workload work_;
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
