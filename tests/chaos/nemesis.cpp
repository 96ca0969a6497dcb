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
  // A failover takes its time, and so does what follows: nothing else is to last until then.
  const auto order = [](const moment& m) {
    const auto where = terms_of(m.what.kind).where;
    return std::pair(m.begins ? 0 : where == target::shard ? 1 : where == target::sentinel ? 2 : 0, m.when);
  };
  std::stable_sort(moments.begin(), moments.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  return moments;
}

/// A server's concerns all workers (-1), a worker's all servers.
void tell(history& log, std::string_view what, const fault& f) {
  const auto& t = terms_of(f.kind);
  const bool of_worker = t.where == target::link || t.where == target::worker;
  log.write(what)
      .add("kind", t.name)
      .add("worker", of_worker ? static_cast<long long>(f.worker) : -1)
      .add("server", t.where == target::worker ? -1 : static_cast<long long>(f.server));
}

/// A forgotten connection stays forgotten: the client finds out.
bool heals(fault_kind k) { return k != fault_kind::forget_in_silence && k != fault_kind::forget_with_reset; }

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
  for (const auto* others : {"breakable-*", "shared-*", "fair-*"})
    for (auto& key : server("KEYS", others).strings()) all.push_back(std::move(key));
  return all;
}

bool is_simple(const std::string& lock) { return lock.find("simple") != std::string::npos; }

std::string channel_of(const std::string& lock) {
  if (lock == shared_name) return "redisson_rwlock:{" + lock + "}";
  return (is_simple(lock) ? "holdfast_simple:{" : "redisson_lock__channel:{") + lock + "}";
}

/// Empty: it is free.
std::string holder_of(test::raw_client& server, const std::string& lock) {
  if (is_simple(lock)) {
    const auto value = server("GET", lock);
    return value.is_nil() ? std::string() : value.to_string();
  }
  auto fields = server("HKEYS", lock).strings();
  std::erase(fields, "mode");
  return fields.empty() ? std::string() : fields.front();
}

/// A release of the shared_mutex, of the side that the field says.
test::value release_side(test::raw_client& server, const std::string& lock, const std::string& field) {
  const auto beside = [&](std::string_view stem) { return std::string(stem) + ":{" + lock + "}"; };
  const auto queue = beside("holdfast_queue"), readers = beside("holdfast_readers"), turn = beside("holdfast_turn");
  if (field.ends_with(":write"))
    return server("EVAL", detail::lua::write_release.body, 4, lock, queue, readers, turn, "publish", channel_of(lock),
                  field, 20);
  const auto deadline = "{" + lock + "}:" + field + ":rwlock_timeout:1";
  return server("EVAL", detail::lua::read_release.body, 5, lock, deadline, queue, readers, turn, "publish",
                channel_of(lock), field, 20);
}

/// Of the places in which somebody waits for a fair_mutex.
std::vector<std::string> channels_of_places(test::raw_client& server, bool sharded) {
  const auto pattern = "redisson_lock__channel:{" + std::string(fair_names) + "*";
  return server("PUBSUB", sharded ? "SHARDCHANNELS" : "CHANNELS", pattern).strings();
}

void send_false_messages(test::raw_client& server, bool sharded) {
  auto channels = channels_of_places(server, sharded);
  for (const auto& lock : locks(server)) channels.push_back(channel_of(lock));
  for (const auto& channel : channels)
    for (const auto* text : {"0", "1", "", "unlocked\r\n", "\xff"})
      server(sharded ? "SPUBLISH" : "PUBLISH", channel, text);
}

/// The order of those that wait for a fair_mutex, their deadlines, or both.
void lose_queues(test::raw_client& server, dice& d) {
  for (const auto* side_keys : {"redisson_lock_queue:*", "redisson_lock_timeout:*"})
    for (const auto& key : server("KEYS", side_keys).strings())
      if (d.per_mille(700)) server("DEL", key);
}

void delete_locks(test::raw_client server) {
  for (const auto& lock : locks(server)) server("DEL", lock);
}

}  // namespace

nemesis::nemesis(stage& on, history& log, std::uint64_t seed, campaign c)
    : stage_(on), log_(log), campaign_(c), dice_(seed), deck_(c, false), shards_(c, true) {}

void nemesis::rage() {
  const auto start = steady_clock::now();
  for (const auto& m : in_order(make_storm(campaign_, deck_, shards_, dice_, stage_.workers(), stage_.servers()))) {
    stage_.watch_until(start + m.when);
    m.begins ? begin(m.what) : end(m.what);
  }
}

milliseconds nemesis::calm() { return dice_.between(longest_ttl(campaign_) + 2s, longest_ttl(campaign_) + 4s); }

void nemesis::begin(const fault& f) {
  const auto& t = terms_of(f.kind);
  tell(log_, "fault", f);
  if (t.where == target::link) return begin_on_link(f, stage_.link(f.worker, f.server));
  if (t.where == target::server) return begin_on_server(f);
  if (t.where == target::shard || t.where == target::sentinel) return stage_.shards().begin(f.kind, dice_);
  f.kind == fault_kind::stop_worker ? stage_.process(f.worker).stop() : stage_.kill(f.worker);
}

void nemesis::end(const fault& f) {
  const auto& t = terms_of(f.kind);
  if (t.where == target::link && heals(f.kind)) stage_.link(f.worker, f.server).heal();
  if (t.where == target::shard || t.where == target::sentinel) stage_.shards().end(f.kind);
  if (f.kind == fault_kind::stop_worker) stage_.process(f.worker).cont();
  if (f.kind == fault_kind::kill_worker) stage_.start(f.worker);
  if (f.kind == fault_kind::stop_server) stage_.server(f.server).cont();
  if (f.kind == fault_kind::restart_old) stage_.restart_with_kept_data(f.server);
  tell(log_, "healed", f);
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
    case fault_kind::forget_in_silence: return link.forget();
    case fault_kind::forget_with_reset: return link.forget(true);
    case fault_kind::throttle: return link.throttle(direction::to_client, 20'000);
    default: return;
  }
}

void nemesis::begin_on_server(const fault& f) {
  if (fails_over(campaign_)) return begin_on_primaries(f);
  const auto lasts = (f.end - f.begin).count();
  auto& server = stage_.server(f.server);
  switch (f.kind) {
    case fault_kind::stop_server: return server.stop();
    case fault_kind::restart_server: return server.restart();
    case fault_kind::restart_empty: return server.restart_empty();
    case fault_kind::restart_old: return stage_.keep_data(f.server);
    case fault_kind::pause_writes: stage_.ask(f.server)("CLIENT", "PAUSE", lasts, "WRITE"); return;
    case fault_kind::pause_everything: stage_.ask(f.server)("CLIENT", "PAUSE", lasts, "ALL"); return;
    case fault_kind::flush_all: stage_.ask(f.server)("FLUSHALL"); return;
    case fault_kind::delete_lock: return delete_locks(stage_.ask(f.server));
    default: return begin_on(stage_.ask(f.server), f.kind);
  }
}

void nemesis::begin_on_primaries(const fault& f) {
  for (auto* primary : stage_.shards().primaries()) try {
      begin_on(test::raw_client(*primary), f.kind);
    } catch (const std::exception&) {  // it is being replaced, or its slots move
    }
}

// What hurts nobody, or clients alone, who come back at once.
void nemesis::begin_on(test::raw_client server, fault_kind k) {
  switch (k) {
    case fault_kind::kill_clients: server("CLIENT", "KILL", "TYPE", "normal"); return;
    case fault_kind::kill_subscribers: server("CLIENT", "KILL", "TYPE", "pubsub"); return;
    case fault_kind::flush_scripts: server("SCRIPT", "FLUSH"); return;
    case fault_kind::foreign_release: return foreign_release(server);
    case fault_kind::false_messages: return send_false_messages(server, campaign_ == campaign::cluster);
    case fault_kind::lose_queues: return lose_queues(server, dice_);
    default: return;
  }
}

// By somebody who knows the holder's field except a digit of its client's uuid: the number behind it may be the next
// hold's.
void nemesis::foreign_release(test::raw_client& server) {
  for (const auto& lock : locks(server)) {
    auto stranger = holder_of(server, lock);
    if (stranger.empty()) continue;
    stranger.front() = stranger.front() == '0' ? '1' : '0';
    const auto reply = lock == shared_name ? release_side(server, lock, stranger)
                       : is_simple(lock)   ? server("EVAL", detail::lua::simple_release.body, 1, lock, "publish",
                                                    channel_of(lock), stranger)
                                           : server("EVAL", detail::lua::release.body, 1, lock, "publish",
                                                    channel_of(lock), stranger, 0, client_ttl(campaign_).count());
    log_.write("foreign_release").add("lock", lock).add("refused", reply.is_nil());
  }
}

}  // namespace holdfast::chaos
