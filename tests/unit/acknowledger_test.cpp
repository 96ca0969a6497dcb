// SPDX-License-Identifier: BSL-1.0
// A server that the test plays: what is said to it before WAIT, and which of its answers count.
#include "topology/acknowledger.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/manual_clock.hpp"
#include "support/plain_command.hpp"
#include "support/seeded_random.hpp"
#include "unit/scripted_network.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

struct fake_primary final : scripted_host {
  redis::reply answer(connection& from, const std::vector<std::string>& argv) override {
    if (argv[0] == "CLIENT") return replies::integer(7);
    if (argv[0] == "ROLE") return strings({"master"});
    if (argv[0] == "INFO") return ++introductions, info;
    if (argv[0] == "SET") return replies::status("OK");
    said.push_back(argv);
    if (argv[0] == "WAIT") return replies::integer(had);
    if (std::exchange(ends_after_mark, false)) {
      from.send(mark);
      from.end();
    }
    return mark;
  }
  void is(const std::string& version, const std::string& mode = "standalone") {
    info = replies::string("# Server\r\nredis_version:" + version + "\r\nredis_mode:" + mode + "\r\nrun_id:1\r\n");
  }

  redis::reply info = replies::error("NOPERM this user has no permissions to run the 'info' command");
  redis::reply mark = replies::integer(0);
  int had = 1, introductions = 0;
  bool ends_after_mark = false;
  std::vector<words> said;  // of marks and WAIT
};

struct answer {
  error_code error;
  unsigned had;

  friend bool operator==(const answer&, const answer&) = default;
};

struct acknowledger_fixture {
  acknowledger_fixture() {
    alarms.on_step = [this] { poll(); };
    network.hosts = {{node.at, &server}};
  }
  ~acknowledger_fixture() {
    if (grants) grants->close();
    if (asks) asks->close();
    poll();
  }

  void poll() {
    io.restart();
    io.poll();
  }
  redis::services given() { return {strand, clock, alarms, random, network}; }
  /// What a replica should have; the number of the server that has done it.
  std::uint64_t grant() {
    std::uint64_t by = 0;
    grants = std::make_shared<redis::connection>(given(), node, [](const event&) {});
    grants->execute(plain_command(redis::make_command({"SET", "m", "1"}), {.timeout = 500ms},
                                  [&by](const redis::outcome& o) { by = o.server; }));
    alarms.advance(1ms);
    return by;
  }
  void ask(const std::string& channel = "marks") {
    const auto by = grant();
    asks.emplace(given(), node);
    asks->ask({1, by, clock.now() + 500ms, channel}, [this](error_code error, unsigned had) {
      heard.push_back({error, had});
    });
    alarms.advance(1ms);
  }
  bool heard_only(const error_code& error, unsigned had = 0) const { return heard == std::vector{answer{error, had}}; }

  boost::asio::io_context io;
  redis::strand strand{io.get_executor()};
  manual_clock clock;
  manual_timers alarms{clock};
  fixed_random random;
  scripted_network network;
  fake_primary server;
  redis::endpoint node = [] {
    redis::endpoint n;
    n.at.host = "A";
    return n;
  }();
  std::shared_ptr<redis::connection> grants;
  std::optional<detail::acknowledger> asks;
  std::vector<answer> heard;
};

}  // namespace

TEST_CASE_METHOD(acknowledger_fixture, "before Redis 8 a PING has a place that replicas confirm") {
  server.is("7.0.15");
  ask();
  CHECK(server.said == std::vector<words>{{"PING"}, {"WAIT", "1", "400"}});
  CHECK(heard_only({}, 1));
}

TEST_CASE_METHOD(acknowledger_fixture, "since Redis 8, or from a server without a version, only a message has one") {
  SECTION("8") { server.is("8.0.2"); }
  SECTION("10") { server.is("10.0.0"); }
  SECTION("a name") { server.is("unstable"); }
  ask();
  CHECK(server.said == std::vector<words>{{"PUBLISH", "marks", ""}, {"WAIT", "1", "400"}});
  CHECK(heard_only({}, 1));
}

TEST_CASE_METHOD(acknowledger_fixture, "a WAIT after a refused mark counts nothing") {
  server.is("8.0.2");
  server.mark = replies::error("NOPERM No permissions to access a channel");
  ask();
  CHECK(server.said.size() == 2);
  CHECK(heard_only(errc::no_permission));
}

TEST_CASE_METHOD(acknowledger_fixture, "a WAIT on another connection than its mark counts nothing") {
  server.is("8.0.2");
  server.takes_at_once = 1'000;
  server.ends_after_mark = true;
  ask(std::string(256 * 1024, 'c'));  // fills one write
  alarms.advance(100ms);
  REQUIRE(server.said.size() == 2);
  CHECK(server.said[0][0] == "PUBLISH");
  CHECK(server.said[1][0] == "WAIT");
  CHECK(server.introductions == 3);  // of the grant, of the mark, and of WAIT
  CHECK(heard_only(errc::unreachable));
}

TEST_CASE_METHOD(acknowledger_fixture, "in a cluster of Redis 8 nothing has a place") {
  node.expected = redis::server_mode::cluster;
  SECTION("that says what it is") { server.is("8.0.2", "cluster"); }
  SECTION("whose INFO is refused") {}
  ask();
  CHECK(heard_only(make_error_code(boost::system::errc::operation_not_supported)));
}

TEST_CASE_METHOD(acknowledger_fixture, "in a cluster before Redis 8 a PING has a place") {
  node.expected = redis::server_mode::cluster;
  server.is("7.0.15", "cluster");
  ask();
  CHECK(heard_only({}, 1));
}
