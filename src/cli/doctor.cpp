// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/server/diagnosis.hpp"
#include "cli/server/lock_reader.hpp"
#include "cli/server/permissions.hpp"
#include "cli/server/primaries.hpp"
#include "config/numbers.hpp"

namespace holdfast::cli {
namespace {

using clock = std::chrono::steady_clock;
constexpr int round_trips = 21;
constexpr std::size_t most_complaints = 10;  // about locks

milliseconds since(clock::time_point begin) { return std::chrono::duration_cast<milliseconds>(clock::now() - begin); }

/// The value of one setting; empty: it is withheld.
asio::awaitable<std::string> setting_of(session& server, std::string name) {
  words command{"CONFIG", "GET", std::move(name)};
  const auto reply = co_await server.ask(std::move(command));
  co_return reply.elements.size() == 2 ? reply.elements[1].text : std::string();
}

class examination {
 public:
  examination(const doctor_options& options, const detail::settings& settings, network& over)
      : options_(options), settings_(settings), over_(over) {}

  asio::awaitable<void> run() {
    std::vector<redis::endpoint> nodes;
    try {
      nodes = co_await find_primaries(over_, settings_);
    } catch (const error& failed) {
      report_failure("connection", failed);
    }
    for (const auto& node : nodes) co_await examine(node);
    if (settings_.kind == detail::deployment::sentinel)
      for (const auto& node : settings_.servers) co_await examine_sentinel(node);
    if (worst_ == verdict::fail && nodes.empty()) co_return;
    co_await try_permissions();
    co_await examine_locks();
  }
  verdict worst() const noexcept { return worst_; }

 private:
  void report(const finding& found) {
    worst_ = std::max(worst_, found.is);
    if (options_.access.json) {
      json::object line;
      line["verdict"] = to_string(found.is);
      line["check"] = found.check;
      line["server"] = server_;
      line["text"] = found.text;
      put_if(line, "fix", found.fix.empty() ? std::nullopt : std::optional(found.fix));
      print(line);
      return;
    }
    static constexpr colour colours[] = {colour::good, colour::doubtful, colour::bad};
    const auto word = std::string(to_string(found.is));
    std::string line = painted(colours[static_cast<int>(found.is)], word) + std::string(5 - word.size(), ' ');
    line.append(found.check).append(15 - std::min<std::size_t>(14, found.check.size()), ' ').append(found.text);
    if (!server_.empty()) line += "  [" + server_ + ']';
    if (!found.fix.empty()) line += "\n     fix: " + found.fix;
    print(line);
  }
  void report_all(const findings& found) {
    for (const auto& one : found) report(one);
  }
  void report_failure(std::string_view check, const error& failed) {
    const auto fix = failed.code() == errc::auth_failed      ? "set HOLDFAST_USER and HOLDFAST_PASSWORD"
                     : failed.code() == errc::no_permission  ? "holdfast acl"
                     : failed.code() == errc::tls_failed     ? "add ca_file=FILE to the URL"
                     : failed.code() == errc::server_refused ? "redis-cli INFO; free its memory or disk"
                                                             : "redis-cli PING from this machine; check the URL";
    report({verdict::fail, check, failed.what(), fix});
  }

  asio::awaitable<void> examine(redis::endpoint node) {
    server_ = node.to_string();
    try {
      const auto server = co_await session::open(over_, std::move(node), answer_limit(settings_));
      words command{"INFO"};
      const auto reply = co_await server->ask(std::move(command));
      const info_text info(reply.is_error() ? std::string_view() : std::string_view(reply.text));
      report_all(judge_server(info, settings_));
      report_all(judge_replicas(info, settings_));
      co_await examine_times(*server);
      co_await examine_cluster(*server);
      const auto buffers = co_await setting_of(*server, "client-output-buffer-limit");
      report(judge_buffers(buffers));
      co_await examine_messages(*server);
      co_await examine_permissions(*server);
      co_await examine_silence(*server);
    } catch (const error& failed) {
      report_failure("connection", failed);
    }
    server_.clear();
  }

  asio::awaitable<void> examine_times(session& server) {
    std::vector<std::chrono::microseconds> took;
    for (int i = 0; i < round_trips; ++i) {
      const auto begin = clock::now();
      words command{"PING"};
      co_await server.ask(std::move(command));
      took.push_back(since(begin));
    }
    std::sort(took.begin(), took.end());
    report(judge_round_trips(took.back(), took[took.size() / 2], settings_));

    words command{"TIME"};
    const auto reply = co_await server.ask(std::move(command));
    const auto ours = std::chrono::system_clock::now().time_since_epoch();
    const auto seconds = reply.elements.size() == 2 ? detail::parse_number(reply.elements[0].text) : std::nullopt;
    const auto micros = seconds ? detail::parse_number(reply.elements[1].text) : std::nullopt;
    if (!micros) {
      report({verdict::warn, "clock", "the server does not tell its time", "grant +time"});
      co_return;
    }
    const auto theirs = std::chrono::seconds(*seconds) + std::chrono::microseconds(*micros);
    report(judge_clock(std::chrono::duration_cast<milliseconds>(theirs - ours)));
  }

  asio::awaitable<void> examine_cluster(session& server) {
    if (settings_.kind != detail::deployment::cluster) co_return;
    words command{"CLUSTER", "INFO"};
    const auto reply = co_await server.ask(std::move(command));
    if (!reply.is_error()) report(judge_cluster(reply.text));
    const auto timeout = co_await setting_of(server, "cluster-node-timeout");
    if (const auto value = detail::parse_number(timeout)) report(judge_node_timeout(milliseconds(*value), settings_));
  }

  asio::awaitable<void> examine_sentinel(redis::endpoint node) {
    server_ = node.to_string();
    try {
      const auto sentinel = co_await session::open(over_, std::move(node), answer_limit(settings_));
      words command{"SENTINEL", "MASTER", settings_.primary_name};
      const auto reply = co_await sentinel->ask(std::move(command));
      if (reply.is_error())
        report({verdict::fail, "sentinel", sentinel->words_of(reply), "check the name at the end of the URL"});
      else
        report_all(judge_sentinels(reply, settings_));
    } catch (const error& failed) {
      report({verdict::warn, "sentinel", failed.what(), "start it"});
    }
    server_.clear();
  }

  /// A message to ourselves, as a waiter would get it.
  asio::awaitable<void> examine_messages(session& server) {
    const auto listening = co_await session::open(over_, server.node(), answer_limit(settings_));
    const auto channel = "redisson_lock__channel:{" + settings_.values.key_prefix + "__probe:doctor}";
    words command{"SUBSCRIBE", channel};
    const auto subscribed = co_await listening->ask(std::move(command));
    if (subscribed.is_error()) {
      report({verdict::warn, "messages", listening->words_of(subscribed) + ": waiters poll", "holdfast acl"});
      co_return;
    }
    words message{"PUBLISH", channel, "0"};
    const auto published = co_await server.ask(std::move(message));
    std::optional<redis::reply> heard;
    if (!published.is_error()) heard = co_await listening->next(answer_limit(settings_));
    if (heard)
      report({verdict::ok, "messages", "arrive"});
    else
      report(
          {verdict::warn, "messages",
           (published.is_error() ? server.words_of(published) : std::string("no message arrives")) + ": waiters poll",
           "holdfast acl"});
  }

  /// A proxy or a firewall may forget a connection that is idle. The last examination of a server.
  asio::awaitable<void> examine_silence(session& server) {
    const auto timeout = co_await setting_of(server, "timeout");
    if (options_.idle == milliseconds(0)) {
      report({verdict::ok, "idle", "not tried: --idle 60 waits for a minute, then asks again"});
      co_return;
    }
    asio::steady_timer alarm(co_await asio::this_coro::executor, options_.idle);
    co_await alarm.async_wait(asio::use_awaitable);
    const auto text = duration_text(options_.idle.count()) + " of silence";
    try {
      words command{"PING"};
      co_await server.ask(std::move(command));
      report({verdict::ok, "idle", "a connection survives " + text});
    } catch (const error& failed) {
      report({verdict::warn, "idle",
              text + ": " + failed.what() + (timeout.empty() ? "" : "; the server's timeout is " + timeout + " s"),
              "set health_check_interval below it"});
    }
  }

  asio::awaitable<void> examine_permissions(session& server) {
    auto user = options_.checked_user;
    if (user.empty()) {
      words command{"ACL", "WHOAMI"};
      const auto reply = co_await server.ask(std::move(command));
      user = reply.is_error() ? settings_.servers.front().login.user : reply.text;
    }
    auto demand = demand_of(settings_);
    demand.version = std::max(600, version_number(server.facts().version));
    std::string missing;
    for (const auto& wanted : permissions_of(demand)) {
      words command{"ACL", "DRYRUN", user};
      command.insert(command.end(), wanted.example.begin(), wanted.example.end());
      const auto reply = co_await server.ask(std::move(command));
      if (reply.is_error() && reply.text.ends_with("not found")) {
        report({verdict::fail, "permissions", server.words_of(reply), "holdfast acl --rule-for NAME"});
        co_return;
      }
      if (reply.is_error()) {
        report({verdict::ok, "permissions", "those in scripts cannot be asked for: " + server.words_of(reply),
                "run doctor as an administrator, with --check-user NAME"});
        co_return;
      }
      if (reply.text != "OK") missing += " +" + wanted.rule;
    }
    if (missing.empty())
      report({verdict::ok, "permissions", shown(user) + " has all of a mutex"});
    else
      report({verdict::fail, "permissions", shown(user) + " lacks" + missing,
              "redis-cli ACL SETUSER " + shown(user) + missing});
  }

  /// By the locks' own client: it takes, renews, frees and publishes a lock of its own.
  asio::awaitable<void> try_permissions() {
    try {
      client redis(co_await asio::this_coro::executor, config_of(options_.access));
      co_await redis.connect();
      report({verdict::ok, "a lock", "was taken, renewed and freed"});
      co_await redis.shutdown(milliseconds(500));
    } catch (const error& failed) {
      report_failure("a lock", failed);
    }
  }

  asio::awaitable<void> examine_locks() {
    try {
      const auto reader = co_await lock_reader::open(over_, settings_);
      std::size_t wrong = 0;
      const lock_reader::finder look = [&](const lock_facts& lock) {
        for (const auto& found : judge_lock(lock, settings_))
          if (++wrong <= most_complaints) report(found);
      };
      co_await reader->scan("*", look);
      if (wrong == 0) report({verdict::ok, "locks", "each has a TTL, and a name for any topology"});
      if (wrong > most_complaints)
        report({verdict::warn, "locks", std::to_string(wrong - most_complaints) + " more", "holdfast list"});
    } catch (const error& failed) {
      report({verdict::ok, "locks", std::string("cannot be listed: ") + failed.what(), "holdfast acl --operator"});
    }
  }

  const doctor_options& options_;
  const detail::settings& settings_;
  network& over_;
  std::string server_;  // that is examined; empty: all
  verdict worst_ = verdict::ok;
};

}  // namespace

asio::awaitable<int> doctor(doctor_options options) {
  const auto settings = detail::resolve(config_of(options.access));
  network over(co_await asio::this_coro::executor);
  examination examined(options, settings, over);
  co_await examined.run();
  co_return examined.worst() == verdict::ok ? done : examined.worst() == verdict::warn ? warned : failed;
}

}  // namespace holdfast::cli
