// SPDX-License-Identifier: BSL-1.0
#include "cli/server/permissions.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

#include "cli/server/lock_facts.hpp"
#include "protocol/keys.hpp"
#include "redis/subscription_table.hpp"

namespace holdfast::cli {
namespace {

constexpr int with_channels = 602, with_sharded_channels = 700;

/// A rule has no blanks, and is printed: a '?' stands for each byte that is no printable ASCII.
std::string pattern_of(std::string_view prefix) {
  auto pattern = literal_pattern(prefix);
  std::replace_if(
      pattern.begin(), pattern.end(), [](unsigned char byte) { return byte <= 0x20 || byte >= 0x7f; }, '?');
  return pattern;
}

/// Patterns for the names beside the keys with this prefix. Keys with a brace get no braces there. `braces`: the part
/// behind the prefix may have one.
words beside(std::string_view stem, std::string_view prefix, bool braces) {
  const auto pattern = [&](const char* before) { return std::string(stem) + before + pattern_of(prefix) + '*'; };
  const bool has_brace = prefix.find('{') != prefix.npos;
  if (has_brace || (braces && prefix.empty())) return {pattern(":")};
  return braces ? words{pattern(":{"), pattern(":")} : words{pattern(":{")};
}

/// The key of an example, and the names beside it.
struct example_names {
  explicit example_names(const std::string& prefix)
      : key(prefix + "__probe:doctor"), braced(key.find('{') != key.npos ? key : '{' + key + '}') {}

  std::string key, braced;
  std::string channel = "redisson_lock__channel:" + braced;
  std::string simple_channel = "holdfast_simple:" + braced;
  std::string token = "redisson_lock_token:" + braced;
  std::string queue = "holdfast_queue:" + braced, readers = "holdfast_readers:" + braced,
              sides_channel = "redisson_rwlock:" + braced, wake_channel = "holdfast_wake:" + braced + ":uuid";
  std::string places = "redisson_lock_queue:" + braced, deadlines = "redisson_lock_timeout:" + braced;
  std::string permits = braced + ":timeout", door = "holdfast_turn:" + braced, permit_channel = "redisson_sc:" + braced;
  std::string mark = "holdfast_done:" + braced + ":uuid:1",
              latch_channel = "redisson_countdownlatch__channel__{" + key + '}';
  std::string election_channel = "holdfast_election:" + braced;
  std::string note = std::string(detail::note_stem) + ':' + braced;
  std::string marker = std::string(detail::vote_marker);
};

void add(std::vector<permission>& all, std::vector<permission> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void add_rules(words& rules, char sign, const words& patterns) {
  for (const auto& pattern : patterns) rules.push_back(sign + pattern);
}

}  // namespace

int version_number(std::string_view text) noexcept {
  int major = 0, minor = 0;
  const auto* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, major);
  if (first.ec != std::errc{}) return 0;
  if (first.ptr != end && *first.ptr == '.') std::from_chars(first.ptr + 1, end, minor);
  return major * 100 + minor;
}

permission_demand demand_of(const detail::settings& settings) {
  permission_demand demand;
  demand.prefix = settings.values.key_prefix;
  demand.red = settings.kind == detail::deployment::primaries;
  demand.cluster = settings.kind == detail::deployment::cluster;
  demand.classic = settings.values.cluster.pubsub == pubsub_mode::classic;
  demand.replicas = settings.values.min_replicas > 0;
  demand.notes = settings.values.notes;
  demand.pushes = settings.values.push != push_mode::off;
  const auto selects = [](const redis::endpoint& node) { return node.db != 0; };
  demand.selects = selects(settings.discovered) || std::ranges::any_of(settings.servers, selects);
  return demand;
}

std::vector<permission> permissions_of(const permission_demand& demand) {
  const example_names names(demand.prefix);
  const auto& key = names.key;
  std::vector<permission> all{
      {"eval", {"eval", "return 1", "0"}},
      {"evalsha", {"evalsha", "0000000000000000000000000000000000000000", "0"}},
      {"exists", {"exists", key}},
      {"hexists", {"hexists", key, "field"}},
      {"hget", {"hget", key, "field"}},
      {"hset", {"hset", key, "field", "1"}},
      {"hdel", {"hdel", key, "field"}},
      {"hlen", {"hlen", key}},
      {"hgetall", {"hgetall", key}},
      {"pttl", {"pttl", key}},
      {"pexpire", {"pexpire", key, "1000"}},
      {"del", {"del", key}},
      {"publish", {"publish", names.channel, "0"}},
      {"subscribe", {"subscribe", names.channel}},
      {"unsubscribe", {"unsubscribe", names.channel}},
      {"ping", {"ping"}},
      {"client|setname", {"client", "setname", "name"}},
      {"client|id", {"client", "id"}},
      {"client|kill", {"client", "kill", "id", "1"}},
      {"info", {"info", "server"}},
      {"role", {"role"}},
  };
  if (demand.pushes)
    add(all, {{"client|tracking", {"client", "tracking", "off"}},
              {"client|caching", {"client", "caching", "yes"}},
              {"subscribe", {"subscribe", std::string(redis::push_channel)}}});
  if (demand.selects) add(all, {{"select", {"select", "1"}}});
  if (demand.fenced) add(all, {{"get", {"get", names.token}}, {"set", {"set", names.token, "1"}}, {"time", {"time"}}});
  if (demand.simple)
    add(all, {{"getrange", {"getrange", key, "0", "256"}},
              {"set", {"set", key, "value"}},
              {"publish", {"publish", names.simple_channel, "0"}}});
  if (demand.fair)
    add(all, {{"time", {"time"}},
              {"llen", {"llen", names.places}},
              {"lrange", {"lrange", names.places, "0", "127"}},
              {"lrem", {"lrem", names.places, "1", "place"}},
              {"rpush", {"rpush", names.places, "place"}},
              {"zadd", {"zadd", names.deadlines, "1", "place"}},
              {"zrem", {"zrem", names.deadlines, "place"}},
              {"zscore", {"zscore", names.deadlines, "place"}}});
  if (demand.permits)
    add(all, {{"get", {"get", key}},
              {"set", {"set", key, "1"}},
              {"incrby", {"incrby", key, "1"}},
              {"time", {"time"}},
              {"zadd", {"zadd", names.permits, "1", "member"}},
              {"zrem", {"zrem", names.permits, "member"}},
              {"zscore", {"zscore", names.permits, "member"}},
              {"zcard", {"zcard", names.permits}},
              {"zcount", {"zcount", names.permits, "-inf", "0"}},
              {"zrangebyscore", {"zrangebyscore", names.permits, "-inf", "0"}},
              {"set", {"set", names.door, "1"}},
              {"publish", {"publish", names.permit_channel, "0"}}});
  if (demand.shared) {
    const bool sharded = demand.cluster && demand.version >= with_sharded_channels && !demand.classic;
    const std::string count = sharded ? "shardnumsub" : "numsub";
    add(all, {{"get", {"get", names.door}},
              {"set", {"set", names.door, "1"}},
              {"time", {"time"}},
              {"hmget", {"hmget", key, "mode", "field"}},
              {"zadd", {"zadd", names.queue, "1", "member"}},
              {"zrem", {"zrem", names.queue, "member"}},
              {"zrange", {"zrange", names.queue, "0", "0"}},
              {"zrank", {"zrank", names.queue, "member"}},
              {"zcard", {"zcard", names.queue}},
              {"zpopmin", {"zpopmin", names.queue}},
              {"zscore", {"zscore", names.readers, "member"}},
              {"pubsub|" + count, {"pubsub", count, names.wake_channel}},
              {"publish", {"publish", names.sides_channel, "0"}},
              {"publish", {"publish", names.wake_channel, "w"}}});
  }
  if (demand.latch)
    add(all, {{"get", {"get", key}},
              {"set", {"set", key, "1"}},
              {"get", {"get", names.mark}},
              {"set", {"set", names.mark, "1"}},
              {"publish", {"publish", names.latch_channel, "0"}}});
  if (demand.election)
    add(all, {{"get", {"get", names.token}},
              {"set", {"set", names.token, "1"}},
              {"time", {"time"}},
              {"publish", {"publish", names.election_channel, "0"}}});
  if (demand.notes)
    add(all,
        {{"getrange", {"getrange", names.note, "0", "511"}}, {"set", {"set", names.note, "1"}}, {"time", {"time"}}});
  if (demand.red) add(all, {{"get", {"get", names.marker}}, {"set", {"set", names.marker, "value"}}});
  if (demand.cluster) {
    add(all, {{"cluster|slots", {"cluster", "slots"}}, {"asking", {"asking"}}});
    if (demand.version >= with_sharded_channels)
      add(all, {{"ssubscribe", {"ssubscribe", names.channel}},
                {"sunsubscribe", {"sunsubscribe", names.channel}},
                {"spublish", {"spublish", names.channel, "0"}}});
  }
  if (demand.replicas) add(all, {{"wait", {"wait", "0", "1"}}});
  if (demand.operates) {
    add(all, {{"scan", {"scan", "0"}},
              {"type", {"type", key}},
              {"hscan", {"hscan", key, "0"}},
              {"getrange", {"getrange", key, "0", "256"}},
              {"getrange", {"getrange", names.note, "0", "511"}},
              {"get", {"get", names.token}},
              {"llen", {"llen", names.places}},
              {"zcard", {"zcard", names.permits}},
              {"zcount", {"zcount", names.permits, "0", "+inf"}},
              {"zrangebyscore", {"zrangebyscore", names.permits, "0", "+inf"}},
              {"client|list", {"client", "list"}},
              {"time", {"time"}},
              {"config|get", {"config", "get", "timeout"}},
              {"acl|whoami", {"acl", "whoami"}}});
    const bool of_version_7 = demand.version >= with_sharded_channels;
    if (of_version_7) add(all, {{"acl|dryrun", {"acl", "dryrun", "default", "ping"}}});
    if (demand.cluster)
      add(all, {{"cluster|info", {"cluster", "info"}}});
    else
      add(all, {{"psubscribe", {"psubscribe", channel_patterns(channels::mutex, demand.prefix, false).front()}},
                {"pubsub|numsub", {"pubsub", "numsub", names.channel}}});
    if (demand.cluster && of_version_7) add(all, {{"pubsub|shardnumsub", {"pubsub", "shardnumsub", names.channel}}});
  }
  return all;
}

words least_rules(const permission_demand& demand) {
  words rules{"resetkeys", '~' + pattern_of(demand.prefix) + '*'};
  if (!demand.prefix.empty() && (demand.fenced || demand.election || demand.operates))
    add_rules(rules, '~', beside("redisson_lock_token", demand.prefix, demand.braces));
  if (!demand.prefix.empty() && (demand.fair || demand.operates))
    add_rules(rules, '~', beside("redisson_lock_queue", demand.prefix, demand.braces));
  if (!demand.prefix.empty() && demand.fair)
    add_rules(rules, '~', beside("redisson_lock_timeout", demand.prefix, demand.braces));
  // Of a key with a brace the names of its permits and of its readers begin as the key does.
  const bool has_keys_below = demand.permits || demand.shared || demand.operates;
  if (!demand.prefix.empty() && has_keys_below && demand.prefix.find('{') == demand.prefix.npos)
    rules.push_back("~{" + pattern_of(demand.prefix) + '*');
  if (!demand.prefix.empty() && (demand.permits || demand.shared))
    add_rules(rules, '~', beside("holdfast_turn", demand.prefix, demand.braces));
  for (const auto* stem : {"holdfast_queue", "holdfast_readers"})
    if (!demand.prefix.empty() && demand.shared) add_rules(rules, '~', beside(stem, demand.prefix, demand.braces));
  if (!demand.prefix.empty() && demand.latch)
    add_rules(rules, '~', beside("holdfast_done", demand.prefix, demand.braces));
  if (!demand.prefix.empty() && (demand.notes || demand.operates))
    add_rules(rules, '~', beside(detail::note_stem, demand.prefix, demand.braces));
  if (!demand.prefix.empty() && demand.red) rules.push_back('~' + std::string(detail::vote_marker) + '*');
  if (demand.version >= with_channels) {
    rules.push_back("resetchannels");
    const auto grant = [&](std::string_view stem) {
      add_rules(rules, '&', channel_patterns(stem, demand.prefix, demand.braces));
    };
    grant(channels::mutex);
    if (demand.pushes) rules.push_back('&' + std::string(redis::push_channel));
    if (demand.permits || demand.operates) grant(channels::semaphore);
    if (demand.simple || demand.operates) grant(channels::simple_mutex);
    if (demand.shared || demand.operates) grant(channels::shared_mutex);
    if (demand.shared || demand.operates) grant(channels::wake);
    if (demand.shared) grant("holdfast_waiters");
    if (demand.election || demand.operates) grant(channels::election);
    // The channel of a latch has braces around any name.
    if (demand.latch) rules.push_back("&redisson_countdownlatch__channel__{" + pattern_of(demand.prefix) + '*');
  }
  rules.push_back("-@all");
  for (const auto& granted : permissions_of(demand)) {
    const auto rule = '+' + granted.rule;
    if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(rule);
  }
  return rules;
}

words channel_patterns(std::string_view stem, std::string_view prefix, bool braces) {
  return beside(stem, prefix, braces);
}

words sentinel_rules() {
  return {"resetchannels",
          "&+switch-master",
          "-@all",
          "+sentinel|master",
          "+sentinel|get-master-addr-by-name",
          "+sentinel|sentinels",
          "+sentinel|myid",
          "+subscribe",
          "+ping",
          "+info",
          "+role",
          "+client|setname",
          "+client|id",
          "+client|kill"};
}

}  // namespace holdfast::cli
