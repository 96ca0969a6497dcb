// SPDX-License-Identifier: BSL-1.0
#include "config/deployment.hpp"

#include <initializer_list>

#include <holdfast/error.hpp>

#include "config/host.hpp"

namespace holdfast::detail {
namespace {

constexpr std::size_t longest_node_map = 1024;  // a cluster is said to have 1000 nodes at most

struct field {
  const char* name;
  const char* key;  // of the URL
  bool is_set;
};

[[noreturn]] void refuse_setting(const std::string& why) { throw error(errc::invalid_config, why); }

void refuse_each(std::initializer_list<field> fields, const url_parts& url, const char* why) {
  for (const auto& [name, key, is_set] : fields) {
    if (url.find(key)) refuse_setting("url: " + std::string(key) + why);
    if (is_set) refuse_setting(std::string(name) + why);
  }
}

redis::address read_node(const std::string& text, const std::string& name) {
  auto read = parse_host(text, 0, name);
  if (read.port == 0) refuse_setting(name + ": no port; both sides are written host:port");
  return {std::move(read.host), read.port, ""};
}

}  // namespace

deployment deployment_of(const url_parts& url) noexcept {
  switch (url.kind) {
    case url_parts::scheme::sentinel: return deployment::sentinel;
    case url_parts::scheme::cluster: return deployment::cluster;
    case url_parts::scheme::server:
    case url_parts::scheme::unix_socket: break;
  }
  return deployment::one_server;
}

void check_meaning(const config& config, deployment kind, const url_parts& url) {
  if (kind != deployment::sentinel)
    refuse_each({{"sentinel.user", "sentinel_user", !config.sentinel.user.empty()},
                 {"sentinel.password", "sentinel_password", !config.sentinel.password.empty()},
                 {"sentinel.tls", "sentinel_tls", config.sentinel.tls.has_value()},
                 {"sentinel.strict", "strict_sentinel", config.sentinel.strict}},
                url, " is set, and the url names no sentinels: redis+sentinel:// or rediss+sentinel://");
  if (kind != deployment::cluster)
    refuse_each({{"cluster.pubsub", "pubsub", config.cluster.pubsub != pubsub_mode::automatic}}, url,
                " is set, and the url names no cluster: redis+cluster:// or rediss+cluster://");
  if (kind != deployment::sentinel && kind != deployment::cluster)
    refuse_each({{"node_map", "node_map", !config.node_map.empty()}}, url,
                " is set, and the url names neither sentinels nor a cluster, which would tell of nodes");
  if (kind == deployment::primaries)
    refuse_each({{"min_replicas", "min_replicas", config.min_replicas != 0}}, url,
                " is set, and red_lock.primaries are: their majority takes the place of replicas");
}

void check_is_one_server(const url_parts& url) {
  if (deployment_of(url) == deployment::one_server) return;
  refuse_setting(
      "url: sentinels or a cluster, whose failover may forget a vote; allowed: redis://, rediss:// or redis+unix://");
}

std::vector<node_mapping> read_node_map(const std::vector<std::pair<std::string, std::string>>& pairs) {
  if (pairs.size() > longest_node_map)
    refuse_setting("node_map has " + std::to_string(pairs.size()) + " pairs; allowed: 0 to 1024");
  std::vector<node_mapping> map;
  for (const auto& [announced, reach] : pairs) {
    const auto name = "node_map[" + std::to_string(map.size()) + "]";
    map.push_back({read_node(announced, name), read_node(reach, name)});
  }
  for (std::size_t first = 0; first < map.size(); ++first)
    for (std::size_t right = first + 1; right < map.size(); ++right)
      if (map[first].announced == map[right].announced)
        refuse_setting("node_map[" + std::to_string(first) + "] and node_map[" + std::to_string(right) +
                       "] map the same address");
  return map;
}

}  // namespace holdfast::detail
