// SPDX-License-Identifier: BSL-1.0
#include "support/proxy.hpp"

#include <chrono>
#include <optional>
#include <string>

#include "support/catch.hpp"
#include "support/least_rights.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"
#include "support/skip.hpp"

using namespace holdfast::test;
using namespace std::chrono_literals;
using action = proxy::rule::action;
using direction = proxy::direction;
using std::chrono::steady_clock;

namespace {

struct fixture {
  fixture() {
    least_rights::skip_if_in_force("the proxy carries any command here");
    if (!real_redis::available()) skip("no redis-server found");
    server.emplace();
    direct.emplace(*server);
    between.emplace(*server);
  }
  raw_client client() const { return raw_client(between->socket_path()); }

  std::optional<real_redis> server;
  std::optional<raw_client> direct;
  std::optional<proxy> between;
};

}  // namespace

TEST_CASE_METHOD(fixture, "a proxy without faults passes everything on and counts it") {
  auto a = client(), b = client();
  const std::string large(3'000'000, 'x');
  CHECK(a("SET", "key", large) == "OK");
  CHECK(b("GET", "key") == large);
  CHECK(b("MGET", "key", "none").array().at(1).is_nil());
  CHECK(between->wait_until([&](const auto& now) { return now.bytes_to_client > 2 * large.size(); }));
  const auto n = between->count();
  CHECK(n.connections == 2);
  CHECK(n.open == 2);
  CHECK(n.commands.at("MGET") == 1);
  CHECK(n.replies == 3);
  CHECK(n.bytes_to_server > large.size());
  a.close();
  CHECK(between->wait_until([](const auto& now) { return now.open == 1; }));
}

TEST_CASE_METHOD(fixture, "a cut ends connections and a refusal prevents new ones until it is healed") {
  auto a = client();
  CHECK(a("PING") == "PONG");
  between->refuse();
  CHECK_THROWS(client());
  CHECK(a("PING") == "PONG");
  between->cut();
  CHECK(a.closed_within(10s));
  CHECK(between->count().open == 0);
  between->heal();
  CHECK(client()("PING") == "PONG");
}

TEST_CASE_METHOD(fixture, "held bytes arrive when they are released") {
  for (const auto where : {direction::to_server, direction::to_client}) {
    auto a = client();
    between->hold(where);
    a.send({"INCR", "n"});
    CHECK_FALSE(a.receive(10ms));
    const auto executed = [&] { return (*direct)("EXISTS", "n").integer() == 1; };
    // A busy machine may take longer than the wait above to execute what goes through.
    for (const auto end = steady_clock::now() + 10s; where == direction::to_client && !executed();)
      REQUIRE(steady_clock::now() < end);
    CHECK(executed() == (where == direction::to_client));
    between->release();
    CHECK(a.receive(10s).value() == 1);
    (*direct)("DEL", "n");
  }
}

TEST_CASE_METHOD(fixture, "swallowed bytes are gone and their connection ends when it is healed") {
  auto a = client(), untouched = client();
  CHECK(a("PING") == "PONG");
  CHECK(untouched("PING") == "PONG");
  between->swallow(direction::to_client);
  a.send({"INCR", "n"});
  CHECK_FALSE(a.receive(10ms));
  CHECK(between->wait_for_commands("INCR", 1));
  between->heal();
  CHECK(a.closed_within(10s));
  CHECK(untouched("GET", "n") == "1");
}

TEST_CASE_METHOD(fixture, "the reply to one command is lost and the command has run") {
  auto a = client();
  between->at_reply({.what = action::cut_before, .n = 2, .command = "incr"});
  CHECK(a("INCR", "n") == 1);
  CHECK(a("PING") == "PONG");
  a.send({"INCR", "n"});
  CHECK(a.closed_within(10s));
  CHECK(between->wait_for_fired());
  CHECK((*direct)("GET", "n") == "2");
  auto b = client();
  CHECK(b("INCR", "n") == 3);
}

TEST_CASE_METHOD(fixture, "a connection ends after a reply and before a command") {
  auto a = client();
  between->at_reply({.what = action::cut_after});
  CHECK(a("INCR", "n") == 1);
  CHECK(a.closed_within(10s));
  auto b = client();
  between->at_command({.what = action::cut_before, .command = "INCR"});
  b.send({"INCR", "n"});
  CHECK(b.closed_within(10s));
  CHECK((*direct)("GET", "n") == "1");
}

TEST_CASE_METHOD(fixture, "replies are counted over all connections or on one") {
  auto a = client(), b = client();
  CHECK(a("PING") == "PONG");
  CHECK(b("PING") == "PONG");
  between->at_reply({.what = action::drop_rest, .n = 3});
  CHECK(a("PING") == "PONG");
  CHECK(b("PING") == "PONG");
  a.send({"PING"});
  CHECK_FALSE(a.receive(10ms));
  CHECK(b("PING") == "PONG");
  between->heal();
  CHECK(a.closed_within(10s));

  between->at_reply({.what = action::cut_before, .n = 2, .connection = 1});
  auto c = client();
  CHECK(c("PING") == "PONG");
  CHECK(c("PING") == "PONG");
  CHECK(b("PING") == "PONG");
  b.send({"PING"});
  CHECK(b.closed_within(10s));
}

TEST_CASE_METHOD(fixture, "messages can be dropped and acknowledgements held") {
  auto a = client();
  between->at_reply({.what = action::drop, .n = 2, .command = "message"});
  a.subscribe("c");
  for (const char* payload : {"1", "2", "3"}) (*direct)("PUBLISH", "c", payload);
  CHECK(a.next_message(10s)->payload == "1");
  CHECK(a.next_message(10s)->payload == "3");
  between->heal();

  auto b = client();
  b.send({"CLIENT", "ID"});
  between->at_reply({.what = action::hold_rest, .command = "subscribe"});
  b.send({"SUBSCRIBE", "c"});
  CHECK(b.receive(10s)->type == value::kind::integer);
  CHECK(between->wait_for_fired(2));
  CHECK_FALSE(b.receive(10ms));
  between->release();
  CHECK(b.receive(10s));
}

TEST_CASE_METHOD(fixture, "delay and throttle take their time and bytes come one by one") {
  auto a = client();
  between->delay(direction::to_client, 20ms);
  auto start = steady_clock::now();
  CHECK(a("PING") == "PONG");
  CHECK(steady_clock::now() - start >= 20ms);
  between->heal();

  between->throttle(direction::to_server, 10'000);
  start = steady_clock::now();
  CHECK(a("SET", "k", std::string(200, 'x')) == "OK");
  CHECK(steady_clock::now() - start >= 20ms);
  between->heal();

  between->split(direction::to_client, 1);
  between->split(direction::to_server, 2);
  const auto before = between->count();
  CHECK(a("GET", "k") == std::string(200, 'x'));
  CHECK(between->wait_until([&](const auto& now) {
    return now.bytes_to_server - before.bytes_to_server == 20 && now.pieces_to_server - before.pieces_to_server == 10 &&
           now.bytes_to_client - before.bytes_to_client == 208 && now.pieces_to_client - before.pieces_to_client == 208;
  }));
}

TEST_CASE_METHOD(fixture, "a server that is down ends new connections at once") {
  server->kill();
  auto a = client();
  CHECK(a.closed_within(10s));
  server->restart();
  CHECK(client()("PING") == "PONG");
}

TEST_CASE_METHOD(fixture, "a proxy on TCP keeps its port") {
  proxy tcp(*server, {.tcp = true});
  CHECK(tcp.url() == "redis://127.0.0.1:" + std::to_string(tcp.port()));
  CHECK(raw_client("127.0.0.1", tcp.port())("PING") == "PONG");
  tcp.refuse();
  CHECK_THROWS(raw_client("127.0.0.1", tcp.port()));
  tcp.heal();
  CHECK(raw_client("127.0.0.1", tcp.port())("PING") == "PONG");
}
