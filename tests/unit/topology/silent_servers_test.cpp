// SPDX-License-Identifier: BSL-1.0
// Sentinels, clusters and several primaries behind a load balancer that forgets idle connections, on the test's clock.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/make_topology.hpp"
#include "support/catch.hpp"
#include "support/plain_command.hpp"
#include "unit/redis/scripted_network.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

redis::address at(const std::string& host) { return {host, 6379, {}}; }

/// A primary, by itself or as the only node of a cluster; or a sentinel that watches it.
struct fake_server final : scripted_host {
  fake_server(std::string h, std::string m) : host(std::move(h)), mode(std::move(m)) {}

  redis::reply answer(connection&, const words& argv) override {
    if (argv[0] == "CLIENT") return replies::integer(7);
    if (argv[0] == "PING") return replies::status("PONG");
    if (argv[0] == "ROLE") return strings({mode == "sentinel" ? "sentinel" : "master"});
    if (argv[0] == "INFO")
      return replies::string("# Server\r\nredis_version:7.0.15\r\nredis_mode:" + mode + "\r\nrun_id:" + host + "\r\n");
    if (argv[0] == "SUBSCRIBE" || argv[0] == "UNSUBSCRIBE")
      return replies::array({replies::string(argv[0] == "SUBSCRIBE" ? "subscribe" : "unsubscribe"),
                             replies::string(argv[1]), replies::integer(1)});
    if (argv[0] == "CLUSTER")
      return replies::array({replies::array({replies::integer(0), replies::integer(16383),
                                             replies::array({replies::string(host), replies::integer(6379)})})});
    if (argv[0] == "CONFIG") return replies::array({});
    if (argv[0] == "SENTINEL") return sentinel(argv[1]);
    ++commands;
    return replies::ok();
  }
  redis::reply sentinel(const std::string& what) const {
    if (what == "MYID") return replies::string(host);
    if (what == "SENTINELS") return replies::array({});
    if (what == "MASTER")
      return strings({"name", "orders", "ip", "A", "port", "6379", "flags", "master", "config-epoch", "1",
                      "down-after-milliseconds", "1000"});
    return strings({"A", "6379"});
  }

  const std::string host, mode;
  int commands = 0;
};

struct fixture : scripted_environment {
  ~fixture() {
    if (servers) servers->close();
    poll();
  }

  void add(const std::string& host, redis::server_mode mode) {
    const char* const names[] = {"standalone", "sentinel", "cluster"};
    all.push_back(std::make_unique<fake_server>(host, names[static_cast<int>(mode)]));
    network.hosts[at(host)] = all.back().get();
    if (host == "A" && which.kind == detail::deployment::sentinel) return;
    auto& server = which.servers.emplace_back();
    server.at = at(host);
    server.expected = mode;
    server.silence_limit = 500ms;
  }
  void make() {
    which.discovered.silence_limit = 500ms;
    servers = detail::make_topology(services(), which, config{}, [](const event&) {});
  }
  /// Whether a command with this time is answered by a server, by each of several primaries.
  bool answered(detail::lease_clock::duration timeout = 500ms) {
    std::size_t answers = 0;
    for (std::size_t n = 0; n < servers->primaries(); ++n)
      servers->primary(n).execute("key", plain_command(redis::make_command({"SET", "key", "v"}), {.timeout = timeout},
                                                       [&answers](const auto& o) { answers += !o.error; }));
    alarms.advance(timeout);
    poll();
    return answers == servers->primaries();
  }
  void forget() {
    for (const auto& one : all) {
      one->resets = resets;
      one->forget_connections();
    }
  }

  bool resets = GENERATE(false, true);
  std::vector<std::unique_ptr<fake_server>> all;
  detail::server_list which;
  std::unique_ptr<detail::topology> servers;
};

}  // namespace

TEST_CASE_METHOD(fixture, "whatever the servers are, a command after minutes of silence is answered in its own time") {
  SECTION("sentinels") {
    which.kind = detail::deployment::sentinel;
    which.primary_name = "orders";
    add("A", redis::server_mode::standalone);
    for (const auto* const s : {"s1", "s2", "s3"}) add(s, redis::server_mode::sentinel);
  }
  SECTION("a cluster") {
    which.kind = detail::deployment::cluster;
    which.discovered.expected = redis::server_mode::cluster;
    add("A", redis::server_mode::cluster);
  }
  SECTION("several primaries") {
    which.kind = detail::deployment::primaries;
    for (const auto* const host : {"A", "B", "C"}) add(host, redis::server_mode::standalone);
  }
  make();
  REQUIRE(answered());
  for (int times = 0; times < 3; ++times) {
    alarms.advance(10min);
    poll();
    forget();
    alarms.advance(1s);
    CHECK(answered());
  }
  int commands = 0;
  for (const auto& one : all) commands += one->commands;
  CHECK(commands == 4 * static_cast<int>(servers->primaries()));
}
