// SPDX-License-Identifier: BSL-1.0
// Connections that a load balancer or NAT has forgotten, on the test's clock.
#include "redis/connection.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "redis/pubsub.hpp"
#include "support/catch.hpp"
#include "support/no_memory.hpp"
#include "support/plain_command.hpp"
#include "support/skip.hpp"
#include "unit/redis/counting_subscriber.hpp"
#include "unit/redis/scripted_network.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

struct fake_server final : scripted_host {
  redis::reply answer(connection&, const words& argv) override {
    if (argv[0] == "CLIENT") return replies::integer(7);
    if (argv[0] == "ROLE") return strings({"master"});
    if (argv[0] == "INFO") {
      ++introductions;
      return replies::string("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:1\r\n");
    }
    heard.push_back(argv[0]);
    if (argv[0] == "PING") return ping;
    if (argv[0] == "SUBSCRIBE")
      return replies::array({replies::string("subscribe"), replies::string(argv[1]), replies::integer(1)});
    if (argv[0] == "UNSUBSCRIBE")
      return replies::array({replies::string("unsubscribe"), replies::string(argv[1]), replies::integer(0)});
    return replies::ok();
  }

  redis::reply ping = replies::status("PONG");
  int introductions = 0;
  words heard;  // after the handshakes of command connections
};

struct answer {
  int times = 0;
  redis::outcome got;
  detail::time_point when{};

  bool is_ok() const { return times == 1 && !got.error; }
  bool has(errc code) const { return times == 1 && got.error == code; }
};

struct fixture : scripted_environment {
  fixture() {
    node.at = {"A", 6379, {}};
    node.silence_limit = 500ms;
    network.hosts = {{node.at, &server}};
  }
  ~fixture() {
    if (commands) commands->close();
    if (channels) channels->close();
    poll();
  }

  /// One that has answered a command, and is idle since.
  void connect() {
    commands = std::make_shared<redis::connection>(services(), node, [this](const event& e) {
      events.emplace_back(to_string(e.kind));
      details.emplace_back(e.detail);
    });
    commands->on_link_change([this](bool up) { links += up ? '+' : '-'; });
    const auto first = send();
    pass(1ms);
    REQUIRE(first->is_ok());
    server.heard.clear();
    events.clear();
    details.clear();
  }
  std::shared_ptr<answer> send(std::string_view word = "SET", detail::lease_clock::duration timeout = 500ms) {
    auto a = std::make_shared<answer>();
    last =
        commands->execute(plain_command(redis::make_command({word, "k", "v"}), {.timeout = timeout}, [this, a](auto o) {
          ++a->times;
          a->got = std::move(o);
          a->when = clock.now();
        }));
    return a;
  }
  redis::subscription subscribe(std::string_view channel) {
    if (!channels) channels = std::make_shared<redis::pubsub>(services(), node, 500ms);
    return channels->subscribe(channel, hears);
  }
  void pass(detail::lease_clock::duration by) {
    alarms.advance(by);
    poll();
  }
  /// A load balancer forgets what was open, with or without a word to whoever sends next.
  void forget() {
    server.resets = GENERATE(false, true);
    server.forget_connections();
  }
  long count(const std::string& word) const { return std::count(server.heard.begin(), server.heard.end(), word); }

  fake_server server;
  redis::endpoint node;
  std::shared_ptr<redis::connection> commands;
  std::shared_ptr<redis::pubsub> channels;
  counting_subscriber hears;
  redis::ticket last = 0;
  words events, details;
  std::string links;
};

}  // namespace

TEST_CASE_METHOD(fixture, "a connection is asked before a command that comes after a second of silence") {
  connect();
  pass(1s);
  const auto first = send("SET");
  const auto second = send("GET");
  pass(1ms);
  CHECK((first->is_ok() && second->is_ok()));
  CHECK(server.heard == words{"PING", "SET", "GET"});
  pass(998ms);
  CHECK(send("DEL")->times == 0);
  pass(1ms);
  CHECK(server.heard == words{"PING", "SET", "GET", "DEL"});
  CHECK(server.introductions == 1);
}

TEST_CASE_METHOD(fixture, "any answer to PING shows that the connection is alive") {
  connect();
  server.ping = replies::error("NOPERM this user has no permissions to run the 'ping' command");
  pass(1h);
  const auto a = send();
  pass(1ms);
  CHECK(a->is_ok());
  CHECK(links == "+");
}

TEST_CASE_METHOD(fixture, "a command for a forgotten connection is answered on the next one, in its own time") {
  connect();
  forget();
  pass(5s);
  const auto start = clock.now();
  const auto a = send("SET"), b = send("GET", 110ms);
  pass(109ms);
  CHECK((a->is_ok() && b->is_ok()));
  CHECK(a->when <= start + 100ms);
  CHECK(server.heard == words{"SET", "GET"});
  CHECK(events == words{"outage", "connected"});
  CHECK(links == "+-+");
  CHECK(server.introductions == 2);
}

TEST_CASE_METHOD(fixture, "a command that has little time leaves half of it to the next connection") {
  connect();
  forget();
  pass(5s);
  const auto a = send("SET", 30ms);
  pass(29ms);
  CHECK(a->is_ok());
}

TEST_CASE_METHOD(fixture, "a connection that ended while it was idle is no outage before the next one cannot be made") {
  connect();
  std::vector<bool> outages;
  commands->on_link_change([&](bool) { outages.push_back(commands->in_outage()); });
  SECTION("idle") {
    forget();
    server.refuses = true;
    pass(5s);
    send();
    pass(101ms);
    CHECK(outages == std::vector<bool>{false});
    CHECK(commands->in_outage());
  }
  SECTION("under a command") {
    server.silent = true;
    send();
    pass(1ms);
    (*server.connections.begin())->end();
    poll();
    REQUIRE_FALSE(outages.empty());
    CHECK(outages.front());
  }
}

TEST_CASE_METHOD(fixture, "a command that waits for the answer to PING may be withdrawn, and has its own timeout") {
  connect();
  server.forget_connections();
  server.refuses = true;
  pass(5s);
  const auto late = send("SET", 60ms);
  const auto withdrawn = send("GET");
  CHECK_FALSE(commands->answering());
  CHECK(commands->withdraw(last));
  pass(60ms);
  CHECK(late->has(errc::unreachable));
  pass(1h);
  CHECK(withdrawn->times == 0);
  CHECK(server.heard.empty());
  CHECK(alarms.idle());
}

TEST_CASE_METHOD(fixture, "a timeout goes on while the connection is asked, and after it was lost") {
  connect();
  server.forget_connections();
  server.refuses = true;
  pass(5s);
  const auto start = clock.now();
  const auto a = send();
  pass(2s);
  REQUIRE(a->has(errc::unreachable));
  CHECK(a->when == start + 500ms);
}

TEST_CASE_METHOD(fixture, "a server that is far away is not given up for it") {
  node.silence_limit = 2s;
  server.delay = 150ms;
  commands = std::make_shared<redis::connection>(services(), node, [](const event&) {});
  commands->on_link_change([this](bool up) { links += up ? '+' : '-'; });
  send("SET", 2s);
  pass(1s);
  server.delay = 290ms;
  pass(10s);
  const auto a = send("SET", 2s);
  pass(1s);
  CHECK(a->is_ok());
  CHECK(links == "+");
  // The limit follows the round trip, also down.
  server.delay = 10ms;
  pass(10s);
  send();
  pass(1s);
  server.forget_connections();
  server.delay = {};
  pass(10s);
  const auto b = send();
  pass(100ms);
  CHECK(b->is_ok());
}

TEST_CASE_METHOD(fixture,
                 "a watched connection is asked in each interval of silence, and replaced when it was forgotten") {
  connect();
  commands->keep_watch(true);
  pass(9s);
  CHECK(server.heard.empty());
  pass(1s);
  CHECK(server.heard == words{"PING"});
  pass(30s);
  CHECK(count("PING") == 4);
  CHECK(links == "+");
  SECTION("it is forgotten") {
    forget();
    pass(10s);
    pass(node.silence_limit + 1ms);  // nobody waits: a packet may be lost
    CHECK(links == "+-+");
    CHECK(count("PING") == 4);
    pass(10s);
    CHECK(count("PING") == 5);
  }
  SECTION("a command shows as well that it is alive") {
    pass(9s);
    send();  // asks, after a second
    pass(9s);
    CHECK(count("PING") == 5);
    pass(1s);
    CHECK(count("PING") == 6);
  }
  SECTION("nobody wants it any more") {
    commands->keep_watch(false);
    CHECK(alarms.idle());
    pass(1h);
    CHECK(count("PING") == 4);
  }
  SECTION("nothing is to be written") {
    commands->hold(true);
    pass(1h);
    CHECK(count("PING") == 4);
    commands->hold(false);
    pass(1ms);
    CHECK(count("PING") == 5);
  }
}

TEST_CASE_METHOD(fixture, "an idle connection that nobody watches sets no timer") {
  connect();
  CHECK(alarms.idle());
  commands->keep_watch(true);
  CHECK_FALSE(alarms.idle());
  send();
  pass(1ms);
  commands->keep_watch(false);
  CHECK(alarms.idle());
}

TEST_CASE_METHOD(fixture, "with a short interval a connection is asked after half of it") {
  node.health_check_interval = 200ms;
  connect();
  pass(98ms);
  send();
  pass(1ms);
  CHECK(server.heard == words{"SET"});
  pass(100ms);
  send();
  pass(1ms);
  CHECK(server.heard == words{"SET", "PING", "SET"});
}

TEST_CASE_METHOD(fixture, "a young connection that was silent and is lost is made again at once") {
  node.health_check_interval = 200ms;
  connect();
  forget();
  pass(100ms);
  const auto a = send("SET", 40ms);
  pass(39ms);
  CHECK(a->is_ok());
}

TEST_CASE_METHOD(fixture, "without health checks nothing is asked") {
  node.health_check_interval = 0ms;
  connect();
  commands->keep_watch(true);
  const auto s = subscribe("c");
  pass(1ms);
  const auto pings = count("PING");  // of the handshake
  pass(1h);
  send();
  pass(1ms);
  CHECK(count("PING") == pings);
  CHECK(server.heard.back() == "SET");
}

TEST_CASE_METHOD(fixture, "a subscription on a forgotten connection is made on the next one before its timeout") {
  auto one = subscribe("a");
  pass(1ms);
  one.reset();
  pass(5s);
  REQUIRE(hears.subscribed == 1);
  forget();
  const auto two = subscribe("b");
  pass(101ms);
  CHECK(hears.subscribed == 2);
}

TEST_CASE_METHOD(fixture, "a subscription does not wait as long as the UNSUBSCRIBE that a forgotten connection lost") {
  node.health_check_interval = 200ms;
  auto one = subscribe("a");
  pass(1ms);
  forget();
  one.reset();
  pass(100ms);
  const auto two = subscribe("b");
  pass(101ms);
  CHECK(hears.subscribed == 2);
}

TEST_CASE_METHOD(
    fixture, "a pub/sub connection with subscribers is asked in each interval, and replaced when it was forgotten") {
  node.health_check_interval = 3s;
  const auto s = subscribe("c");
  pass(1ms);
  const auto pings = count("PING");
  pass(3s);
  CHECK(count("PING") == pings + 1);
  forget();
  pass(3s);
  pass(500ms);
  CHECK(hears.subscribed == 2);
}

TEST_CASE("a connection that is lost without memory comes up by itself") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  for (const bool subscribes : {false, true}) {
    bool failed = true;
    std::size_t n = 0;
    for (; failed; ++n) {
      INFO("from allocation " << n << " on there is no memory, subscribed: " << subscribes);
      fixture f;
      f.connect();
      redis::subscription channel;
      if (subscribes)
        channel = f.subscribe("c");
      else
        f.commands->keep_watch(true);
      f.pass(2s);
      const auto made = f.server.made;
      const auto connections = f.server.connections;
      for (auto* const c : connections) c->end();
      {
        const failing_allocations here(n, std::size_t(-1), failing_allocations::of::everybody_but_asio);
        try {
          f.poll();
        } catch (const std::bad_alloc&) {
        }
        failed = here.happened();
      }
      for (int i = 0; i < 30; ++i) f.pass(1s);
      CHECK(f.server.made == made + 1);
      CHECK(f.hears.subscribed == (subscribes ? 2 : 0));
    }
    CHECK(n > 1);
  }
}

TEST_CASE("a connection that finds no memory to write goes on with the next command") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  bool failed = true;
  std::size_t n = 0;
  for (; failed; ++n) {
    INFO("allocation " << n << " fails");
    fixture f;
    f.connect();
    {
      const failing_allocations here(n);
      try {
        f.send();
        f.send();
      } catch (const std::bad_alloc&) {
      }
      failed = here.happened();
    }
    for (int i = 0; i < 10; ++i) f.pass(1s);
    const auto next = f.send();
    for (int i = 0; i < 10; ++i) f.pass(20ms);
    CHECK(next->is_ok());
  }
  CHECK(n > 10);
}
