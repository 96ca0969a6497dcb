// SPDX-License-Identifier: BSL-1.0
#include "cli/server/permissions.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

#include "cli/server/lock_facts.hpp"
#include "protocol/keys.hpp"

namespace holdfast::cli {
namespace {

constexpr int with_channels = 602, with_sharded_channels = 700;

/// A rule has no blanks: a '?' stands for each.
std::string pattern_of(std::string_view prefix) {
  auto pattern = literal_pattern(prefix);
  std::replace_if(
      pattern.begin(), pattern.end(), [](unsigned char byte) { return byte <= 0x20; }, '?');
  return pattern;
}

/// A pattern for the names beside the keys with this prefix.
std::string beside(std::string_view stem, std::string_view prefix, bool braces) {
  const bool unbraced = braces || prefix.find('{') != prefix.npos;
  return std::string(stem).append(unbraced ? ":" : ":{").append(pattern_of(prefix)).append("*");
}

/// The key of an example, and the names beside it.
struct example_names {
  explicit example_names(const std::string& prefix)
      : key(prefix + "__probe:doctor"), braced(key.find('{') != key.npos ? key : '{' + key + '}') {}

  std::string key, braced;
  std::string channel = "redisson_lock__channel:" + braced;
  std::string simple_channel = "holdfast_simple:" + braced;
  std::string token = "redisson_lock_token:" + braced;
  std::string note = std::string(detail::note_stem) + ':' + braced;
  std::string marker = std::string(detail::vote_marker);
};

void add(std::vector<permission>& all, std::vector<permission> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
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
  demand.replicas = settings.values.min_replicas > 0;
  demand.notes = settings.values.notes;
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
      {"select", {"select", "0"}},
  };
  if (demand.fenced) add(all, {{"get", {"get", names.token}}, {"set", {"set", names.token, "1"}}, {"time", {"time"}}});
  if (demand.simple)
    add(all, {{"getrange", {"getrange", key, "0", "256"}},
              {"set", {"set", key, "value"}},
              {"publish", {"publish", names.simple_channel, "0"}}});
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
              {"client|list", {"client", "list"}},
              {"time", {"time"}},
              {"config|get", {"config", "get", "timeout"}},
              {"acl|whoami", {"acl", "whoami"}},
              {"pubsub|numsub", {"pubsub", "numsub", names.channel}}});
    if (demand.version >= with_sharded_channels)
      add(all, {{"acl|dryrun", {"acl", "dryrun", "default", "ping"}},
                {"pubsub|shardnumsub", {"pubsub", "shardnumsub", names.channel}}});
    if (demand.cluster) add(all, {{"cluster|info", {"cluster", "info"}}});
  }
  return all;
}

words least_rules(const permission_demand& demand) {
  words rules{"resetkeys", '~' + pattern_of(demand.prefix) + '*'};
  const auto add_keys = [&](std::string_view stem) {
    rules.push_back('~' + beside(stem, demand.prefix, false));
    if (demand.braces) rules.push_back('~' + beside(stem, demand.prefix, true));
  };
  if (!demand.prefix.empty() && (demand.fenced || demand.operates)) add_keys("redisson_lock_token");
  if (!demand.prefix.empty() && (demand.notes || demand.operates)) add_keys(detail::note_stem);
  if (!demand.prefix.empty() && demand.red) rules.push_back('~' + std::string(detail::vote_marker) + '*');
  if (demand.version >= with_channels) {
    rules.push_back("resetchannels");
    for (const char* stem : {"redisson_lock__channel", "holdfast_simple"}) {
      if (stem[0] == 'h' && !demand.simple && !demand.operates) continue;
      rules.push_back('&' + beside(stem, demand.prefix, false));
      if (demand.braces) rules.push_back('&' + beside(stem, demand.prefix, true));
    }
  }
  rules.push_back("-@all");
  for (const auto& granted : permissions_of(demand)) {
    const auto rule = '+' + granted.rule;
    if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(rule);
  }
  return rules;
}

words sentinel_rules() {
  return {"resetchannels",
          "&*",
          "-@all",
          "+sentinel|master",
          "+sentinel|get-master-addr-by-name",
          "+sentinel|sentinels",
          "+sentinel|myid",
          "+subscribe",
          "+unsubscribe",
          "+ping",
          "+info",
          "+role",
          "+auth",
          "+client|setname",
          "+client|id",
          "+client|kill"};
}

}  // namespace holdfast::cli
