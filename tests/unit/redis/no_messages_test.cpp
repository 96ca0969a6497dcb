// SPDX-License-Identifier: BSL-1.0
// A server, or a proxy, without SUBSCRIBE: how often it is asked, and who is told, on the test's clock.
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "topology/standalone/standalone.hpp"
#include "unit/redis/scripted_network.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

struct fake_server final : scripted_host {
  redis::reply answer(connection& from, const words& argv) override {
    if (argv[0] == "CLIENT") return replies::integer(7);
    if (argv[0] == "ROLE") return strings({"master"});
    if (argv[0] == "INFO") {
      ++introductions;
      return replies::string("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:1\r\n");
    }
    if (argv[0] == "PING") return replies::status("PONG");
    ++asked;
    const bool refused = !refusal.empty() && (only.empty() || only == argv[1]);
    if (refused && closes) from.end();
    if (refused) return replies::error(refusal);
    const auto* const word = argv[0] == "SUBSCRIBE" ? "subscribe" : "unsubscribe";
    return replies::array({replies::string(word), replies::string(argv[1]), replies::integer(1)});
  }

  std::string refusal, only;  // of this channel; empty: of each
  bool closes = false;
  int introductions = 0, asked = 0;
};

struct waiter final : redis::subscriber {
  void on_subscribed() override { ++subscribed; }
  void on_message(std::string_view) override {}
  void on_subscribe_failed(error_code error, const std::string&) override { failed = error; }
  void on_no_messages(error_code error, const std::string& detail) override {
    unavailable = error;
    words = detail;
  }

  int subscribed = 0;
  error_code failed, unavailable;
  std::string words;
};

struct fixture : scripted_environment {
  fixture() {
    node.at = {"A", 6379, {}};
    network.hosts = {{node.at, &server}};
  }
  ~fixture() {
    if (servers) servers->close();
    poll();
  }

  redis::subscription subscribe(std::string_view channel, waiter& who) {
    if (!servers)
      servers = std::make_unique<detail::standalone>(
          redis::io_services{strand, clock, alarms, dice, network}, node, 500ms,
          [this](const event& e) { events.push_back(std::string(to_string(e.kind)) + ": " + std::string(e.detail)); });
    return servers->subscribe(channel, who);
  }
  void pass(detail::lease_clock::duration by) {
    alarms.advance(by);
    poll();
  }

  seeded_random dice{1};  // pauses up to reconnect_cap, 2.5 s on average
  fake_server server;
  redis::endpoint node;
  words events;
  waiter a, b;
  std::unique_ptr<detail::standalone> servers;
};

constexpr auto unknown = "ERR unknown command 'SUBSCRIBE', with args beginning with: 'c'";

}  // namespace

TEST_CASE_METHOD(fixture, "a server without SUBSCRIBE is asked less and less often, and the observer is told once") {
  server.refusal = GENERATE(as<std::string>(), unknown, "ERR command not supported by this proxy", "FORBIDDEN");
  const auto s = subscribe("c", a);
  pass(1ms);
  CHECK(a.unavailable == errc::protocol_error);
  CHECK(a.words == "redis://A:6379: SUBSCRIBE: " + server.refusal);
  CHECK_FALSE(a.failed);
  CHECK(events == words{"notifications_degraded: " + a.words});
  pass(1min);
  CHECK(server.introductions == 1);
  CHECK((server.asked >= 15 && server.asked <= 45));
  const auto before = server.asked;
  pass(1min);
  CHECK((server.asked >= before + 15 && server.asked <= before + 35));
  CHECK(events.size() == 1);
  // It has it after all.
  server.refusal.clear();
  pass(node.reconnect_cap);
  CHECK(a.subscribed == 1);
  CHECK(server.introductions == 1);
  const auto then = server.asked;
  pass(1min);
  CHECK(server.asked == then);
}

TEST_CASE_METHOD(fixture, "a server that ends the connection upon SUBSCRIBE is connected to less and less often") {
  server.refusal = "ERR unknown command";
  server.closes = true;
  SECTION("without a word") { server.refusal = "bye"; }
  const auto s = subscribe("c", a);
  pass(10s);
  const auto in_ten_seconds = server.introductions;
  CHECK(in_ten_seconds <= 20);
  pass(1min);
  CHECK((server.introductions >= in_ten_seconds + 15 && server.introductions <= in_ten_seconds + 35));
  CHECK_FALSE(a.failed);
  CHECK(a.unavailable);
  REQUIRE(events.size() == 1);
  CHECK(events[0].starts_with("notifications_degraded: redis://A:6379: "));
  CHECK(events[0].find("SUBSCRIBE") != std::string::npos);
  server.refusal.clear();
  pass(node.reconnect_cap);
  CHECK(a.subscribed == 1);
}

TEST_CASE_METHOD(fixture, "a channel that the server refuses in words of its own leaves the others subscribed") {
  server.refusal = "ERR that channel is not for you";
  server.only = "c";
  const auto one = subscribe("d", b), two = subscribe("c", a);
  pass(1min);
  CHECK(b.subscribed == 1);
  CHECK(a.unavailable);
  CHECK(server.introductions == 1);
}

TEST_CASE_METHOD(fixture, "who comes later asks at once, and is told as well") {
  server.refusal = unknown;
  const auto one = subscribe("c", a);
  pass(1min);
  const auto asked = server.asked;
  const auto two = subscribe("d", b), three = subscribe("c", b);
  pass(1ms);
  CHECK(server.asked == asked + 2);
  CHECK(b.unavailable);
  CHECK(events.size() == 1);
}

TEST_CASE_METHOD(fixture, "a server that is still loading is asked again, and nobody is told") {
  server.refusal = "LOADING Redis is loading the dataset in memory";
  const auto s = subscribe("c", a);
  pass(10s);
  CHECK((events.empty() && !a.unavailable && !a.failed));
  server.refusal.clear();
  pass(node.reconnect_cap);
  CHECK(a.subscribed == 1);
}

TEST_CASE_METHOD(fixture, "a channel that an ACL withholds fails the subscription, as ever") {
  server.refusal = "NOPERM this user has no permissions to access one of the channels used as arguments";
  const auto s = subscribe("c", a);
  pass(1min);
  CHECK(a.failed == errc::no_permission);
  CHECK(server.asked == 1);
}

TEST_CASE_METHOD(fixture, "a connection that is lost now and then is made again at once") {
  const auto s = subscribe("c", a);
  for (int n = 1; n <= 5; ++n) {
    pass(2s);
    REQUIRE(a.subscribed == n);
    for (auto* const c : std::set(server.connections)) c->end();
    pass(1ms);
  }
  CHECK(events.empty());
  CHECK_FALSE(a.unavailable);
}
