// SPDX-License-Identifier: BSL-1.0
#include "cli/server/diagnosis.hpp"

#include <algorithm>
#include <charconv>

#include "base/escape.hpp"
#include "cli/server/permissions.hpp"
#include "protocol/keys.hpp"
#include "topology/failover_time.hpp"

namespace holdfast::cli {
namespace {

constexpr int oldest_version = 600;
constexpr milliseconds largest_clock_difference(1'000);
constexpr long long least_buffer = 1024 * 1024;
constexpr long long largest_lag = 2;  // seconds
constexpr long long all_slots = 16'384;

long long number_in(std::string_view text) noexcept {
  long long number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// "0.3 ms"
std::string milliseconds_text(microseconds duration) {
  const auto tenths = (duration.count() + 50) / 100;
  return std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + " ms";
}

finding judge_version(const info_text& info) {
  const auto version = info.find("redis_version");
  if (version.empty()) return {verdict::warn, "version", "the server hides it", "grant +info"};
  if (version_number(version) < oldest_version)
    return {verdict::warn, "version", std::string(version) + " has no ACL", "upgrade to Redis 6 or later"};
  return {verdict::ok, "version", std::string(version)};
}

finding judge_eviction(const info_text& info) {
  const auto policy = info.find("maxmemory_policy");
  const auto limit = info.number("maxmemory");
  if (policy == "noeviction") return {verdict::ok, "eviction", "noeviction"};
  return {limit > 0 ? verdict::fail : verdict::warn, "eviction",
          std::string(policy) + ": a full server deletes locks that are held",
          "redis-cli CONFIG SET maxmemory-policy noeviction"};
}

finding judge_memory(const info_text& info) {
  const auto used = info.number("used_memory"), limit = info.number("maxmemory");
  const auto text = std::to_string(used / 1024 / 1024) + " MiB used";
  if (limit == 0) return {verdict::ok, "memory", text + ", no limit"};
  const auto of = text + " of " + std::to_string(limit / 1024 / 1024) + " MiB";
  if (used >= limit) return {verdict::fail, "memory", of + ": new locks are refused", "redis-cli --bigkeys"};
  if (used > limit / 10 * 9)
    return {verdict::warn, "memory", of + ": soon new locks are refused", "redis-cli --bigkeys"};
  return {verdict::ok, "memory", of};
}

finding judge_evicted(const info_text& info) {
  const auto evicted = info.number("evicted_keys");
  if (evicted == 0) return {verdict::ok, "evicted keys", "none"};
  return {verdict::warn, "evicted keys", std::to_string(evicted) + " keys since the start; locks may be among them",
          "redis-cli CONFIG SET maxmemory-policy noeviction"};
}

finding judge_persistence(const info_text& info, const detail::settings& settings) {
  if (info.number("aof_enabled") == 1) return {verdict::ok, "persistence", "append-only file"};
  if (settings.kind == detail::deployment::primaries && settings.values.red_lock.delayed_restart)
    return {verdict::ok, "persistence", "none; a restarted primary waits before it votes"};
  return {verdict::warn, "persistence", "no append-only file: a restart forgets all locks",
          "redis-cli CONFIG SET appendonly yes"};
}

finding judge_refusals(const info_text& info) {
  if (info.number("loading") == 1) return {verdict::fail, "writes", "the server is loading its data", "wait"};
  if (info.find("rdb_last_bgsave_status") == "err" || info.find("aof_last_write_status") == "err")
    return {verdict::fail, "writes", "the server cannot write to its disk, and may refuse locks",
            "redis-cli INFO persistence"};
  return {verdict::ok, "writes", "loaded, and its disk accepts them"};
}

finding judge_failover(const detail::failover_time& takes, milliseconds value, const detail::settings& settings,
                       const std::string& fix) {
  if (const auto why = detail::shorter_than(takes, value, settings.values.ttl))
    return {verdict::warn, "failover", *why, fix + ", or a longer ttl"};
  const auto text = std::string(takes.setting) + ' ' + std::to_string(value.count());
  return {verdict::ok, "failover", text + ": a lease outlives it"};
}

}  // namespace

std::string_view to_string(verdict verdict) noexcept {
  return verdict == verdict::ok ? "OK" : verdict == verdict::warn ? "WARN" : "FAIL";
}

std::string_view info_text::find(std::string_view field) const noexcept {
  for (auto at = text_.find(field); at != text_.npos; at = text_.find(field, at + 1)) {
    const bool begins = at == 0 || text_[at - 1] == '\n';
    const auto rest = text_.substr(at + field.size());
    if (begins && rest.starts_with(':')) return rest.substr(1, rest.find_first_of("\r\n") - 1);
  }
  return {};
}

long long info_text::number(std::string_view field) const noexcept { return number_in(find(field)); }

findings judge_server(const info_text& info, const detail::settings& settings) {
  return {judge_version(info),
          judge_eviction(info),
          judge_memory(info),
          judge_evicted(info),
          judge_persistence(info, settings),
          judge_refusals(info)};
}

std::chrono::seconds replica_lag(const info_text& info) {
  long long lag = 0;
  for (long long i = 0; i < info.number("connected_slaves"); ++i) {
    const auto replica = info.find("slave" + std::to_string(i));
    const auto at = replica.find("lag=");
    if (at != replica.npos) lag = std::max(lag, number_in(replica.substr(at + 4)));
  }
  return std::chrono::seconds(lag);
}

findings judge_replicas(const info_text& info, const detail::settings& settings) {
  const auto connected = info.number("connected_slaves");
  const auto wanted = static_cast<long long>(settings.values.min_replicas);
  if (connected < wanted)
    return {{verdict::fail, "replicas",
             std::to_string(connected) + " of the " + std::to_string(wanted) +
                 " that min_replicas wants: no lock is granted",
             "redis-cli INFO replication"}};
  if (connected == 0) return {{verdict::ok, "replicas", "none"}};
  const auto lag = replica_lag(info).count();
  const auto text = std::to_string(connected) + ", " + std::to_string(lag) + " s behind at most";
  if (lag > largest_lag)
    return {{verdict::warn, "replicas", text + ": a failover may lose locks", "redis-cli INFO replication"}};
  return {{verdict::ok, "replicas", text}};
}

finding judge_buffers(std::string_view setting) {
  const auto at = setting.find("pubsub ");
  if (at == setting.npos) return {verdict::warn, "pub/sub buffer", "the limit is unknown", "grant +config|get"};
  const auto limit = number_in(setting.substr(at + 7));
  if (limit != 0 && limit < least_buffer)
    return {verdict::warn, "pub/sub buffer", std::to_string(limit) + " bytes: waiters may be disconnected",
            "redis-cli CONFIG SET client-output-buffer-limit 'pubsub 33554432 8388608 60'"};
  return {verdict::ok, "pub/sub buffer", limit == 0 ? "no limit" : std::to_string(limit / 1024) + " KiB"};
}

finding judge_clock(milliseconds ahead) {
  const auto difference = ahead.count() < 0 ? -ahead : ahead;
  const auto text = std::to_string(difference.count()) + (ahead.count() < 0 ? " ms behind ours" : " ms before ours");
  if (difference > largest_clock_difference)
    return {verdict::warn, "clock", text + ": new fencing tokens follow the server's clock", "chronyc tracking"};
  return {verdict::ok, "clock", text};
}

finding judge_round_trips(microseconds slowest, microseconds middle, const detail::settings& settings) {
  const auto limit = std::min(settings.values.command_timeout, settings.values.ttl / 5);
  const auto text = milliseconds_text(middle) + " in the middle, " + milliseconds_text(slowest) +
                    " at most; a command may take " + std::to_string(limit.count()) + " ms";
  if (slowest >= limit)
    return {verdict::fail, "round trip", text, "raise command_timeout and ttl, or look at redis-cli --latency"};
  if (slowest >= limit / 4) return {verdict::warn, "round trip", text, "redis-cli --latency"};
  return {verdict::ok, "round trip", text};
}

finding judge_cluster(std::string_view cluster_info) {
  const info_text info(cluster_info);
  const auto state = info.find("cluster_state");
  const auto assigned = info.number("cluster_slots_ok");
  const auto text = "state " + std::string(state) + ", " + std::to_string(assigned) + " slots served";
  if (state != "ok") return {verdict::fail, "cluster", text, "redis-cli --cluster check HOST:PORT"};
  if (assigned != all_slots) return {verdict::fail, "cluster", text + " of 16384", "redis-cli --cluster fix HOST:PORT"};
  return {verdict::ok, "cluster", text};
}

finding judge_node_timeout(milliseconds timeout, const detail::settings& settings) {
  return judge_failover(detail::cluster_failover, timeout, settings, "redis-cli CONFIG SET cluster-node-timeout 5000");
}

findings judge_sentinels(const redis::reply& primary, const detail::settings& settings) {
  const auto value_of = [&](std::string_view field) {
    for (std::size_t i = 0; i + 1 < primary.elements.size(); i += 2)
      if (primary.elements[i].text == field) return number_in(primary.elements[i + 1].text);
    return 0LL;
  };
  const auto all = value_of("num-other-sentinels") + 1, quorum = value_of("quorum");
  const auto set = "redis-cli -p 26379 SENTINEL SET " + detail::escaped(settings.primary_name) + ' ';
  finding sentinels{verdict::ok, "sentinel", std::to_string(all) + " sentinels, quorum " + std::to_string(quorum)};
  if (all < 3) {
    sentinels = {verdict::warn, "sentinel", sentinels.text + ": two cannot tell which of them is cut off",
                 "run three or more"};
  } else if (2 * quorum <= all) {
    sentinels = {verdict::warn, "sentinel", sentinels.text + ": less than a majority",
                 set + "quorum " + std::to_string(all / 2 + 1)};
  }
  return {sentinels, judge_failover(detail::sentinel_failover, milliseconds(value_of("down-after-milliseconds")),
                                    settings, set + "down-after-milliseconds 5000")};
}

findings judge_lock(const lock_facts& lock, const detail::settings& settings) {
  const auto name = detail::in_quotes(lock.name);
  findings found;
  if (!lock.permits && lock.first().ttl < 0)
    found.push_back({verdict::fail, "lock", name + " has no TTL: it never ends, and lock() throws corrupt_lock",
                     "holdfast free -- " + name});
  if (!detail::fits_a_cluster(settings.values.key_prefix + lock.name))
    found.push_back({verdict::warn, "name", name + " cannot be locked in a cluster", "one hash tag, or no brace"});
  return found;
}

}  // namespace holdfast::cli
