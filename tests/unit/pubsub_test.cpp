// SPDX-License-Identifier: BSL-1.0
// Against a server that the test plays itself: what is asked of it, in order.
#include "redis/pubsub.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "integration/redis_rig.hpp"
#include "support/catch.hpp"
#include "support/manual_clock.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

struct listener final : redis::subscriber {
  void on_subscribed() override {
    ++subscribed;
    if (then) then();
  }
  void on_message(std::string_view) override {
    ++messages;
    if (then) then();
  }
  void on_subscribe_failed(error_code, const std::string&) override {
    ++failed;
    if (then) then();
  }

  int subscribed = 0, messages = 0, failed = 0;
  std::function<void()> then;
};

/// A server that knows subscriptions and nothing else.
struct fixture : redis_rig {
  fixture()
      : server(io, [this](std::string_view bytes, std::size_t connection) {
          auto& parser = parsers[connection];
          parser.feed(bytes);
          std::string out;
          while (const auto command = parser.next()) out += answer(connection, *command);
          return out;
        }) {}

  std::string answer(std::size_t connection, const redis::reply& command) {
    const auto& name = command.elements[0].text;
    if (name == "PING") return "+PONG\r\n";
    if (name == "INFO") return "$15\r\n\r\nrun_id:" + run + "\r\n\r\n";
    const auto& what = command.elements[1].text;
    if (what == "ID") return ":" + std::to_string(connection + 10) + "\r\n";
    if (name == "CLIENT") {
      fenced.push_back(command.elements[3].text);
      return kill_answer;
    }
    if (name == "SUBSCRIBE" && refuses) return "-NOPERM no channel\r\n";
    subscribers[what] += name == "SUBSCRIBE" ? 1 : -1;
    const auto word = name == "SUBSCRIBE" ? "$9\r\nsubscribe" : "$11\r\nunsubscribe";
    return std::string("*3\r\n") + word + "\r\n$1\r\n" + what + "\r\n:1\r\n";
  }
  ~fixture() {
    if (timed) timed->close();
  }

  /// Its clock and its timers move by subscribed_in_time() alone.
  std::shared_ptr<redis::pubsub> hub_on_test_time() {
    timed = std::make_shared<redis::pubsub>(services_at(clock, alarms), unix_endpoint(server.path()), 2s);
    return timed;
  }
  bool subscribed_in_time(const listener& l, int times) {
    return until([&] {
      alarms.advance(1ms);
      return l.subscribed == times;
    });
  }
  void publish() { server.send("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n"); }

  manual_clock clock;
  manual_timers alarms{clock};
  std::map<std::size_t, redis::reader> parsers;
  std::map<std::string, int> subscribers;
  std::vector<std::string> fenced;
  std::string kill_answer = ":1\r\n";
  std::string run = "ab12";
  bool refuses = false;
  std::shared_ptr<redis::pubsub> timed;
  scripted_server server;
};

}  // namespace

TEST_CASE_METHOD(fixture, "who leaves while it is being told leaves nothing subscribed") {
  const auto h = hub(unix_endpoint(server.path()));
  listener leaves, stays;
  auto one = h->subscribe("c", leaves);
  redis::subscription two;
  const bool in_company = GENERATE(false, true);
  if (in_company) two = h->subscribe("c", stays);
  SECTION("told that it is subscribed") {
    leaves.then = [&] { one.reset(); };
    REQUIRE(until([&] { return !one && subscribers["c"] == 1; }));
  }
  SECTION("told a message") {
    REQUIRE(until([&] { return leaves.subscribed == 1; }));
    leaves.then = [&] { one.reset(); };
    publish();
    REQUIRE(until([&] { return !one; }));
    CHECK(leaves.messages == 1);
  }
  if (in_company) {
    REQUIRE(until([&] { return stays.subscribed == 1; }));
    publish();
    REQUIRE(until([&] { return stays.messages != 0; }));
    CHECK(subscribers["c"] == 1);
    two.reset();
  }
  CHECK(until([&] { return subscribers["c"] == 0; }));
  CHECK(leaves.messages <= 1);
}

TEST_CASE_METHOD(fixture, "a new connection ends the one before it, and so what that one had subscribed") {
  const auto h = hub_on_test_time();
  std::vector<std::string> refused;
  h->on_fencing_refused([&](const std::string& words) { refused.push_back(words); });
  listener a;
  auto s = h->subscribe("c", a);
  REQUIRE(subscribed_in_time(a, 1));
  CHECK(fenced.empty());
  server.close(0);
  SECTION("on the same server") {
    REQUIRE(subscribed_in_time(a, 2));
    CHECK(fenced == std::vector<std::string>{"10"});
    CHECK(refused.empty());
  }
  SECTION("on the same server, which refuses") {
    kill_answer = "-NOPERM no client|kill\r\n";
    REQUIRE(subscribed_in_time(a, 2));
    CHECK(refused == std::vector<std::string>{"CLIENT KILL: NOPERM no client|kill"});
  }
  SECTION("not on another server or another run of it") {
    run = "cd34";
    REQUIRE(subscribed_in_time(a, 2));
    CHECK(fenced.empty());
    run = "ef56";
    server.close(1);
    REQUIRE(subscribed_in_time(a, 3));
    CHECK(fenced.empty());
  }
}

TEST_CASE_METHOD(fixture, "who leaves while it is told that its channel is refused is not asked for again") {
  refuses = true;
  const auto h = hub(unix_endpoint(server.path()));
  listener leaves, other;
  auto one = h->subscribe("c", leaves);
  leaves.then = [&] { one.reset(); };
  REQUIRE(until([&] { return !one; }));
  refuses = false;
  auto two = h->subscribe("d", other);
  REQUIRE(until([&] { return other.subscribed == 1; }));
  two.reset();
  REQUIRE(until([&] { return subscribers["d"] == 0; }));
  CHECK(leaves.failed == 1);
  CHECK(subscribers["c"] == 0);
}
