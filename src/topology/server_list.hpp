// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "redis/endpoint.hpp"

namespace holdfast::detail {

enum class deployment { one_server, primaries, sentinel, cluster };

/// The address of a server as servers announce it, and the address by which this process reaches it.
struct node_mapping {
  redis::address announced, reach;
};

/// Maps an announced address to the one by which the server is reached; empty: the same.
using reach_by = std::function<redis::address(const redis::address& announced)>;
reach_by reach_of(const std::vector<node_mapping>& node_map);

/// The servers of a client, by its configuration.
struct server_list {
  deployment kind = deployment::one_server;
  /// one_server: that server. primaries: all of them. sentinel: the configured sentinels, with their own credentials
  /// and TLS. cluster: the configured nodes.
  std::vector<redis::endpoint> servers;
  /// sentinel, cluster: how to introduce ourselves to a server that is discovered; `at` is filled in then.
  redis::endpoint discovered;
  std::string primary_name;            // sentinel: the sentinels' name for it; bytes without blanks
  std::vector<node_mapping> node_map;  // sentinel, cluster: applied to every discovered address; no `announced` twice
};

}  // namespace holdfast::detail
