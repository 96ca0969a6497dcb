// SPDX-License-Identifier: BSL-1.0
#include "cli/server/primaries.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "config/numbers.hpp"
#include "topology/cluster/slot_map.hpp"

namespace holdfast::cli {
namespace {

using detail::deployment;

/// The primary by one sentinel.
asio::awaitable<redis::endpoint> ask_sentinel(network& over, const detail::settings& settings,
                                              const redis::endpoint& sentinel) {
  const auto asked = co_await session::open(over, sentinel, answer_limit(settings));
  words command{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", settings.primary_name};
  const auto reply = co_await asked->ask(std::move(command));
  if (reply.is_error()) throw error(errc::server_refused, sentinel.to_string() + ": " + asked->words_of(reply));
  const auto port = reply.elements.size() == 2 ? detail::parse_number(reply.elements[1].text) : std::nullopt;
  const auto at =
      port ? detail::announced_address(reply.elements[0].text, *port, sentinel.at, detail::reach_of(settings.node_map))
           : std::nullopt;
  if (!at) throw error(errc::invalid_config, sentinel.to_string() + ": it knows no such primary");
  co_return settings.discovered.with(*at);
}

/// The primaries by one node of a cluster.
asio::awaitable<std::vector<redis::endpoint>> ask_node(network& over, const detail::settings& settings,
                                                       redis::endpoint node) {
  node.any_role = true;
  const auto asked = co_await session::open(over, node, answer_limit(settings));
  words command{"CLUSTER", "SLOTS"};
  const auto reply = co_await asked->ask(std::move(command));
  if (reply.is_error()) throw error(errc::server_refused, node.to_string() + ": " + asked->words_of(reply));
  const auto view = detail::read_slots(reply, node.at, detail::reach_of(settings.node_map));
  if (!view) throw error(errc::protocol_error, node.to_string() + ": CLUSTER SLOTS cannot be read");
  std::vector<redis::endpoint> found;
  for (const auto& range : view->ranges) {
    const auto known = [&](const redis::endpoint& other) { return range.primary && other.at == *range.primary; };
    if (range.primary && std::none_of(found.begin(), found.end(), known))
      found.push_back(settings.discovered.with(*range.primary));
  }
  if (found.empty()) throw error(errc::unreachable, node.to_string() + ": no slot has a primary");
  co_return found;
}

}  // namespace

milliseconds answer_limit(const detail::settings& settings) {
  return std::max(settings.values.command_timeout, settings.values.connect_timeout);
}

asio::awaitable<std::vector<redis::endpoint>> find_primaries(network& over, const detail::settings& settings) {
  if (settings.kind == deployment::one_server || settings.kind == deployment::primaries) co_return settings.servers;
  std::optional<error> last;
  for (const auto& server : settings.servers) {
    try {
      if (settings.kind == deployment::cluster) co_return co_await ask_node(over, settings, server);
      std::vector<redis::endpoint> primary;
      primary.push_back(co_await ask_sentinel(over, settings, server));
      co_return primary;
    } catch (const error& failed) {
      last.emplace(failed);
    }
  }
  throw error(*last);
}

asio::awaitable<std::vector<std::unique_ptr<session>>> open_primaries(network& over, const detail::settings& settings) {
  const auto nodes = co_await find_primaries(over, settings);
  std::vector<std::unique_ptr<session>> sessions;
  std::optional<error> last;
  for (const auto& node : nodes) {
    try {
      sessions.push_back(co_await session::open(over, node, answer_limit(settings)));
    } catch (const error& failed) {
      last.emplace(failed);
      if (settings.kind != deployment::primaries) throw;
    }
  }
  if (sessions.size() * 2 <= nodes.size()) throw error(*last);
  co_return sessions;
}

}  // namespace holdfast::cli
