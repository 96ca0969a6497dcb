// SPDX-License-Identifier: BSL-1.0
// Changes that a server pushes: the words that ask for them, and their losses, on the test's clock.
#include "redis/push_feed.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "redis/login.hpp"
#include "support/catch.hpp"
#include "support/plain_command.hpp"
#include "topology/standalone/standalone.hpp"
#include "unit/redis/counting_subscriber.hpp"
#include "unit/redis/pushing_server.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

struct answer {
  int times = 0;
  redis::outcome got;

  bool is_ok() const { return times == 1 && !got.error && !got.reply.is_error(); }
};

struct fixture : scripted_environment {
  fixture() {
    node.at = {"A", 6379, {}};
    node.silence_limit = 500ms;
    network.hosts = {{node.at, &server}};
  }
  ~fixture() {
    if (servers) servers->close();
    poll();
  }

  void make() {
    servers = std::make_unique<detail::standalone>(services(), node, 500ms, [this](const event& e) {
      if (e.kind != event_kind::push_degraded) return;
      degraded.emplace_back(e.detail);
      if (on_degraded) on_degraded();
    });
    servers->on_key_changed([this](std::string_view key, detail::node_id) {
      CHECK_FALSE(calling);
      changes.emplace_back(key.empty() ? "any" : key);
    });
  }
  void start() {
    if (!servers) make();
    calling = true;
    servers->start_pushing("k");
    calling = false;
    pass(1ms);
  }
  /// Until the server pushes; forgets the way there.
  void begin() {
    start();
    REQUIRE(servers->pushes("k"));
    server.heard.clear();
    changes.clear();
  }
  std::shared_ptr<answer> send(const std::string& key, redis::delivery how) {
    how.timeout = 500ms;
    const auto got = std::make_shared<answer>();
    servers->execute(key, plain_command(redis::make_command({"GET", key}), how, [got](redis::outcome o) {
                       ++got->times;
                       got->got = std::move(o);
                     }));
    pass(1ms);
    return got;
  }
  std::shared_ptr<answer> read(const std::string& key) { return send(key, {.timeout = {}, .track = true}); }
  void pass(detail::lease_clock::duration by) {
    alarms.advance(by);
    poll();
  }
  words take_changes() { return std::exchange(changes, {}); }

  pushing_server server;
  redis::endpoint node;
  words changes, degraded;
  std::function<void()> on_degraded;
  bool calling = false;
  std::unique_ptr<detail::standalone> servers;
};

const std::string no_right = "NOPERM this user has no permissions to run the 'client|tracking' command";

}  // namespace

TEST_CASE_METHOD(fixture, "a server that nobody asks to push gets no command more than before") {
  make();
  counting_subscriber waits;
  const auto kept = servers->subscribe("c", waits);
  CHECK(read("k")->is_ok());
  CHECK(server.heard == words{"SUBSCRIBE", "GET"});
  CHECK_FALSE(servers->pushes("k"));
  CHECK(changes.empty());
}

TEST_CASE_METHOD(fixture,
                 "a server that is asked pushes to the pub/sub connection, and its beginning is reported once") {
  start();
  CHECK(servers->pushes("k"));
  CHECK(server.heard == words{"SUBSCRIBE", "TRACKING"});
  CHECK(server.redirects[server.commands()] == server.ids[server.pubsub()]);
  CHECK(take_changes() == words{"any"});
  start();
  pass(1min);
  CHECK(changes.empty());
}

TEST_CASE_METHOD(fixture, "a command that is to be tracked has CLIENT CACHING before it, and no other has") {
  begin();
  const auto tracked = read("k");
  CHECK((tracked->is_ok() && tracked->got.tracked));
  CHECK(server.take_heard() == words{"CACHING", "GET"});
  const auto plain = send("other", {.timeout = {}});
  CHECK((plain->is_ok() && !plain->got.tracked));
  CHECK(server.take_heard() == words{"GET"});
  const auto asking = send("third", {.timeout = {}, .asking = true, .track = true});
  CHECK((asking->is_ok() && !asking->got.tracked));
  CHECK(server.heard == words{"ASKING", "GET"});
  CHECK(server.tracked.size() == 1);
}

TEST_CASE_METHOD(fixture, "a command that was sent before the server pushes is not tracked") {
  make();
  const auto before = read("k");
  CHECK((before->is_ok() && !before->got.tracked));
  CHECK(server.heard == words{"GET"});
}

TEST_CASE_METHOD(fixture, "a change of a tracked key is reported with the key, and only once") {
  begin();
  read("k");
  read("m");
  server.change("k");
  pass(1ms);
  CHECK(take_changes() == words{"k"});
  server.change("k");
  server.change("unknown");
  server.change("m");
  pass(1ms);
  CHECK(take_changes() == words{"m"});
}

TEST_CASE_METHOD(fixture, "a message without keys, or of another form, may be about any key") {
  begin();
  SECTION("all keys were deleted") { server.flush_all(); }
  SECTION("an empty array") { server.push(server.commands(), replies::array({})); }
  SECTION("a text") { server.push(server.commands(), replies::string("k")); }
  SECTION("a number among the keys") {
    server.push(server.commands(), replies::array({replies::string("k"), replies::integer(1)}));
  }
  pass(1ms);
  CHECK(changes == words{"any"});
}

TEST_CASE_METHOD(fixture, "a key of more than a message's longest size is reported as well") {
  begin();
  const std::string key(65'000, 'k');
  read(key);
  server.change(key);
  pass(1ms);
  CHECK(changes == words{key});
}

TEST_CASE_METHOD(fixture, "the end of either connection is reported, and the server is asked anew") {
  begin();
  read("k");
  server.heard.clear();
  SECTION("of the command connection, which nobody uses") {
    server.commands()->end();
    poll();
    CHECK_FALSE(servers->pushes("k"));
    pass(100ms);
    CHECK(server.heard == words{"TRACKING"});
  }
  SECTION("of the pub/sub connection") {
    server.pubsub()->end();
    poll();
    CHECK_FALSE(servers->pushes("k"));
    pass(100ms);
    CHECK(server.heard == words{"SUBSCRIBE", "TRACKING"});
  }
  SECTION("of both") {
    for (auto* each : std::set(server.connections)) each->end();
    pass(100ms);
    CHECK(server.heard.size() <= 3);
  }
  CHECK(servers->pushes("k"));
  CHECK(server.redirects[server.commands()] == server.ids[server.pubsub()]);
  const auto told = take_changes();
  CHECK((told.size() >= 1 && told.size() <= 2));
  CHECK(std::count(told.begin(), told.end(), "any") == static_cast<long>(told.size()));
  read("k");
  server.change("k");
  pass(1ms);
  CHECK(changes == words{"k"});
}

TEST_CASE_METHOD(fixture, "a connection that is replaced before its login ends has lost what was tracked") {
  const bool of_commands = GENERATE(true, false);
  int logins = 0;
  node.logins = std::make_shared<const redis::login_source>([&](const login_request&) {
    const bool ends = ++logins == (of_commands ? 1 : 2);
    return login{"u", "p", ends ? milliseconds(10s) : milliseconds(1h)};
  });
  begin();
  read("k");
  server.heard.clear();
  pass(9s);
  CHECK(logins == 3);
  std::erase(server.heard, "PING");
  CHECK(server.heard == (of_commands ? words{"TRACKING"} : words{"SUBSCRIBE", "TRACKING"}));
  CHECK(servers->pushes("k"));
  CHECK(std::count(changes.begin(), changes.end(), "any") >= 1);
  CHECK(read("k")->got.tracked);
}

TEST_CASE_METHOD(fixture, "waiters that come and go cost no command, and miss no change") {
  begin();
  read("k");
  read("m");
  server.heard.clear();
  servers->stop_pushing();
  server.change("k");
  pass(1min);
  CHECK(changes.empty());
  CHECK(server.heard.empty());
  start();
  CHECK(take_changes() == words{"k"});
  CHECK(server.take_heard() == words{"PING"});
  CHECK(servers->pushes("k"));
  servers->stop_pushing();
  pass(900ms);
  start();
  CHECK(server.heard.empty());  // it has answered a moment ago
  server.change("m");
  pass(1ms);
  CHECK(changes == words{"m"});
}

TEST_CASE_METHOD(fixture, "connections that are kept for pushes alone hold nothing once no push is needed") {
  begin();
  servers->stop_pushing();
  poll();
  CHECK(io.poll() == 0);
  const auto made = server.made;
  for (auto* each : std::set(server.connections)) each->end();
  pass(1min);
  CHECK(server.made == made);
  CHECK(server.heard.empty());
  start();
  pass(100ms);
  CHECK(servers->pushes("k"));
  CHECK(server.heard == words{"SUBSCRIBE", "TRACKING"});
  CHECK_FALSE(changes.empty());
}

TEST_CASE_METHOD(fixture,
                 "a server that refuses to push is reported once, with its words, and asked on its next connection") {
  SECTION("CLIENT TRACKING") { server.refuses_tracking = no_right; }
  SECTION("the channel") { server.refuses_channel = "NOPERM no channel"; }
  SECTION("an old server") {
    server.refuses_tracking = "ERR Unknown subcommand or wrong number of arguments for 'TRACKING'. Try CLIENT HELP";
  }
  start();
  CHECK_FALSE(servers->pushes("k"));
  const auto& refusal = server.refuses_tracking.empty() ? server.refuses_channel : server.refuses_tracking;
  REQUIRE(degraded.size() == 1);
  CHECK(degraded[0].find("redis://A:6379: ") == 0);
  CHECK(degraded[0].find(refusal) != std::string::npos);
  const auto asked = server.heard.size();
  for (int times = 0; times < 3; ++times) start();
  CHECK(read("k")->is_ok());
  CHECK(server.heard.size() == asked + 1);  // GET
  for (auto* each : std::set(server.connections)) each->end();
  read("k");
  pass(100ms);
  CHECK(read("k")->is_ok());
  start();
  CHECK(degraded.size() == 1);
  server.refuses_tracking.clear();
  server.refuses_channel.clear();
  for (auto* each : std::set(server.connections)) each->end();
  read("k");
  pass(100ms);
  CHECK(read("k")->is_ok());
  start();
  CHECK(servers->pushes("k"));
}

TEST_CASE_METHOD(fixture, "a server that refuses CLIENT CACHING answers the command, and is not asked again") {
  server.refuses_caching = "NOPERM this user has no permissions to run the 'client|caching' command";
  begin();
  const auto first = read("k");
  CHECK((first->is_ok() && !first->got.tracked));
  CHECK_FALSE(servers->pushes("k"));
  REQUIRE(degraded.size() == 1);
  CHECK(degraded[0] == "redis://A:6379: CLIENT CACHING: " + server.refuses_caching);
  server.heard.clear();
  CHECK(read("k")->is_ok());
  CHECK(server.heard == words{"GET"});
  CHECK(changes == words{"any"});
}

TEST_CASE_METHOD(fixture, "a server that cannot push now is asked again by the next caller, and nothing is reported") {
  auto& refusal = GENERATE(true, false) ? server.refuses_channel : server.refuses_tracking;
  refusal = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
  start();
  start();
  CHECK_FALSE(servers->pushes("k"));
  CHECK(degraded.empty());
  refusal.clear();
  start();
  CHECK(servers->pushes("k"));
}

TEST_CASE_METHOD(fixture, "a busy server answers CLIENT CACHING by an error, and goes on pushing afterwards") {
  begin();
  server.refuses_caching = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
  CHECK_FALSE(read("k")->got.tracked);
  CHECK(degraded.empty());
  server.refuses_caching.clear();
  CHECK(read("k")->got.tracked);
}

TEST_CASE_METHOD(fixture, "a proxy that ends the connection upon CLIENT TRACKING is asked three times, then seldom") {
  server.ends_upon_tracking = true;
  const auto asked = [this] { return std::count(server.heard.begin(), server.heard.end(), "TRACKING"); };
  const auto start_for = [&](int seconds) {
    for (int n = 0; n < seconds; ++n) {
      start();
      pass(1s);
      CHECK(read("k")->is_ok());
    }
  };
  start_for(50);
  CHECK(asked() == 3);
  REQUIRE(degraded.size() == 1);
  CHECK(degraded[0].find("CLIENT TRACKING") != std::string::npos);
  start_for(100);
  const auto before = asked();
  CHECK((before == 4 || before == 5));
  server.ends_upon_tracking = false;
  start_for(300);
  CHECK(servers->pushes("k"));
  CHECK(asked() == before + 1);
  CHECK(degraded.size() == 1);
}

TEST_CASE_METHOD(fixture, "connections that end while earlier commands have no answer say nothing of CLIENT TRACKING") {
  begin();
  server.stalls = true;
  for (int times = 0; times < 4; ++times) {
    server.refuses = true;
    REQUIRE(server.commands());
    server.commands()->end();
    pass(1ms);
    send("k", {.timeout = {}, .rank = redis::urgency::obligation});
    server.heard.clear();
    server.refuses = false;
    for (int looks = 0; looks < 100 && server.heard.size() < 2; ++looks) pass(20ms);
    REQUIRE(server.heard.size() >= 2);
    CHECK(server.heard[0] == "GET");
    CHECK(server.heard[1] == "TRACKING");
  }
  server.stalls = false;
  server.commands()->end();
  pass(2s);
  start();
  CHECK(servers->pushes("k"));
  CHECK(degraded.empty());
}

TEST_CASE_METHOD(fixture, "connections that an outage ends soon say nothing of CLIENT TRACKING") {
  server.ends_upon_tracking = true;
  start();
  server.ends_upon_tracking = false;
  server.heard.clear();
  const auto connect = [this] {
    const auto got = read("k");
    for (int looks = 0; looks < 40 && got->times == 0; ++looks) pass(10ms);
    CHECK(got->is_ok());
  };
  for (int times = 0; times < 4; ++times) {
    connect();
    pass(100ms);
    start();
    REQUIRE(server.commands());
    server.commands()->end();
  }
  CHECK(std::count(server.heard.begin(), server.heard.end(), "TRACKING") == 0);
  connect();
  pass(250ms);
  start();
  CHECK(servers->pushes("k"));
  CHECK(degraded.empty());
}

TEST_CASE_METHOD(fixture, "a server that would push a client's own writes is not asked, and that is reported once") {
  server.version = GENERATE("6.0.16", "6.2.7", "7.0.4");
  make();
  CHECK(read("k")->is_ok());
  for (int times = 0; times < 3; ++times) start();
  CHECK_FALSE(servers->pushes("k"));
  CHECK(server.heard == words{"GET"});
  CHECK(server.pubsub() == nullptr);
  REQUIRE(degraded.size() == 1);
  CHECK(degraded[0].find("redis://A:6379: changes are pushed by Redis 6.2.8") == 0);
  CHECK(degraded[0].find("this is " + server.version) != std::string::npos);
  server.version = "7.0.5";
  server.commands()->end();
  read("k");
  pass(100ms);
  CHECK(read("k")->is_ok());
  start();
  CHECK(servers->pushes("k"));
  CHECK(degraded.size() == 1);
}

TEST_CASE_METHOD(fixture, "a server whose version shows only when it is connected is not asked either") {
  server.version = "7.0.4";
  start();
  pass(10s);
  CHECK_FALSE(servers->pushes("k"));
  CHECK(std::count(server.heard.begin(), server.heard.end(), "TRACKING") == 0);
  CHECK(degraded.size() == 1);
}

TEST_CASE_METHOD(fixture, "an observer may close the client when it is told that nothing is pushed") {
  SECTION("CLIENT TRACKING") { server.refuses_tracking = no_right; }
  SECTION("the channel") { server.refuses_channel = "NOPERM no channel"; }
  SECTION("the version") { server.version = "7.0.4"; }
  SECTION("a proxy that ends the connection") { server.ends_upon_tracking = true; }
  on_degraded = [this] { servers->close(); };
  make();
  read("k");
  for (int times = 0; times < 5; ++times) {
    start();
    pass(1s);
  }
  CHECK(degraded.size() == 1);
  CHECK(changes.empty());
}

TEST_CASE_METHOD(fixture, "a client of another run of the server is not asked for: its number is another's there") {
  begin();
  server.heard.clear();
  server.run = "bb";
  server.pubsub()->end();
  pass(100ms);
  CHECK_FALSE(servers->pushes("k"));
  CHECK(std::count(server.heard.begin(), server.heard.end(), "TRACKING") == 0);
  server.commands()->end();
  pass(100ms);
  CHECK(servers->pushes("k"));
}

TEST_CASE_METHOD(fixture, "a subscriber's channel on the same connection is not disturbed") {
  begin();
  counting_subscriber waits;
  auto kept = servers->subscribe("c", waits);
  pass(1ms);
  CHECK(waits.subscribed == 1);
  server.pubsub()->send(replies::array({replies::string("message"), replies::string("c"), replies::string("0")}));
  pass(1ms);
  CHECK(waits.messages == 1);
  CHECK(changes.empty());
  kept.reset();
  pass(1ms);
  CHECK(servers->pushes("k"));
  CHECK(server.heard == words{"SUBSCRIBE", "UNSUBSCRIBE"});
}
