// SPDX-License-Identifier: BSL-1.0
#include "cli/web/server_survey.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "cli/server/diagnosis.hpp"
#include "cli/server/primaries.hpp"

namespace holdfast::cli {
namespace {

constexpr int round_trips_of_survey = 5;

json::array json_of(const findings& found) {
  json::array all;
  for (const auto& one : found)
    all.push_back({{"verdict", to_string(one.is)}, {"check", one.check}, {"text", one.text}, {"fix", one.fix}});
  return all;
}

asio::awaitable<json::object> survey_server(network& over, redis::endpoint node, const detail::settings& settings) {
  json::object server;
  server["server"] = node.to_string();
  server["failure"] = nullptr;
  try {
    const auto session = co_await session::open(over, std::move(node), answer_limit(settings));
    for (int i = 0; i < round_trips_of_survey; ++i) {
      words ping{"PING"};
      co_await session->ask(std::move(ping));
    }
    words command{"INFO"};
    const auto reply = co_await session->ask(std::move(command));
    const info_text info(reply.is_error() ? std::string_view() : std::string_view(reply.text));
    server["version"] = session->facts().version;
    server["role"] = info.find("role");
    server["replicas"] = info.number("connected_slaves");
    server["lag_s"] = replica_lag(info).count();
    server["round_trip_us"] = session->round_trip().count();
    auto found = judge_server(info, settings);
    for (auto& one : judge_replicas(info, settings)) found.push_back(std::move(one));
    server["findings"] = json_of(found);
  } catch (const error& failed) {
    server["failure"] = failed.what();
  }
  co_return server;
}

struct surveys {
  json::array found;
  std::size_t left;
  asio::steady_timer done;
};

asio::awaitable<void> survey_into(std::shared_ptr<surveys> all, std::size_t place, network& over, redis::endpoint node,
                                  const detail::settings& settings) {
  auto server = co_await survey_server(over, std::move(node), settings);
  all->found[place] = std::move(server);
  if (--all->left == 0) all->done.cancel();
}

/// At the same time: servers that stand still delay the answer by no more than one of them.
asio::awaitable<json::array> survey_all(network& over, std::vector<redis::endpoint> nodes,
                                        const detail::settings& settings) {
  const auto executor = co_await asio::this_coro::executor;
  const auto all = std::make_shared<surveys>(surveys{
      json::array(nodes.size()), nodes.size(), asio::steady_timer(executor, asio::steady_timer::time_point::max())});
  for (std::size_t i = 0; i < nodes.size(); ++i)
    asio::co_spawn(executor, survey_into(all, i, over, std::move(nodes[i]), settings), asio::detached);
  boost::system::error_code done;
  while (all->left > 0) co_await all->done.async_wait(asio::redirect_error(asio::use_awaitable, done));
  co_return std::move(all->found);
}

}  // namespace

asio::awaitable<std::string> survey_servers(network& over, const detail::settings& settings) {
  json::array servers;
  std::vector<redis::endpoint> nodes;
  std::string failure;
  try {
    nodes = co_await find_primaries(over, settings);
  } catch (const error& failed) {
    failure = failed.what();
  }
  if (!failure.empty()) {
    json::object nobody;
    nobody["server"] = "";
    nobody["failure"] = failure;
    servers.push_back(std::move(nobody));
  }
  if (failure.empty()) servers = co_await survey_all(over, std::move(nodes), settings);
  co_return json::serialize(servers);
}

}  // namespace holdfast::cli
