// SPDX-License-Identifier: BSL-1.0
#include "sim/faults.hpp"

#include <algorithm>
#include <numeric>

#include "protocol/derived_keys.hpp"
#include "protocol/fair/fair_lock.hpp"
#include "protocol/keys.hpp"
#include "protocol/shared/shared_lock.hpp"

namespace holdfast::sim {
using namespace std::chrono_literals;

namespace {

/// The end of a permit that never ends.
constexpr double endless = 2e12;

void erase_side_keys(keyspace& data, const shared_names& of) {
  for (const auto* key : {&of.queue, &of.readers, &of.turn}) data.erase(*key);
  std::vector<std::string> deadlines;
  for (const auto& [key, e] : data.all())
    if (of.is_deadline(key)) deadlines.push_back(key);
  for (const auto& key : deadlines) data.erase(key);
}

}  // namespace

faults::faults(workload& w, deployment& servers, std::vector<std::unique_ptr<sim_client>>& clients, nanoseconds ttl)
    : w_(w), servers_(servers), nodes_(servers.machines()), clients_(clients), ttl_(ttl), has_calms_(w.chance(25)) {
  for (auto& node : nodes_)
    node.program().on_refused = [this](std::string_view error) {
      const auto word = error.substr(0, error.find(' '));
      ++refused_[std::string(word)];
      w_.met.hit(std::string("refused: ").append(word));
    };
}

const std::vector<faults::kind>& faults::kinds() {
  static const std::vector<kind> all{
      {"connections reset, requests lost", 10, &faults::reset_losing_requests},
      {"connections reset, replies lost", 12, &faults::reset_losing_replies},
      {"connections reset, requests late", 10, &faults::reset_with_late_requests},
      {"half-open, requests lost", 6, &faults::swallow_requests},
      {"half-open, replies lost", 8, &faults::swallow_replies},
      {"partition", 8, &faults::partition},
      {"high latency", 8, &faults::slow_down},
      {"messages lost", 5, &faults::lose_messages},
      {"messages late", 5, &faults::delay_messages},
      {"spoofed message", 3, &faults::spoof_message},
      {"server pause", 7, &faults::pause_server},
      {"restart with loss", 3, &faults::restart_with_loss},
      {"restart without loss", 5, &faults::restart_without_loss},
      {"SCRIPT FLUSH", 5, &faults::flush_scripts},
      {"server clock forward", 2, &faults::step_clock_forward},
      {"server clock back", 2, &faults::step_clock_back},
      {"out of memory", 3, &faults::run_out_of_memory},
      {"disk failed", 3, &faults::fail_disk},
      {"too few replicas", 2, &faults::lose_replicas},
      {"demoted to a replica", 2, &faults::become_replica, kind::one_server_alone},
      {"loading", 2, &faults::load_data},
      {"busy with a script", 2, &faults::be_busy},
      {"CLIENT KILL refused", 1, &faults::refuse_client_kill},
      {"failover that was asked for", 6, &faults::ask_for_failover, kind::if_one_takes_over},
      {"server that no other reaches", 8, &faults::isolate_server, kind::if_one_takes_over},
      {"replicas late", 8, &faults::slow_down_replicas, kind::if_one_takes_over},
      {"slot moved", 40, &faults::move_slot, kind::in_a_cluster},
      {"client pause", 10, &faults::pause_client},
      {"client closed", 1, &faults::close_one},
      {"FLUSHALL", 2, &faults::flush_all},
      {"DEL of a lock", 4, &faults::delete_lock},
      {"counter or door lost", 4, &faults::evict_counter},
      {"place or turn lost", 6, &faults::evict_place},
      {"deadline of a reader lost", 2, &faults::evict_deadline},
      {"key of another type", 2, &faults::put_another_type},
      {"hold without TTL", 2, &faults::put_hold_without_ttl},
      {"TTL taken away", 2, &faults::take_ttl_away},
      {"token garbled", 1, &faults::garble_token},
  };
  return all;
}

void faults::strike_later() {
  // Who is struck again before it has recovered is never judged by what it does undisturbed.
  constexpr nanoseconds shortest_calm = 5s, longest_calm = 9s;
  const auto calm = has_calms_ && w_.chance(25) ? w_.between(shortest_calm, longest_calm) : nanoseconds();
  w_.plan.after(calm + w_.between(w_.pace / 4, w_.pace * 4), [this] {
    if (finishing_) return;
    strike();
    strike_later();
  });
}

void faults::finish() {
  finishing_ = true;
  for (const auto& c : clients_)
    for (auto& way : c->ways()) way.at_next_write = nullptr;
}

void faults::sweep() {
  if (!servers_.fails_over()) return;
  for (std::size_t n = 0; n < nodes_.size(); ++n)
    for (const auto& name : w_.names)
      if (never_ends(n, name->lock)) take_away(n, name->lock);
}

void faults::delete_latches() {
  for (std::size_t n = 0; n < nodes_.size(); ++n)
    for (const auto& name : w_.names)
      if (w_.is_latch(name->name)) take_away(n, name->lock);
}

void faults::strike() {
  const auto& all = kinds();
  const auto weight = [this](const kind& k) { return can_be(k) ? k.weight : 0; };
  const auto total =
      std::accumulate(all.begin(), all.end(), 0U, [&](unsigned sum, const kind& k) { return sum + weight(k); });
  auto dice = w_.below(total);
  striking_ = &*std::find_if(all.begin(), all.end(),
                             [&](const kind& k) { return dice < weight(k) || (dice -= weight(k), false); });
  w_.log.note(w_.plan.now(), "nemesis", striking_->name);
  if ((this->*striking_->strike)()) feel(striking_->name);
}

bool faults::can_be(const kind& k) const {
  switch (k.where) {
    case kind::anywhere: break;
    case kind::one_server_alone: return !servers_.fails_over();
    case kind::if_one_takes_over: return servers_.fails_over();
    case kind::in_a_cluster: return servers_.what() == detail::deployment::cluster;
  }
  return true;
}

void faults::feel(std::string_view fault) {
  ++felt_;
  w_.met.hit(std::string("fault: ").append(fault));
}

sim_client& faults::some_client() { return *clients_[w_.below(clients_.size())]; }

faults::path faults::some_path() {
  auto& c = some_client();
  return {c, some_node()};
}

nanoseconds faults::some_time() { return w_.chance(70) ? w_.between(1ms, ttl_ / 2) : w_.between(1ms, ttl_ * 2); }

void faults::mend_after(nanoseconds duration, const sim_client* whom, std::size_t node, std::function<void()> undo) {
  w_.judge.trouble(whom, node, w_.plan.now() + duration);
  undo_after(duration, std::move(undo));
}

void faults::undo_after(nanoseconds duration, std::function<void()> undo) {
  const auto end = w_.plan.now() + duration;
  mended_at_ = std::max(mended_at_, end);
  w_.plan.at(end, [this, undo = std::move(undo)] {
    w_.log.note(w_.plan.now(), "nemesis", "mends");
    undo();
  });
}

bool faults::mend_after(nanoseconds duration, const sim_client* whom, std::size_t node, counter met,
                        std::function<void()> undo) {
  mend_after(duration, whom, node, std::move(undo));
  watch(striking_->name, w_.plan.now() + duration, met);
  return false;
}

void faults::watch(std::string_view fault, time_point end, counter met) {
  w_.plan.at(end, [this, fault, before = met, &met] {
    if (met != before) feel(fault);
  });
}

bool faults::to_wires(const std::function<bool(const path&, wire&)>& act) {
  const auto to = some_path();
  const auto blame = [this, to, act](wire& w) {
    w_.judge.trouble(&to.client, to.node, w_.plan.now());
    return act(to, w);
  };
  if (w_.chance(60)) {
    to.way().at_next_write = [this, blame, fault = striking_->name](wire& w) {
      if (blame(w)) feel(fault);
    };
    return false;
  }
  const auto open = to.way().wires();
  return std::count_if(open.begin(), open.end(), [&](const auto& w) { return blame(*w); }) != 0;
}

bool faults::reset_losing_requests() {
  return to_wires([](const path&, wire& w) {
    const bool there = !w.ended();
    w.lose_up();
    w.end_at_client();
    w.end_at_server({});
    return there;
  });
}

bool faults::reset_losing_replies() {
  return to_wires([](const path&, wire& w) {
    const bool there = !w.ended();
    w.end_at_client();
    w.end_at_server({});
    return there;
  });
}

bool faults::reset_with_late_requests() {
  const auto late = some_time();
  return to_wires([this, late](const path&, wire& w) {
    const bool there = !w.ended();
    mended_at_ = std::max(mended_at_, w_.plan.now() + late);
    w.hold_up_until(w_.plan.now() + late);
    w.end_at_client();
    w.end_at_server({});
    return there;
  });
}

bool faults::swallow(void (wire::*what)() noexcept) {
  return to_wires([this, what, fault = striking_->name](const path& on, wire& w) {
    (w.*what)();
    watch(fault, w_.plan.now() + 2 * ttl_, on.way().did.lost);
    return false;
  });
}

bool faults::swallow_requests() { return swallow(&wire::lose_up); }
bool faults::swallow_replies() { return swallow(&wire::lose_down); }

// From one node, or from some of them: each client may see others.
bool faults::partition() {
  auto& c = some_client();
  const auto duration = some_time();
  const auto sure = some_node();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (n != sure && w_.chance(50)) continue;
    auto& way = c.ways()[n];
    for (const auto& w : way.wires()) {
      w->lose_up();
      w->lose_down();
    }
    way.blocked = true;
    mend_after(duration, &c, n, way.did.lost, [&way] { way.blocked = false; });
  }
  return false;
}

bool faults::slow_down() {
  const auto on = some_path();
  auto& way = on.way();
  way.now = {w_.between(1ms, ttl_ / 2), w_.between(1ms, ttl_ / 2)};
  const auto duration = some_time();
  // What was sent slowly arrives later.
  w_.judge.trouble(&on.client, on.node, w_.plan.now() + duration + ttl_ * 2);
  return mend_after(duration, &on.client, on.node, way.did.slowed, [&way] { way.now = way.usual; });
}

bool faults::lose_messages() {
  auto& way = some_path().way();
  way.loses_messages = true;
  const auto duration = some_time();
  undo_after(duration, [&way] { way.loses_messages = false; });
  watch(striking_->name, w_.plan.now() + duration, way.did.messages_lost);
  return false;
}

bool faults::delay_messages() {
  const auto on = some_path();
  auto& way = on.way();
  way.message_delay = w_.between(1ms, ttl_ / 2);
  w_.judge.trouble(&on.client, on.node, w_.plan.now() + ttl_);
  return mend_after(ttl_ / 2, &on.client, on.node, way.did.messages_delayed, [&way] { way.message_delay = {}; });
}

bool faults::spoof_message() {
  const auto n = some_node();
  auto& node = nodes_[n];
  if (!node.running() || servers_.is_sentinel(n)) return false;
  const std::string payloads[] = {"0", "1", "", std::string("\0\r\n$-1", 6), std::string(2000, 'x')};
  long long heard = 0;
  for (const auto& name : w_.names)
    heard += node.program()
                 .execute({name->word == detail::publish_word::automatic ? "SPUBLISH" : "PUBLISH",
                           detail::channel_of(*name), payloads[w_.below(std::size(payloads))]})
                 .integer;
  for (const auto& name : w_.names)
    if (w_.is_election(name->name))
      heard += node.program()
                   .execute({name->word == detail::publish_word::automatic ? "SPUBLISH" : "PUBLISH",
                             detail::election_steps::observers_channel(*name), payloads[w_.below(std::size(payloads))]})
                   .integer;
  for (const auto& name : w_.names)
    if (w_.is_shared(name->name))
      heard += node.program()
                   .execute({name->word == detail::publish_word::automatic ? "SPUBLISH" : "PUBLISH",
                             detail::shared_lock::wake_channel_of(*name, some_client().id()), "w"})
                   .integer;
  for (const auto& name : w_.names)
    if (w_.is_fair(name->name)) {
      const detail::uuid& client = some_client().id();
      const auto place = detail::place_field(client, static_cast<std::uint8_t>(w_.below(2)));
      heard +=
          node.program()
              .execute({name->word == detail::publish_word::automatic ? "SPUBLISH" : "PUBLISH",
                        detail::fair_steps::channel_of_place(*name, place), payloads[w_.below(std::size(payloads))]})
              .integer;
    }
  return heard != 0;
}

bool faults::pause_server() {
  const auto n = some_node();
  auto& node = nodes_[n];
  node.stop();
  servers_.look();
  return mend_after(some_time(), nullptr, n, node.held_back(), [this, &node] {
    node.resume();
    servers_.look();
  });
}

bool faults::restart(bool keep_data) {
  const auto n = some_node();
  auto& node = nodes_[n];
  if (node.down()) return false;
  node.shut_down();
  servers_.machine_lost(n, w_.chance(50));
  // Whoever takes its place may have them.
  if (!keep_data && !servers_.fails_over()) w_.judge.data_lost(n);
  mend_after(w_.between(1ms, ttl_ / 2), nullptr, n, [this, &node, n, keep_data] {
    node.start(keep_data);
    keep_data ? w_.judge.vote_lost(n) : w_.judge.data_lost(n);
    servers_.machine_is_back(n);
  });
  return true;
}

bool faults::restart_with_loss() { return restart(false); }
bool faults::restart_without_loss() { return restart(true); }

bool faults::flush_scripts() { return nodes_[some_node()].program().forget_scripts(); }

bool faults::step_clock_forward() {
  w_.judge.excuse({});
  nodes_[some_node()].clock().step(std::chrono::duration_cast<milliseconds>(w_.between(1ms, ttl_ * 2)));
  return true;
}

bool faults::step_clock_back() {
  const auto by = std::chrono::duration_cast<milliseconds>(w_.between(1ms, ttl_ * 2));
  const auto n = some_node();
  w_.judge.clock_stepped_back(n, by);
  nodes_[n].clock().step(-by);
  return true;
}

bool faults::refuse(refusal why) {
  const auto n = some_node();
  auto& program = nodes_[n].program();
  program.refuse(why);
  const auto error = text_of(why);
  return mend_after(some_time(), nullptr, n, refused_[std::string(error.substr(0, error.find(' ')))],
                    [&program] { program.refuse(refusal::none); });
}

bool faults::run_out_of_memory() { return refuse(refusal::out_of_memory); }
bool faults::fail_disk() { return refuse(refusal::disk_failed); }
bool faults::lose_replicas() { return refuse(refusal::no_replicas); }
bool faults::become_replica() { return refuse(refusal::replica); }
bool faults::load_data() { return refuse(refusal::loading); }
bool faults::be_busy() { return refuse(refusal::busy); }

bool faults::refuse_client_kill() {
  auto& program = nodes_[some_node()].program();
  program.refuse_client_kill(true);
  const auto duration = 2 * ttl_;
  undo_after(duration, [&program] { program.refuse_client_kill(false); });
  watch(striking_->name, w_.plan.now() + duration, refused_["NOPERM"]);
  return false;
}

bool faults::ask_for_failover() { return servers_.fail_over(); }

bool faults::isolate_server() {
  const auto n = some_node();
  servers_.isolate(n, true);
  undo_after(some_time(), [this, n] { servers_.isolate(n, false); });
  return true;
}

bool faults::slow_down_replicas() {
  servers_.slow_down_replicas(w_.between(1ms, ttl_ / 4));
  undo_after(some_time(), [this] { servers_.slow_down_replicas({}); });
  return true;
}

bool faults::move_slot() { return servers_.move(w_.some_name()->lock); }

// Often with a command on its way: its answer then waits with the alarms.
bool faults::pause_client() {
  auto& c = some_client();
  const auto pause = [this, &c, fault = striking_->name] {
    if (c.process().paused()) return;
    const auto duration = some_time();
    w_.judge.trouble(&c, w_.plan.now() + duration);
    undo_after(duration, [this, &c, fault] {
      if (c.process().behind()) feel(fault);
      c.process().pause(false);
    });
    c.process().pause(true);
  };
  if (w_.chance(50))
    c.ways()[some_node()].at_next_write = [pause](wire&) { pause(); };
  else
    pause();
  return false;
}

bool faults::close_one() { return close_client(some_client()); }

template <class Do>
auto faults::tamper(std::size_t node, Do what) {
  auto& program = nodes_[node].program();
  const auto done = what(program.tamper());
  program.tampered();
  return done;
}

bool faults::flush_all() {
  const auto n = some_node_with(w_.some_name()->lock);
  w_.judge.data_lost(n);
  return tamper(n, [](keyspace& data) {
    const bool something = !data.all().empty();
    data.clear();
    return something;
  });
}

// The counter of a semaphore is no hold.
bool faults::never_ends(std::size_t node, const std::string& name) {
  const auto& keys = nodes_[node].program().keys();
  const auto* e = keys.find(name);
  if (w_.is_latch(name)) return false;
  if (!w_.is_semaphore(name)) return e && !e->expires;
  long long left = 0;
  const auto* out = keys.find(w_.semaphore_at(name).permits);
  return (e && !(e->text() && to_integer(*e->text(), left))) ||
         (out && !out->sorted()->members().empty() && out->sorted()->members().rbegin()->first >= endless);
}

bool faults::take_away(std::size_t node, const std::string& name) {
  w_.judge.excuse(name);
  return tamper(node, [&](keyspace& data) {
    if (w_.is_shared(name)) erase_side_keys(data, w_.shared_at(name));
    if (w_.is_fair(name)) {
      data.erase(w_.fair_at(name).queue);
      data.erase(w_.fair_at(name).deadlines);
    }
    if (!w_.is_semaphore(name)) return data.erase(name);
    const auto of = w_.semaphore_at(name);
    data.erase(of.door);
    return data.erase(of.permits) + data.erase(name) > 0;
  });
}

// No claim ends by that: the next acquire makes the counter anew. Nobody hears that a door is open.
bool faults::evict_counter() {
  const auto& name = w_.some_name()->lock;
  if (!w_.is_semaphore(name)) return false;
  const auto of = w_.semaphore_at(name);
  const auto& key = w_.chance(70) ? of.name : of.door;
  w_.judge.released_in_silence(name);
  return tamper(some_node_with(key), [&](keyspace& data) { return data.erase(key); });
}

// The order of the clients is lost, and none of them has a message.
bool faults::evict_place() {
  const auto& name = w_.some_name()->lock;
  std::vector<std::string> all;
  if (w_.is_shared(name)) {
    const auto of = w_.shared_at(name);
    all = {of.queue, of.readers, of.turn};
  } else if (w_.is_fair(name)) {
    const auto of = w_.fair_at(name);
    all = {of.queue, of.deadlines};
  }
  const auto n = some_node_with(name);
  std::erase_if(all, [&](const auto& key) { return !nodes_[n].program().keys().find(key); });
  if (all.empty()) return false;
  w_.judge.released_in_silence(name);
  return tamper(n, [&](keyspace& data) { return data.erase(all[w_.below(all.size())]); });
}

// A writer takes that reader for dead, until the reader's next renewal.
bool faults::evict_deadline() {
  const auto& name = w_.some_name()->lock;
  if (!w_.is_shared(name)) return false;
  const auto of = w_.shared_at(name);
  const auto n = some_node_with(name);
  std::vector<std::string> all;
  for (const auto& [key, e] : nodes_[n].program().keys().all())
    if (of.is_deadline(key)) all.push_back(key);
  if (all.empty()) return false;
  w_.judge.excuse(name);
  return tamper(n, [&](keyspace& data) { return data.erase(all[w_.below(all.size())]); });
}

bool faults::delete_lock() {
  const auto& name = w_.some_name()->lock;
  return take_away(some_node_with(name), name);
}

bool faults::is_string(const std::string& name) const {
  return &w_.kind_of(name).layout == &detail::simple_lock.layout || w_.is_semaphore(name) || w_.is_latch(name);
}

bool faults::put_another_type() {
  const auto& name = w_.some_name()->lock;
  const auto n = some_node_with(name);
  take_away(n, name);
  tamper(n, [&](keyspace& data) {
    return is_string(name) ? data.to_write<hash_value>(name)->set("not", "a lock")
                           : data.put(name, "not a lock").text() != nullptr;
  });
  mend_after(some_time(), nullptr, n,
             [this, n, name] { take_away(servers_.fails_over() ? servers_.holder(0, name) : n, name); });
  return true;
}

bool faults::put_hold_without_ttl() {
  const auto& name = w_.some_name()->lock;
  const auto n = some_node_with(name);
  take_away(n, name);
  // With a colon, or short, it looks like a lock, and force_unlock() may free it.
  const bool like_a_lock = w_.chance(50);
  tamper(n, [&](keyspace& data) {
    if (w_.is_semaphore(name)) {
      const auto of = w_.semaphore_at(name);
      const auto out = 1 + w_.below(of.total);
      for (std::size_t i = 0; i < out; ++i)
        data.to_write<sorted_set>(of.permits)->set("somebody:" + std::to_string(i), endless);
      return data.put(name, std::to_string(of.total - out)).text() != nullptr;
    }
    if (w_.is_shared(name)) {
      auto& hash = *data.to_write<hash_value>(name);
      const bool writes = w_.chance(50);
      if (like_a_lock) hash.set("mode", writes ? "write" : "read");
      return hash.set(!like_a_lock ? "somebody" : writes ? "somebody:1:write" : "somebody:1", "1");
    }
    if (w_.is_latch(name)) return data.put(name, like_a_lock ? "3" : "no number").text() != nullptr;
    return is_string(name) ? data.put(name, like_a_lock ? "somebody" : std::string(300, 'x')).text() != nullptr
                           : data.to_write<hash_value>(name)->set(like_a_lock ? "somebody:1" : "somebody", "1");
  });
  mend_after(some_time(), nullptr, n,
             [this, n, name] { take_away(servers_.fails_over() ? servers_.holder(0, name) : n, name); });
  return true;
}

bool faults::take_ttl_away() {
  const auto& name = w_.some_name()->lock;
  if (w_.is_semaphore(name) || w_.is_latch(name)) return false;
  const auto n = some_node_with(name);
  const bool there = tamper(n, [&](keyspace& data) {
    auto* e = data.find(name);
    if (e) e->expires.reset();
    return e != nullptr;
  });
  if (!there) return false;
  mend_after(ttl_, nullptr, n, [this, n, name] {
    const auto at = servers_.fails_over() ? servers_.holder(0, name) : n;
    const auto* now = nodes_[at].program().keys().find(name);
    if (now && !now->expires) take_away(at, name);
  });
  return true;
}

bool faults::garble_token() {
  const auto& name = w_.some_name();
  if (!name->of.fenced()) return false;
  const auto key = detail::token_key(*name);
  const auto n = some_node_with(key);
  tamper(n, [&](keyspace& data) {
    if (w_.chance(50)) return data.put(key, "no number").text() != nullptr;
    data.erase(key);
    return data.to_write<hash_value>(key)->set("not", "a counter");
  });
  mend_after(some_time(), nullptr, n, [this, n, key, lock = name->lock] {
    tamper(servers_.fails_over() ? servers_.holder(0, key) : n, [&](keyspace& data) { return data.erase(key); });
    w_.judge.token_lost(lock);
  });
  return true;
}

}  // namespace holdfast::sim
