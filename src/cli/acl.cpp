// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/this_coro.hpp>
#include <boost/json/array.hpp>

#include <algorithm>
#include <utility>

#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/server/permissions.hpp"
#include "cli/server/primaries.hpp"

namespace holdfast::cli {
namespace {

/// For a POSIX shell.
std::string quoted_for_shell(const std::string& word) {
  if (word.find_first_of(" \t\n'\"\\*?[]{}~&|<>()$;#`!") == word.npos) return word;
  std::string text = "'";
  for (const char byte : word) text += byte == '\'' ? "'\\''" : std::string(1, byte);
  return text + '\'';
}

void print_rules(const acl_options& options, const char* where, const std::string& user, const words& rules) {
  if (options.access.json) {
    json::object line;
    line["at"] = where;
    line["user"] = user;
    json::array list;
    for (const auto& rule : rules) list.emplace_back(rule);
    line["rules"] = std::move(list);
    print(line);
    return;
  }
  std::string line = "redis-cli ACL SETUSER " + quoted_for_shell(user) + " on '>PASSWORD'";
  for (const auto& rule : rules) line += ' ' + quoted_for_shell(rule);
  print(line);
}

/// The name is printed as it is, for a shell.
void refuse_odd_user(const std::string& name) {
  const auto is_odd = [](unsigned char byte) { return byte <= 0x20 || byte >= 0x7f; };
  if (name.empty() || std::any_of(name.begin(), name.end(), is_odd))
    throw usage_error("--rule-for takes printable ASCII without blanks");
}

asio::awaitable<int> version_of_server(const detail::settings& settings) {
  network over(co_await asio::this_coro::executor);
  const auto sessions = co_await open_primaries(over, settings);
  const auto number = version_number(sessions.front()->facts().version);
  if (number == 0) throw usage_error("the server hides its version: give --server-version");
  co_return number;
}

}  // namespace

asio::awaitable<int> acl(acl_options options) {
  refuse_odd_user(options.user);
  const auto settings = detail::resolve(config_of(options.access));
  auto demand = demand_of(settings);
  if (!options.prefix.empty()) demand.prefix = options.prefix;
  demand.fenced = options.fenced;
  demand.simple = options.simple;
  demand.fair = options.fair;
  demand.permits = options.permits;
  demand.shared = options.shared;
  demand.latch = options.latch;
  demand.election = options.election;
  demand.notes |= options.notes;
  demand.braces = options.braces;
  demand.operates = options.operates;
  if (options.version.empty())
    demand.version = co_await version_of_server(settings);
  else
    demand.version = version_number(options.version);
  if (demand.version < 600) throw usage_error("Redis has users since version 6");
  print_rules(options, "servers", options.user, least_rules(demand));
  if (settings.kind == detail::deployment::sentinel) print_rules(options, "sentinels", "watcher", sentinel_rules());
  co_return done;
}

}  // namespace holdfast::cli
