// SPDX-License-Identifier: BSL-1.0
#include "chaos/nemesis.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "lua_scripts.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using direction = test::proxy::direction;
using rule = test::proxy::rule;

struct moment {
  milliseconds when;
  bool begins;
  fault what;
};

std::vector<moment> in_order(const std::vector<fault>& storm) {
  std::vector<moment> moments;
  for (const auto& f : storm) {
    moments.push_back({f.begin, true, f});
    moments.push_back({f.end, false, f});
  }
  std::stable_sort(moments.begin(), moments.end(), [](const auto& a, const auto& b) { return a.when < b.when; });
  return moments;
}

/// -1: all workers, by way of the server.
long long whom(const fault& f) {
  return terms_of(f.kind).where == target::server ? -1 : static_cast<long long>(f.worker);
}

rule nth_reply(rule::action what, std::size_t n) {
  rule r;
  r.what = what;
  r.n = n;
  r.command = "EVALSHA";
  return r;
}

rule every_message(rule::action what) {
  rule r;
  r.what = what;
  r.times = test::proxy::always;
  r.command = "message";
  return r;
}

std::vector<std::string> locks(test::raw_client& server) {
  auto all = server("KEYS", "lock-*").strings();
  for (auto& key : server("KEYS", "breakable-*").strings()) all.push_back(std::move(key));
  return all;
}

bool is_simple(const std::string& lock) { return lock.find("simple") != std::string::npos; }

std::string channel_of(const std::string& lock) {
  return (is_simple(lock) ? "holdfast_simple:{" : "redisson_lock__channel:{") + lock + "}";
}

/// Empty: it is free.
std::string holder_of(test::raw_client& server, const std::string& lock) {
  if (is_simple(lock)) {
    const auto value = server("GET", lock);
    return value.is_nil() ? std::string() : value.to_string();
  }
  const auto fields = server("HKEYS", lock).strings();
  return fields.empty() ? std::string() : fields.front();
}

}  // namespace

nemesis::nemesis(stage& on, history& log, std::uint64_t seed, bool breaks_locks)
    : stage_(on), log_(log), dice_(seed), deck_(breaks_locks) {}

void nemesis::rage() {
  const auto start = steady_clock::now();
  for (const auto& m : in_order(make_storm(deck_, dice_, stage_.workers()))) {
    std::this_thread::sleep_until(start + m.when);
    m.begins ? begin(m.what) : end(m.what);
  }
}

milliseconds nemesis::calm() { return dice_.between(longest_ttl + 2s, longest_ttl + 4s); }

void nemesis::begin(const fault& f) {
  const auto& t = terms_of(f.kind);
  log_.write("fault").add("kind", t.name).add("worker", whom(f));
  if (t.where == target::link) return begin_on_link(f, stage_.link(f.worker));
  if (t.where == target::server) return begin_on_server(f);
  f.kind == fault_kind::stop_worker ? stage_.process(f.worker).stop() : stage_.kill(f.worker);
}

void nemesis::end(const fault& f) {
  const auto& t = terms_of(f.kind);
  if (t.where == target::link) stage_.link(f.worker).heal();
  if (f.kind == fault_kind::stop_worker) stage_.process(f.worker).cont();
  if (f.kind == fault_kind::kill_worker) stage_.start(f.worker);
  if (f.kind == fault_kind::stop_server) stage_.server().cont();
  log_.write("healed").add("kind", t.name).add("worker", whom(f));
}

void nemesis::begin_on_link(const fault& f, test::proxy& link) {
  switch (f.kind) {
    case fault_kind::cut: return link.cut();
    case fault_kind::refuse: link.refuse(); return link.cut();
    case fault_kind::swallow_requests: return link.swallow(direction::to_server);
    case fault_kind::swallow_replies: return link.swallow(direction::to_client);
    case fault_kind::hold_requests: return link.hold(direction::to_server);
    case fault_kind::hold_replies: return link.hold(direction::to_client);
    case fault_kind::delay_requests: return link.delay(direction::to_server, dice_.between(5ms, 120ms));
    case fault_kind::delay_replies: return link.delay(direction::to_client, dice_.between(5ms, 60ms));
    case fault_kind::cut_before_reply:
      for (std::size_t n = 1; n <= 10; ++n)
        link.at_reply(nth_reply(rule::action::cut_before, n * (10 + dice_.below(40))));
      return;
    case fault_kind::lose_reply: return link.at_reply(nth_reply(rule::action::drop_rest, 1 + dice_.below(20)));
    case fault_kind::lose_messages: return link.at_reply(every_message(rule::action::drop));
    case fault_kind::split: link.split(direction::to_server, 7); return link.split(direction::to_client, 3);
    case fault_kind::throttle: return link.throttle(direction::to_client, 20'000);
    default: return;
  }
}

void nemesis::begin_on_server(const fault& f) {
  const auto lasts = (f.end - f.begin).count();
  switch (f.kind) {
    case fault_kind::stop_server: return stage_.server().stop();
    case fault_kind::restart_server: return stage_.server().restart();
    case fault_kind::restart_empty: return stage_.server().restart_empty();
    case fault_kind::kill_clients: stage_.ask_server()("CLIENT", "KILL", "TYPE", "normal"); return;
    case fault_kind::kill_subscribers: stage_.ask_server()("CLIENT", "KILL", "TYPE", "pubsub"); return;
    case fault_kind::pause_writes: stage_.ask_server()("CLIENT", "PAUSE", lasts, "WRITE"); return;
    case fault_kind::pause_everything: stage_.ask_server()("CLIENT", "PAUSE", lasts, "ALL"); return;
    case fault_kind::flush_scripts: stage_.ask_server()("SCRIPT", "FLUSH"); return;
    case fault_kind::flush_all: stage_.ask_server()("FLUSHALL"); return;
    case fault_kind::foreign_release: return foreign_release();
    case fault_kind::false_messages: return false_messages();
    case fault_kind::delete_lock: return delete_locks();
    default: return;
  }
}

// By somebody who knows the holder's field except a digit of its client's uuid: the number behind it may be the next
// hold's.
void nemesis::foreign_release() {
  auto server = stage_.ask_server();
  for (const auto& lock : locks(server)) {
    auto stranger = holder_of(server, lock);
    if (stranger.empty()) continue;
    stranger.front() = stranger.front() == '0' ? '1' : '0';
    const auto reply =
        is_simple(lock)
            ? server("EVAL", detail::lua::simple_release.body, 1, lock, channel_of(lock), stranger)
            : server("EVAL", detail::lua::release.body, 1, lock, channel_of(lock), stranger, 0, client_ttl.count());
    log_.write("foreign_release").add("lock", lock).add("refused", reply.is_nil());
  }
}

void nemesis::false_messages() {
  auto server = stage_.ask_server();
  for (const auto& lock : locks(server))
    for (const auto* text : {"0", "1", "", "unlocked\r\n", "\xff"}) server("PUBLISH", channel_of(lock), text);
}

void nemesis::delete_locks() {
  auto server = stage_.ask_server();
  for (const auto& lock : locks(server)) server("DEL", lock);
}

}  // namespace holdfast::chaos
