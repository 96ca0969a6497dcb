// SPDX-License-Identifier: BSL-1.0
#include "sim/faults.hpp"

#include <algorithm>
#include <numeric>

#include "protocol/protocol.hpp"

namespace holdfast::sim {
using namespace std::chrono_literals;

faults::faults(workload& w, server& node, std::vector<std::unique_ptr<sim_client>>& clients, nanoseconds ttl)
    : w_(w), server_(node), clients_(clients), ttl_(ttl) {}

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
      {"loading", 2, &faults::load_data},
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
  w_.plan.after(w_.between(w_.pace / 4, w_.pace * 4), [this] {
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
  const auto chosen =
      std::find_if(all.begin(), all.end(), [&](const kind& k) { return dice < k.weight || (dice -= k.weight, false); });
  w_.log.note(w_.plan.now(), "nemesis", chosen->name);
  w_.met.hit(std::string("fault: ").append(chosen->name));
  ++strikes_;
  (this->*chosen->strike)();
}

sim_client& faults::some_client() { return *clients_[w_.below(clients_.size())]; }

nanoseconds faults::some_time() { return w_.chance(70) ? w_.between(1ms, ttl_ / 2) : w_.between(1ms, ttl_ * 2); }

void faults::mend_after(nanoseconds duration, const sim_client* whom, std::function<void()> undo) {
  const auto end = w_.plan.now() + duration;
  mended_at_ = std::max(mended_at_, end);
  w_.judge.trouble(whom, end);
  w_.plan.at(end, [this, undo = std::move(undo)] {
    w_.log.note(w_.plan.now(), "nemesis", "mends");
    undo();
  });
}

void faults::to_wires(const std::function<void(wire&)>& act) {
  auto& c = some_client();
  const auto blame = [this, &c, act](wire& w) {
    w_.judge.trouble(&c, w_.plan.now());
    act(w);
  };
  if (w_.chance(60)) {
    c.way().at_next_write = blame;
    return;
  }
  for (const auto& w : c.way().wires()) blame(*w);
}

void faults::reset_losing_requests() {
  to_wires([](wire& w) {
    w.lose_up();
    w.end_at_client();
    w.end_at_server({});
  });
}

void faults::reset_losing_replies() {
  to_wires([](wire& w) {
    w.end_at_client();
    w.end_at_server({});
  });
}

void faults::reset_with_late_requests() {
  const auto late = some_time();
  to_wires([this, late](wire& w) {
    mended_at_ = std::max(mended_at_, w_.plan.now() + late);
    w.hold_up_until(w_.plan.now() + late);
    w.end_at_client();
    w.end_at_server({});
  });
}

void faults::swallow_requests() {
  to_wires([](wire& w) { w.lose_up(); });
}

void faults::swallow_replies() {
  to_wires([](wire& w) { w.lose_down(); });
}

void faults::partition() {
  auto& c = some_client();
  for (const auto& w : c.way().wires()) {
    w->lose_up();
    w->lose_down();
  }
  c.way().blocked = true;
  mend_after(some_time(), &c, [&c] { c.way().blocked = false; });
}

void faults::slow_down() {
  auto& c = some_client();
  c.way().now = {w_.between(1ms, ttl_ / 2), w_.between(1ms, ttl_ / 2)};
  const auto duration = some_time();
  w_.judge.trouble(&c, w_.plan.now() + duration + ttl_ * 2);  // what was sent slowly arrives later
  mend_after(duration, &c, [&c] { c.way().now = c.way().usual; });
}

void faults::lose_messages() {
  auto& c = some_client();
  c.way().loses_messages = true;
  mend_after(some_time(), &c, [&c] { c.way().loses_messages = false; });
}

void faults::delay_messages() {
  auto& c = some_client();
  c.way().message_delay = w_.between(1ms, ttl_ / 2);
  w_.judge.trouble(&c, w_.plan.now() + ttl_);
  mend_after(ttl_ / 2, &c, [&c] { c.way().message_delay = {}; });
}

void faults::spoof_message() {
  if (!server_.running()) return;
  const std::string payloads[] = {"0", "1", "", std::string("\0\r\n$-1", 6), std::string(2000, 'x')};
  for (const auto& name : w_.names)
    server_.program().execute({"PUBLISH", name->channel, payloads[w_.below(std::size(payloads))]});
}

void faults::pause_server() {
  server_.stop();
  mend_after(some_time(), nullptr, [this] { server_.resume(); });
}

void faults::restart(bool keep_data) {
  if (server_.down()) return;
  server_.shut_down();
  if (!keep_data) w_.judge.excuse({});
  mend_after(w_.between(1ms, ttl_ / 2), nullptr, [this, keep_data] {
    server_.start(keep_data);
    if (!keep_data) w_.judge.excuse({});
  });
}

void faults::restart_with_loss() { restart(false); }
void faults::restart_without_loss() { restart(true); }

void faults::flush_scripts() { server_.program().forget_scripts(); }

void faults::step_clock_forward() {
  w_.judge.excuse({});
  server_.clock().step(std::chrono::duration_cast<milliseconds>(w_.between(1ms, ttl_ * 2)));
}

void faults::step_clock_back() {
  const auto by = std::chrono::duration_cast<milliseconds>(w_.between(1ms, ttl_ * 2));
  w_.judge.clock_stepped_back(by);
  server_.clock().step(-by);
}

void faults::refuse(refusal why) {
  server_.program().refuse(why);
  mend_after(some_time(), nullptr, [this] { server_.program().refuse(refusal::none); });
}

void faults::run_out_of_memory() { refuse(refusal::out_of_memory); }
void faults::fail_disk() { refuse(refusal::disk_failed); }
void faults::load_data() { refuse(refusal::loading); }

void faults::refuse_client_kill() {
  server_.program().refuse_client_kill(true);
  w_.judge.fencing_refused();
}

void faults::pause_client() {
  auto& c = some_client();
  if (c.process().paused()) return;
  c.process().pause(true);
  mend_after(some_time(), &c, [&c] { c.process().pause(false); });
}

void faults::close_one() { close_client(some_client()); }

void faults::flush_all() {
  w_.judge.excuse({});
  server_.program().tamper().clear();
}

void faults::take_away(const std::string& name) {
  w_.judge.excuse(name);
  server_.program().tamper().erase(name);
}

void faults::delete_lock() { take_away(w_.some_name()->lock); }

void faults::put_another_type() {
  const auto& name = w_.some_name()->lock;
  take_away(name);
  server_.program().tamper().put(name, "not a lock");
  mend_after(some_time(), nullptr, [this, name] { take_away(name); });
}

void faults::put_hold_without_ttl() {
  const auto& name = w_.some_name()->lock;
  take_away(name);
  server_.program().tamper().hash_to_write(name)->set("somebody", "1");
  mend_after(some_time(), nullptr, [this, name] { take_away(name); });
}

void faults::take_ttl_away() {
  const auto& name = w_.some_name()->lock;
  if (auto* e = server_.program().tamper().find(name)) e->expires.reset();
  mend_after(ttl_, nullptr, [this, name] {
    const auto* e = server_.program().keys().find(name);
    if (e && !e->expires) take_away(name);
  });
}

void faults::garble_token() {
  const auto key = detail::token_key(*w_.some_name());
  if (w_.chance(50))
    server_.program().tamper().put(key, "no number");
  else if (auto* hash = server_.program().tamper().hash_to_write(key))
    hash->set("not", "a counter");
  mend_after(some_time(), nullptr, [this, key] { server_.program().tamper().erase(key); });
}

}  // namespace holdfast::sim
