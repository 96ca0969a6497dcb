// SPDX-License-Identifier: BSL-1.0
#include "sim/deployment.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t servers_under_sentinels = 3, nodes_of_a_cluster = 6;

}  // namespace

deployment::deployment(kind what, scheduler& plan, detail::random_source& random, trace& log, nanoseconds ttl,
                       std::size_t primaries)
    : kind_(what), random_(random) {
  const auto between = [&](nanoseconds from, nanoseconds to) { return from + random.up_to(to - from); };
  const bool several = what != kind::one_server, follows = what == kind::sentinel || what == kind::cluster;
  const auto count = machines_of(what, primaries);
  for (unsigned m = 0; m < count; ++m) {
    // Servers that take each other's place have their clocks set by one and the same.
    const auto rate = (static_cast<double>(random.next() % 11) - 5) / (follows ? 1e9 : 1e3);
    all_.emplace_back(plan, 1 + rate, several ? std::string(1, static_cast<char>('A' + m)) : std::string(), m);
    if (follows) all_.back().clock().step(milliseconds(random.next() % 20));
  }
  if (!follows) return;
  data_.emplace(plan, all_, random);
  usual_lag_ = data_->lag = between(50us, 3ms);
  const auto timeout = between(ttl / 20, ttl / 4), word = std::min<nanoseconds>(1s, between(1ms, ttl / 5));
  if (what == kind::sentinel) {
    const auto farewell = std::min<nanoseconds>(10s, between(1ms, 2 * ttl));
    sentinels_.emplace(plan, all_, *data_, random, log, sentinels::times{timeout, word, farewell});
    sentinels_->on_promotion = [this](member from, member to) { on_promotion(from, to); };
  } else {
    const auto step = random.next() % 4 == 0 ? between(10ms, ttl / 3) : between(50us, 10ms);
    cluster_.emplace(plan, all_, *data_, random, log, cluster::times{timeout, word / 4, step});
    cluster_->on_promotion = [this](member from, member to) { on_promotion(from, to); };
    cluster_->on_key_lost = [this](const std::string& key) { on_key_lost(key); };
  }
}

std::size_t deployment::machines_of(kind what, std::size_t primaries) {
  switch (what) {
    case kind::one_server: break;
    case kind::primaries: return primaries;
    case kind::sentinel: return servers_under_sentinels + sentinels::how_many;
    case kind::cluster: return nodes_of_a_cluster;
  }
  return 1;
}

deployment::member deployment::holder(std::size_t unit, std::string_view key) const {
  if (sentinels_) return sentinels_->primary();
  return cluster_ ? cluster_->owner(key) : unit;
}

bool deployment::holds_any(member m) const {
  if (sentinels_) return m == sentinels_->primary();
  if (!cluster_) return true;
  const auto all = cluster_->primaries();
  return std::find(all.begin(), all.end(), m) != all.end();
}

bool deployment::settled() const {
  if (sentinels_) return sentinels_->settled();
  return !cluster_ || cluster_->settled();
}

void deployment::look() {
  if (sentinels_) sentinels_->look();
  if (cluster_) cluster_->look();
}

bool deployment::fail_over() {
  return sentinels_ ? sentinels_->fail_over() : cluster_->fail_over(random_.next() % cluster::shards);
}

bool deployment::move(std::string_view key) { return cluster_->move(slot_of(key), random_.next() % cluster::shards); }

void deployment::isolate(member m, bool on) {
  data_->isolate(m, on);
  look();
}

void deployment::machine_lost(member m, bool what_is_on_its_way_too) {
  if (data_ && what_is_on_its_way_too) data_->lose_what_is_on_its_way_from(m);
  look();
}

void deployment::machine_is_back(member m) {
  if (data_) data_->resume(m);
  look();
}

void deployment::slow_down_replicas(nanoseconds lag) { data_->lag = std::max(lag, usual_lag_); }

detail::server_list deployment::servers_for(const config& values) const {
  detail::server_list s;
  s.kind = kind_;
  const auto introduce = [&](redis::endpoint& to) {
    to.client_name = values.client_name;
    to.connect_timeout = values.connect_timeout;
    to.reconnect_cap = values.reconnect_cap;
    to.health_check_interval = values.health_check_interval;
    to.pending_commands = values.pending_commands;
  };
  introduce(s.discovered);
  for (member m = 0; m < all_.size(); ++m) {
    if (sentinels_ && !is_sentinel(m)) continue;
    auto& to = s.servers.emplace_back();
    to.at = all_[m].at();
    introduce(to);
    if (sentinels_) to.expected = redis::server_mode::sentinel;
    if (cluster_) to.expected = redis::server_mode::cluster;
  }
  if (sentinels_) s.primary_name = sentinels::watched;
  if (cluster_) s.discovered.expected = redis::server_mode::cluster;
  return s;
}

}  // namespace holdfast::sim
