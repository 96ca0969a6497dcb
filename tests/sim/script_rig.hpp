// SPDX-License-Identifier: BSL-1.0
// Scripts in each state of their keys: the answers of a primary, a replica, a primary that may not write, and one that
// is full. The simulated node and real servers play them.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lua_scripts.hpp"
#include "sim/values.hpp"
#include "support/catch.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"
#include "support/skip.hpp"
#include "testing/sim/node.hpp"

namespace holdfast::test::scripts {

using sim::arguments;

using asked = std::function<value(const arguments&)>;

/// A state of the keys, and the commands that make it.
struct state {
  const char* name;
  std::vector<arguments> made_by;
};

/// A script, and its answer in each state.
struct row {
  const char* name;
  arguments call;
  std::vector<const char*> answers;  // of a primary, one for each state
  std::vector<bool> reads;           // the answer needs no primary: neither yours nor not yours nor acquired
  std::vector<bool> grows;           // a full server refuses
};

inline arguments eval(const detail::lua::script_text& script, const arguments& keys, const arguments& args) {
  arguments a{"EVAL", std::string(script.body), std::to_string(keys.size())};
  a.insert(a.end(), keys.begin(), keys.end());
  a.insert(a.end(), args.begin(), args.end());
  return a;
}

/// A primary and its replica.
struct servers {
  asked primary, replica;
  std::function<void()> replicate = [] {};
  std::function<void(bool)> withhold_writes, fill;
};

/// The states of a kind of lock, and each of its scripts in all of them. `fits` compares an answer with its text.
struct table {
  const std::vector<state>& states;
  const std::vector<row>& rows;
  bool (*fits)(const value&, std::string_view);
};
using tables = std::vector<table>;

inline void each(const tables& all,
                 const std::function<void(const table&, const row&, const state&, std::size_t)>& use) {
  for (const auto& t : all)
    for (const auto& r : t.rows)
      for (std::size_t s = 0; s < t.states.size(); ++s) {
        INFO(r.name << ", " << t.states[s].name);
        use(t, r, t.states[s], s);
      }
}

inline void make(const servers& all, const state& s) {
  REQUIRE(all.primary({"FLUSHALL"}) == "OK");
  for (const auto& command : s.made_by) REQUIRE_FALSE(all.primary(command).is_error());
}

inline void check_answer(const table& t, const value& said, std::string_view expected) {
  INFO(said << " instead of " << expected);
  CHECK(t.fits(said, expected));
}

inline void check_primary(const servers& all, const tables& of) {
  each(of, [&](const table& t, const row& r, const state& found, std::size_t s) {
    make(all, found);
    check_answer(t, all.primary(r.call), r.answers[s]);
  });
}

inline void check_replica(const servers& all, const tables& of) {
  each(of, [&](const table& t, const row& r, const state& found, std::size_t s) {
    make(all, found);
    all.replicate();
    check_answer(t, all.replica(r.call), r.reads[s] ? r.answers[s] : "READONLY");
  });
}

inline void check_without_writes(const servers& all, const tables& of) {
  each(of, [&](const table& t, const row& r, const state& found, std::size_t s) {
    make(all, found);
    all.withhold_writes(true);
    const auto said = all.primary(r.call);
    all.withhold_writes(false);
    check_answer(t, said, r.reads[s] ? r.answers[s] : "NOREPLICAS");
  });
}

inline void check_full(const servers& all, const tables& of) {
  each(of, [&](const table& t, const row& r, const state& found, std::size_t s) {
    make(all, found);
    all.fill(true);
    const auto said = all.primary(r.call);
    all.fill(false);
    check_answer(t, said, r.grows[s] ? "OOM" : r.answers[s]);
  });
}

template <class T>
const T& named(const std::vector<T>& all, std::string_view name) {
  return *std::find_if(all.begin(), all.end(), [&](const T& each) { return each.name == name; });
}

/// The simulated node plays both.
struct simulated {
  std::int64_t clock_us = 1'750'000'000'000'000;
  sim::node node{[this] { return clock_us++; }, [](sim::node::session_id, const sim::reply&) {},
                 [](sim::node::session_id) {}};
  value as(sim::refusal why, const arguments& a) {
    node.refuse(why);
    const auto v = sim::as_value(node.execute(a));
    node.refuse(sim::refusal::none);
    return v;
  }
  sim::refusal primary_is = sim::refusal::none;
  servers all{[this](const arguments& a) { return as(primary_is, a); },
              [this](const arguments& a) { return as(sim::refusal::replica, a); }, [] {},
              [this](bool on) { primary_is = on ? sim::refusal::no_replicas : sim::refusal::none; },
              [this](bool on) { primary_is = on ? sim::refusal::out_of_memory : sim::refusal::none; }};
};

inline redis_options with_port() {
  redis_options o;
  o.tcp = true;
  o.arguments = {"--repl-diskless-sync-delay", "0"};
  return o;
}
inline redis_options replica_of(const real_redis& primary) {
  redis_options o;
  o.arguments = {"--replicaof", "127.0.0.1", std::to_string(primary.port())};
  return o;
}

struct real_pair {
  real_redis first{with_port()}, second{replica_of(first)};
  raw_client to_first{first}, to_second{second};
  servers all{[this](const arguments& a) { return to_first.call(a); },
              [this](const arguments& a) { return to_second.call(a); },
              [this] { REQUIRE(to_first("WAIT", 1, 30'000) == 1); },
              [this](bool on) { to_first("CONFIG", "SET", "min-replicas-to-write", on ? 5 : 0); },
              [this](bool on) { to_first("CONFIG", "SET", "maxmemory", on ? 1 : 0); }};
  real_pair() { to_first.patience = to_second.patience = std::chrono::seconds(60); }
};

inline void need_redis() {
  if (!real_redis::available()) skip("no Redis server");
}

}  // namespace holdfast::test::scripts
