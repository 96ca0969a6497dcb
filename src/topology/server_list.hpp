// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "redis/endpoint.hpp"

namespace holdfast::detail {

enum class deployment { one_server, primaries, sentinel, cluster };

/// A server tells of itself or another by the one address, and is reached by the other.
struct node_mapping {
  redis::address announced, reach;
};

/// Where a server is reached that is told of so; empty: there.
using reach_by = std::function<redis::address(const redis::address& announced)>;
reach_by reach_of(const std::vector<node_mapping>& node_map);

/// What a client has been told of its servers.
struct server_list {
  deployment kind = deployment::one_server;
  /// one_server: it. primaries: them. sentinel: the sentinels that were given, with a sentinel's own credentials and
  /// TLS. cluster: the nodes that were given.
  std::vector<redis::endpoint> servers;
  /// sentinel, cluster: how to introduce ourselves to a server that is discovered; `at` is filled in then.
  redis::endpoint discovered;
  std::string primary_name;            // sentinel: what the sentinels call it; bytes without blanks
  std::vector<node_mapping> node_map;  // sentinel, cluster: applied to every discovered address; no `announced` twice
};

}  // namespace holdfast::detail
