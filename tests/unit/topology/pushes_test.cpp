// SPDX-License-Identifier: BSL-1.0
// Changes that the servers of each topology push, on the test's clock.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/make_topology.hpp"
#include "support/catch.hpp"
#include "support/plain_command.hpp"
#include "unit/redis/pushing_server.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;
using change = std::pair<std::string, detail::node_id>;

// Of the lower half of the slots, and of the upper.
const std::string low = "bar", high = "foo";

redis::address at(const std::string& host) { return {host, 6379, {}}; }

/// One that knows who has the halves of the slots.
struct node final : pushing_server {
  node(std::string name, const words& o) : pushing_server(std::move(name)), owners(o) {}

  redis::reply cluster_answer(const std::string& name) override {
    if (name == "CONFIG") return replies::array({});
    const auto half = [](int first, int last, const std::string& owner) {
      return replies::array({replies::integer(first), replies::integer(last),
                             replies::array({replies::string(owner), replies::integer(6379)})});
    };
    return replies::array({half(0, 8191, owners[0]), half(8192, 16383, owners[1])});
  }

  const words& owners;
};

struct fake_sentinel final : scripted_host {
  redis::reply answer(connection&, const words& argv) override {
    if (argv[0] == "CLIENT") return replies::integer(7);
    if (argv[0] == "PING") return replies::status("PONG");
    if (argv[0] == "ROLE") return strings({"sentinel"});
    if (argv[0] == "INFO")
      return replies::string("# Server\r\nredis_version:7.0.15\r\nredis_mode:sentinel\r\nrun_id:s\r\n");
    if (argv[0] != "SENTINEL")
      return replies::array({replies::string(argv[0] == "SUBSCRIBE" ? "subscribe" : "unsubscribe"),
                             replies::string(argv[1]), replies::integer(1)});
    if (argv[1] == "MYID") return replies::string("s");
    if (argv[1] == "SENTINELS") return replies::array({});
    if (argv[1] == "MASTER")
      return strings({"name", "orders", "ip", primary, "port", "6379", "flags", "master", "config-epoch",
                      std::to_string(epoch), "down-after-milliseconds", "1000"});
    return strings({primary, "6379"});
  }

  std::string primary = "A";
  int epoch = 1;
};

struct fixture : scripted_environment {
  ~fixture() {
    if (servers) servers->close();
    poll();
  }

  pushing_server& add(const std::string& host, redis::server_mode mode = redis::server_mode::standalone) {
    auto& made = *all.emplace_back(std::make_unique<node>(host, owners));
    if (mode == redis::server_mode::cluster) made.mode = "cluster";
    network.hosts[at(host)] = &made;
    if (deployed.kind == detail::deployment::sentinel) return made;
    auto& server = deployed.servers.emplace_back();
    server.at = at(host);
    server.expected = mode;
    return made;
  }
  void make() {
    servers = detail::make_topology(services(), deployed, config{}, [this](const event& e) {
      if (e.kind == event_kind::push_degraded && closes_if_degraded) servers->close();
    });
    servers->on_key_changed([this](std::string_view key, detail::node_id node) { changes.emplace_back(key, node); });
  }
  void start(const std::string& key) {
    servers->start_pushing(key);
    pass(1ms);
  }
  /// How many of them will push its change.
  int read(const std::string& key) {
    int tracked = 0;
    for (std::size_t n = 0; n < servers->primaries(); ++n)
      servers->primary(n).execute(key,
                                  plain_command(redis::make_command({"GET", key}), {.timeout = 500ms, .track = true},
                                                [&tracked](const auto& o) { tracked += o.tracked; }));
    pass(1ms);
    return tracked;
  }
  void pass(detail::lease_clock::duration by) {
    alarms.advance(by);
    poll();
  }
  std::vector<change> take_changes() { return std::exchange(changes, {}); }

  words owners{"A", "B"};
  std::vector<std::unique_ptr<node>> all;
  detail::server_list deployed;
  std::vector<change> changes;
  bool closes_if_degraded = false;
  std::unique_ptr<detail::topology> servers;
};

}  // namespace

TEST_CASE_METHOD(fixture, "the node of a cluster that owns a key pushes its change, and no other node is asked") {
  deployed.kind = detail::deployment::cluster;
  deployed.discovered.expected = redis::server_mode::cluster;
  auto& a = add("A", redis::server_mode::cluster);
  auto& b = add("B", redis::server_mode::cluster);
  make();
  start(low);  // no map yet: asked again with the next command
  CHECK(read(low) == 0);
  start(low);
  CHECK(servers->pushes(low));
  CHECK_FALSE(servers->pushes(high));
  CHECK(b.made <= 1);
  CHECK(take_changes() == std::vector{change{"", servers->node_of(low)}});
  CHECK(read(low) == 1);
  a.change(low);
  pass(1ms);
  CHECK(take_changes() == std::vector{change{low, servers->node_of(low)}});
  start(high);
  CHECK(servers->pushes(high));
  CHECK(servers->node_of(low) != servers->node_of(high));
  CHECK(take_changes() == std::vector{change{"", servers->node_of(high)}});
}

TEST_CASE_METHOD(fixture, "a slot that moves is tracked at its new node once that is asked") {
  deployed.kind = detail::deployment::cluster;
  deployed.discovered.expected = redis::server_mode::cluster;
  add("A", redis::server_mode::cluster);
  auto& b = add("B", redis::server_mode::cluster);
  make();
  read(low);
  start(low);
  REQUIRE(servers->pushes(low));
  int moved = 0;
  servers->on_keys_moved([&](std::optional<detail::key_group>) { ++moved; });
  owners = {"B", "B"};
  pass(2min);
  read(low);
  pass(1s);
  REQUIRE(moved > 0);
  CHECK_FALSE(servers->pushes(low));
  changes.clear();
  start(low);
  CHECK(servers->pushes(low));
  CHECK(take_changes() == std::vector{change{"", servers->node_of(low)}});
  CHECK(read(low) == 1);
  b.change(low);
  pass(1ms);
  CHECK(changes == std::vector{change{low, servers->node_of(low)}});
}

TEST_CASE_METHOD(fixture, "an observer may close the client of a cluster when a node pushes nothing") {
  deployed.kind = detail::deployment::cluster;
  deployed.discovered.expected = redis::server_mode::cluster;
  auto& a = add("A", redis::server_mode::cluster);
  add("B", redis::server_mode::cluster);
  SECTION("CLIENT TRACKING") { a.refuses_tracking = "NOPERM"; }
  SECTION("the channel") { a.refuses_channel = "NOPERM"; }
  SECTION("the version") { a.version = "7.0.4"; }
  closes_if_degraded = true;
  make();
  read(low);
  start(low);
  pass(1s);
  CHECK(a.connections.empty());
  CHECK(changes.empty());
}

TEST_CASE_METHOD(fixture, "a new primary behind sentinels is asked to push, and what was tracked before is lost") {
  deployed.kind = detail::deployment::sentinel;
  deployed.primary_name = "orders";
  add("A");
  auto& b = add("B");
  fake_sentinel sentinel;
  network.hosts[at("s")] = &sentinel;
  deployed.servers.emplace_back().at = at("s");
  deployed.servers.back().expected = redis::server_mode::sentinel;
  make();
  start("k");
  pass(1s);
  CHECK(servers->pushes("k"));
  CHECK(read("k") == 1);
  changes.clear();
  sentinel.primary = "B";
  sentinel.epoch = 2;
  pass(3s);
  CHECK(servers->where("k") == "redis://B:6379");
  CHECK(servers->pushes("k"));
  CHECK(b.redirects[b.commands()] == b.ids[b.pubsub()]);
  CHECK_FALSE(changes.empty());
  for (const auto& each : changes) CHECK(each == change{"", 0});
  servers->stop_pushing();
  pass(1s);
  CHECK(io.poll() == 0);
  servers->close();
}

TEST_CASE_METHOD(fixture, "each of several primaries pushes for itself, and a majority counts as all") {
  deployed.kind = detail::deployment::primaries;
  auto& a = add("A");
  auto& b = add("B");
  add("C").refuses_tracking = "NOPERM";
  make();
  start("k");
  CHECK(servers->pushes("k"));
  CHECK(take_changes() == std::vector{change{"", 0}, change{"", 1}});
  CHECK(read("k") == 2);
  b.change("k");
  pass(1ms);
  CHECK(take_changes() == std::vector{change{"k", 1}});
  a.run = "";  // withheld: no pair can be made any more
  a.pubsub()->end();
  pass(1s);
  CHECK_FALSE(servers->pushes("k"));
  CHECK(take_changes().front() == change{"", 0});
}
