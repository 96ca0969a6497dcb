// SPDX-License-Identifier: BSL-1.0
#include "sim/faults.hpp"

#include <algorithm>
#include <numeric>

#include "protocol/keys.hpp"

namespace holdfast::sim {
using namespace std::chrono_literals;

faults::faults(workload& w, server& node, std::vector<std::unique_ptr<sim_client>>& clients, nanoseconds ttl)
    : w_(w), server_(node), clients_(clients), ttl_(ttl), has_calms_(w.chance(25)) {
  server_.program().on_refused = [this](std::string_view error) {
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
      {"demoted to a replica", 2, &faults::become_replica},
      {"loading", 2, &faults::load_data},
      {"busy with a script", 2, &faults::be_busy},
      {"CLIENT KILL refused", 1, &faults::refuse_client_kill},
      {"client pause", 10, &faults::pause_client},
      {"client closed", 1, &faults::close_one},
      {"FLUSHALL", 2, &faults::flush_all},
      {"DEL of a lock", 4, &faults::delete_lock},
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
  for (const auto& c : clients_) c->way().at_next_write = nullptr;
}

void faults::strike() {
  const auto& all = kinds();
  static const auto total =
      std::accumulate(all.begin(), all.end(), 0U, [](unsigned sum, const kind& k) { return sum + k.weight; });
  auto dice = w_.below(total);
  striking_ = &*std::find_if(all.begin(), all.end(),
                             [&](const kind& k) { return dice < k.weight || (dice -= k.weight, false); });
  w_.log.note(w_.plan.now(), "nemesis", striking_->name);
  if ((this->*striking_->strike)()) feel(striking_->name);
}

void faults::feel(std::string_view fault) {
  ++felt_;
  w_.met.hit(std::string("fault: ").append(fault));
}

sim_client& faults::some_client() { return *clients_[w_.below(clients_.size())]; }

nanoseconds faults::some_time() { return w_.chance(70) ? w_.between(1ms, ttl_ / 2) : w_.between(1ms, ttl_ * 2); }

void faults::mend_after(nanoseconds duration, const sim_client* whom, std::function<void()> undo) {
  w_.judge.trouble(whom, w_.plan.now() + duration);
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

bool faults::mend_after(nanoseconds duration, const sim_client* whom, counter met, std::function<void()> undo) {
  mend_after(duration, whom, std::move(undo));
  watch(striking_->name, w_.plan.now() + duration, met);
  return false;
}

void faults::watch(std::string_view fault, time_point end, counter met) {
  w_.plan.at(end, [this, fault, before = met, &met] {
    if (met != before) feel(fault);
  });
}

bool faults::to_wires(const std::function<bool(sim_client&, wire&)>& act) {
  auto& c = some_client();
  const auto blame = [this, &c, act](wire& w) {
    w_.judge.trouble(&c, w_.plan.now());
    return act(c, w);
  };
  if (w_.chance(60)) {
    c.way().at_next_write = [this, blame, fault = striking_->name](wire& w) {
      if (blame(w)) feel(fault);
    };
    return false;
  }
  const auto open = c.way().wires();
  return std::count_if(open.begin(), open.end(), [&](const auto& w) { return blame(*w); }) != 0;
}

bool faults::reset_losing_requests() {
  return to_wires([](sim_client&, wire& w) {
    const bool there = !w.ended();
    w.lose_up();
    w.end_at_client();
    w.end_at_server({});
    return there;
  });
}

bool faults::reset_losing_replies() {
  return to_wires([](sim_client&, wire& w) {
    const bool there = !w.ended();
    w.end_at_client();
    w.end_at_server({});
    return there;
  });
}

bool faults::reset_with_late_requests() {
  const auto late = some_time();
  return to_wires([this, late](sim_client&, wire& w) {
    const bool there = !w.ended();
    mended_at_ = std::max(mended_at_, w_.plan.now() + late);
    w.hold_up_until(w_.plan.now() + late);
    w.end_at_client();
    w.end_at_server({});
    return there;
  });
}

bool faults::swallow(void (wire::*what)() noexcept) {
  return to_wires([this, what, fault = striking_->name](sim_client& c, wire& w) {
    (w.*what)();
    watch(fault, w_.plan.now() + 2 * ttl_, c.way().did.lost);
    return false;
  });
}

bool faults::swallow_requests() { return swallow(&wire::lose_up); }
bool faults::swallow_replies() { return swallow(&wire::lose_down); }

bool faults::partition() {
  auto& c = some_client();
  for (const auto& w : c.way().wires()) {
    w->lose_up();
    w->lose_down();
  }
  c.way().blocked = true;
  return mend_after(some_time(), &c, c.way().did.lost, [&c] { c.way().blocked = false; });
}

bool faults::slow_down() {
  auto& c = some_client();
  c.way().now = {w_.between(1ms, ttl_ / 2), w_.between(1ms, ttl_ / 2)};
  const auto duration = some_time();
  w_.judge.trouble(&c, w_.plan.now() + duration + ttl_ * 2);  // what was sent slowly arrives later
  return mend_after(duration, &c, c.way().did.slowed, [&c] { c.way().now = c.way().usual; });
}

bool faults::lose_messages() {
  auto& c = some_client();
  c.way().loses_messages = true;
  const auto duration = some_time();
  undo_after(duration, [&c] { c.way().loses_messages = false; });
  watch(striking_->name, w_.plan.now() + duration, c.way().did.messages_lost);
  return false;
}

bool faults::delay_messages() {
  auto& c = some_client();
  c.way().message_delay = w_.between(1ms, ttl_ / 2);
  w_.judge.trouble(&c, w_.plan.now() + ttl_);
  return mend_after(ttl_ / 2, &c, c.way().did.messages_delayed, [&c] { c.way().message_delay = {}; });
}

bool faults::spoof_message() {
  if (!server_.running()) return false;
  const std::string payloads[] = {"0", "1", "", std::string("\0\r\n$-1", 6), std::string(2000, 'x')};
  long long heard = 0;
  for (const auto& name : w_.names)
    heard += server_.program()
                 .execute({"PUBLISH", detail::channel_of(*name), payloads[w_.below(std::size(payloads))]})
                 .integer;
  return heard != 0;
}

bool faults::pause_server() {
  server_.stop();
  return mend_after(some_time(), nullptr, server_.held_back(), [this] { server_.resume(); });
}

bool faults::restart(bool keep_data) {
  if (server_.down()) return false;
  server_.shut_down();
  if (!keep_data) w_.judge.excuse({});
  mend_after(w_.between(1ms, ttl_ / 2), nullptr, [this, keep_data] {
    server_.start(keep_data);
    if (keep_data) return;
    w_.judge.excuse({});
    w_.judge.tokens_lost();
  });
  return true;
}

bool faults::restart_with_loss() { return restart(false); }
bool faults::restart_without_loss() { return restart(true); }

bool faults::flush_scripts() { return server_.program().forget_scripts(); }

bool faults::step_clock_forward() {
  w_.judge.excuse({});
  server_.clock().step(std::chrono::duration_cast<milliseconds>(w_.between(1ms, ttl_ * 2)));
  return true;
}

bool faults::step_clock_back() {
  const auto by = std::chrono::duration_cast<milliseconds>(w_.between(1ms, ttl_ * 2));
  w_.judge.clock_stepped_back(by);
  server_.clock().step(-by);
  return true;
}

bool faults::refuse(refusal why) {
  server_.program().refuse(why);
  const auto error = text_of(why);
  return mend_after(some_time(), nullptr, refused_[std::string(error.substr(0, error.find(' ')))],
                    [this] { server_.program().refuse(refusal::none); });
}

bool faults::run_out_of_memory() { return refuse(refusal::out_of_memory); }
bool faults::fail_disk() { return refuse(refusal::disk_failed); }
bool faults::lose_replicas() { return refuse(refusal::no_replicas); }
bool faults::become_replica() { return refuse(refusal::replica); }
bool faults::load_data() { return refuse(refusal::loading); }
bool faults::be_busy() { return refuse(refusal::busy); }

bool faults::refuse_client_kill() {
  server_.program().refuse_client_kill(true);
  const auto duration = 2 * ttl_;
  undo_after(duration, [this] { server_.program().refuse_client_kill(false); });
  watch(striking_->name, w_.plan.now() + duration, refused_["NOPERM"]);
  return false;
}

// Often with a command on its way: its answer then waits with the alarms.
bool faults::pause_client() {
  auto& c = some_client();
  const auto pause = [this, &c, fault = striking_->name] {
    if (c.process().paused()) return;
    mend_after(some_time(), &c, [this, &c, fault] {
      if (c.process().behind()) feel(fault);
      c.process().pause(false);
    });
    c.process().pause(true);
  };
  if (w_.chance(50))
    c.way().at_next_write = [pause](wire&) { pause(); };
  else
    pause();
  return false;
}

bool faults::close_one() { return close_client(some_client()); }

bool faults::flush_all() {
  w_.judge.excuse({});
  w_.judge.tokens_lost();
  const bool something = !server_.program().keys().all().empty();
  server_.program().tamper().clear();
  return something;
}

bool faults::take_away(const std::string& name) {
  w_.judge.excuse(name);
  return server_.program().tamper().erase(name);
}

bool faults::delete_lock() { return take_away(w_.some_name()->lock); }

bool faults::is_string(const std::string& name) const { return &w_.kind_of(name) == &detail::simple_lock; }

bool faults::put_another_type() {
  const auto& name = w_.some_name()->lock;
  take_away(name);
  if (is_string(name))
    server_.program().tamper().hash_to_write(name)->set("not", "a lock");
  else
    server_.program().tamper().put(name, "not a lock");
  mend_after(some_time(), nullptr, [this, name] { take_away(name); });
  return true;
}

bool faults::put_hold_without_ttl() {
  const auto& name = w_.some_name()->lock;
  take_away(name);
  // With a colon, or short, it looks like a lock, and force_unlock() may free it.
  const bool like_a_lock = w_.chance(50);
  if (is_string(name))
    server_.program().tamper().put(name, like_a_lock ? "somebody" : std::string(300, 'x'));
  else
    server_.program().tamper().hash_to_write(name)->set(like_a_lock ? "somebody:1" : "somebody", "1");
  mend_after(some_time(), nullptr, [this, name] { take_away(name); });
  return true;
}

bool faults::take_ttl_away() {
  const auto& name = w_.some_name()->lock;
  auto* e = server_.program().tamper().find(name);
  if (!e) return false;
  e->expires.reset();
  mend_after(ttl_, nullptr, [this, name] {
    const auto* now = server_.program().keys().find(name);
    if (now && !now->expires) take_away(name);
  });
  return true;
}

bool faults::garble_token() {
  const auto& name = w_.some_name();
  if (!name->of.fenced) return false;
  const auto key = detail::token_key(*name);
  auto& data = server_.program().tamper();
  if (w_.chance(50)) {
    data.put(key, "no number");
  } else {
    data.erase(key);
    data.hash_to_write(key)->set("not", "a counter");
  }
  mend_after(some_time(), nullptr, [this, key, lock = name->lock] {
    server_.program().tamper().erase(key);
    w_.judge.token_lost(lock);
  });
  return true;
}

}  // namespace holdfast::sim
