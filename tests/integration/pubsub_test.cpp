// SPDX-License-Identifier: BSL-1.0
#include "redis/pubsub.hpp"
#include "protocol/derived_keys.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "integration/redis_rig.hpp"
#include "lua_scripts.hpp"
#include "protocol/kind.hpp"
#include "support/catch.hpp"
#include "support/manual_clock.hpp"
#include "support/server_version.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using action = proxy::rule::action;
using direction = proxy::direction;

namespace {

struct listener final : redis::subscriber {
  void on_subscribed() override {
    ++subscribed;
    if (when_subscribed) when_subscribed();
  }
  void on_message(std::string_view payload) override {
    messages.emplace_back(payload);
    if (when_message) when_message();
  }
  void on_subscribe_failed(error_code error, const std::string& detail) override {
    ++failed;
    why = error;
    text = detail;
  }

  int subscribed = 0, failed = 0;
  std::vector<std::string> messages;
  error_code why;
  std::string text;
  std::function<void()> when_subscribed, when_message;
};

struct fixture : server_rig {
  long long subscribers(const std::string& channel) {
    return admin()("PUBSUB", "NUMSUB", channel).array().at(1).integer();
  }
};

}  // namespace

TEST_CASE_METHOD(fixture, "one subscription on the server serves all subscribers of a channel") {
  const auto h = hub(direct());
  listener a, b, other;
  auto one = h->subscribe("c", a);
  auto two = h->subscribe("c", b);
  auto three = h->subscribe("other", other);
  CHECK(a.subscribed == 0);
  REQUIRE(until([&] { return a.subscribed == 1 && b.subscribed == 1 && other.subscribed == 1; }));
  CHECK(subscribers("c") == 1);
  CHECK(admin()("PUBLISH", "c", "hello") == 1);
  REQUIRE(until([&] { return !a.messages.empty() && !b.messages.empty(); }));
  CHECK(a.messages == std::vector<std::string>{"hello"});
  CHECK(b.messages == a.messages);
  CHECK(other.messages.empty());

  one.reset();
  run_for(20ms);
  CHECK(admin()("PUBLISH", "c", "again") == 1);
  REQUIRE(until([&] { return b.messages.size() == 2; }));
  CHECK(a.messages.size() == 1);
  two.reset();
  REQUIRE(until([&] { return subscribers("c") == 0; }));
  CHECK(subscribers("other") == 1);
}

TEST_CASE_METHOD(fixture, "who comes to a subscribed channel is told as well, but not inside the call") {
  const auto h = hub(direct());
  listener a, b, gone;
  const auto one = h->subscribe("c", a);
  REQUIRE(until([&] { return a.subscribed == 1; }));
  const auto two = h->subscribe("c", b);
  auto three = h->subscribe("c", gone);
  CHECK(b.subscribed == 0);
  three.reset();
  REQUIRE(until([&] { return b.subscribed == 1; }));
  CHECK(a.subscribed == 1);
  CHECK(gone.subscribed == 0);
}

TEST_CASE_METHOD(fixture, "without subscriptions nothing holds the context and the connection stays") {
  const auto h = hub(proxied());
  listener a;
  auto s = h->subscribe("c", a);
  REQUIRE(until([&] { return a.subscribed == 1; }));
  s.reset();
  must_become_idle();
  CHECK(subscribers("c") == 0);
  s = h->subscribe("c", a);
  REQUIRE(until([&] { return a.subscribed == 2; }));
  CHECK(between().count().connections == 1);
}

TEST_CASE_METHOD(fixture, "subscribing and unsubscribing in quick turns ends as the last one wanted") {
  const auto h = hub(direct());
  listener a;
  redis::subscription s;
  for (int i = 0; i < 200; ++i) {
    s = h->subscribe("c", a);
    if (i % 3 == 0) io.poll();
    s.reset();
    if (i % 5 == 0) io.poll();
  }
  s = h->subscribe("c", a);
  const auto before = a.subscribed;
  REQUIRE(until([&] { return a.subscribed > before; }));
  CHECK(subscribers("c") == 1);
  CHECK(admin()("PUBLISH", "c", "x") == 1);
  REQUIRE(until([&] { return a.messages.size() == 1; }));
  s.reset();
  must_become_idle();
  CHECK(subscribers("c") == 0);
}

TEST_CASE_METHOD(fixture, "after a loss everyone is subscribed and told again") {
  const auto h = hub(direct());
  listener a, b, c;
  const auto one = h->subscribe("a", a);
  const auto two = h->subscribe("b", b);
  const auto three = h->subscribe("b", c);
  REQUIRE(until([&] { return a.subscribed == 1 && b.subscribed == 1 && c.subscribed == 1; }));
  admin()("CLIENT", "KILL", "TYPE", "pubsub");
  REQUIRE(until([&] { return a.subscribed == 2 && b.subscribed == 2 && c.subscribed == 2; }));
  CHECK(admin()("PUBLISH", "b", "x") == 1);
  REQUIRE(until([&] { return c.messages.size() == 1; }));
  server().kill();
  run_for(50ms);
  server().restart();
  REQUIRE(until([&] { return a.subscribed == 3 && c.subscribed == 3; }));
  CHECK(a.failed == 0);
}

TEST_CASE_METHOD(fixture, "thousands of channels are subscribed together") {
  const auto h = hub(proxied());
  std::vector<listener> all(3000);
  std::vector<redis::subscription> held;
  int i = 0;
  for (auto& l : all) held.push_back(h->subscribe("c" + std::to_string(i++), l));
  CHECK(
      until([&] { return std::all_of(all.begin(), all.end(), [](const listener& l) { return l.subscribed == 1; }); }));
  held.clear();
  must_become_idle();
  CHECK(admin()("PUBSUB", "CHANNELS").array().empty());
}

TEST_CASE_METHOD(fixture, "a channel that the ACL refuses fails for its subscribers alone") {
  admin()("ACL", "SETUSER", "app", "on", "nopass", "~*", "resetchannels", "&good*", "+@all");
  auto node = direct();
  node.login.user = "app";
  node.login.password = "any";
  const auto h = hub(node);
  listener good, bad, later;
  const auto one = h->subscribe("good1", good);
  const auto two = h->subscribe("bad", bad);
  REQUIRE(until([&] { return good.subscribed == 1 && bad.failed == 1; }));
  CHECK(bad.why == errc::no_permission);
  CHECK(bad.text.find("NOPERM") != std::string::npos);
  CHECK(bad.subscribed == 0);
  CHECK(good.failed == 0);
  admin()("ACL", "SETUSER", "app", "&bad");
  const auto three = h->subscribe("bad", later);  // asks again
  REQUIRE(until([&] { return later.subscribed == 1 && bad.subscribed == 1; }));
}

TEST_CASE_METHOD(fixture, "a wrong password fails every subscription, now and later") {
  server().options().password = "right";
  server().restart();
  auto node = direct();
  node.login.password = "wrong-secret";
  const auto h = hub(node);
  listener a, b;
  const auto one = h->subscribe("a", a);
  REQUIRE(until([&] { return a.failed == 1; }));
  CHECK(a.why == errc::auth_failed);
  CHECK(a.text.find("wrong-secret") == std::string::npos);
  const auto two = h->subscribe("b", b);
  CHECK(b.failed == 0);
  REQUIRE(until([&] { return b.failed >= 1; }, 900ms));
  CHECK(b.why == errc::auth_failed);
}

TEST_CASE_METHOD(fixture, "an outage fails no subscription") {
  const auto h = hub(unix_endpoint("/nonexistent/socket"));
  listener a;
  auto s = h->subscribe("a", a);
  run_for(200ms);
  CHECK(a.failed == 0);
  s.reset();
  must_become_idle();
}

TEST_CASE_METHOD(fixture, "a subscription that is not acknowledged replaces the connection") {
  between().at_command({.what = action::drop_rest, .command = "SUBSCRIBE"});
  const auto h = hub(proxied(), 50ms);
  listener a;
  const auto s = h->subscribe("a", a);
  REQUIRE(until([&] { return a.subscribed == 1; }));
  CHECK(between().count().connections == 2);
}

TEST_CASE_METHOD(fixture, "messages of more than a kilobyte are ignored") {
  const auto h = hub(direct());
  listener a;
  const auto s = h->subscribe("c", a);
  REQUIRE(until([&] { return a.subscribed == 1; }));
  admin()("PUBLISH", "c", std::string(1025, 'x'));
  admin()("PUBLISH", "c", std::string(900'000, 'x'));
  admin()("PUBLISH", "c", std::string(1024, 'y'));
  REQUIRE(until([&] { return !a.messages.empty(); }));
  CHECK(a.messages == std::vector<std::string>{std::string(1024, 'y')});
  CHECK(a.subscribed == 1);
}

TEST_CASE_METHOD(fixture, "subscribers may unsubscribe, subscribe and close inside their callbacks") {
  const auto h = hub(direct());
  listener a, b, c, d;
  redis::subscription sa, sb, sc, sd;
  sa = h->subscribe("c", a);
  sb = h->subscribe("c", b);
  sc = h->subscribe("c", c);
  a.when_message = [&] {
    sa.reset();
    sb.reset();
    sd = h->subscribe("c", d);
  };
  REQUIRE(until([&] { return c.subscribed == 1; }));
  admin()("PUBLISH", "c", "1");
  REQUIRE(until([&] { return c.messages.size() == 1 && d.subscribed == 1; }));
  CHECK(a.messages.size() == 1);
  CHECK(b.messages.empty());
  CHECK(d.messages.empty());

  c.when_message = [&] {
    sc.reset();
    sd.reset();  // the last one
    sa = h->subscribe("c", a);
  };
  a.when_message = nullptr;
  admin()("PUBLISH", "c", "2");
  REQUIRE(until([&] { return a.subscribed == 2; }));
  CHECK(d.messages.empty());
  CHECK(subscribers("c") == 1);
  a.when_message = [&] { h->close(); };
  sb = h->subscribe("c", b);
  REQUIRE(until([&] { return b.subscribed == 2; }));
  admin()("PUBLISH", "c", "3");
  must_become_idle();
  CHECK(a.messages.size() == 2);
  CHECK(b.messages.empty());
}

TEST_CASE_METHOD(fixture, "a subscription may outlive its hub") {
  auto h = hub(direct());
  listener a;
  auto s = h->subscribe("c", a);
  REQUIRE(until([&] { return a.subscribed == 1; }));
  h->close();
  s.reset();
  CHECK_FALSE(h->subscribe("c", a));
  must_become_idle();
  CHECK(a.failed == 0);
}

TEST_CASE_METHOD(fixture, "a flood of messages is survived") {
  const auto h = hub(direct());
  listener a;
  const auto s = h->subscribe("c", a);
  REQUIRE(until([&] { return a.subscribed == 1; }));
  const int count = 50'000;
  auto& client = admin();
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += redis::make_command({"PUBLISH", "c", "0"});
  client.send_bytes(bytes);
  REQUIRE(until([&] { return a.messages.size() == count; }));
  CHECK(a.subscribed == 1);
}

TEST_CASE_METHOD(fixture, "a link that is dead without saying so is found by PING") {
  manual_clock clock;
  manual_timers alarms(clock);
  const auto h = std::make_shared<redis::pubsub>(services_at(clock, alarms), proxied(), 500ms);
  listener a;
  const auto s = h->subscribe("c", a);
  alarms.advance(1ms);
  REQUIRE(until([&] { return a.subscribed == 1; }));
  alarms.advance(10s);
  run_for(20ms);
  REQUIRE(between().wait_for_commands("PING", 2));  // one of the handshake
  run_for(50ms);
  CHECK(between().count().connections == 1);

  between().swallow(direction::to_client);
  alarms.advance(10s);
  run_for(20ms);
  REQUIRE(between().wait_for_commands("PING", 3));
  alarms.advance(499ms);
  CHECK(between().count().open == 1);
  between().heal();
  alarms.advance(5s);
  REQUIRE(until([&] {
    alarms.advance(1ms);
    return a.subscribed == 2;
  }));
  h->close();
}

TEST_CASE_METHOD(fixture, "a link that died without the server hearing of it leaves no subscription there") {
  manual_clock clock;
  manual_timers alarms(clock);
  // The second PING, the first that is not of the handshake, and all that follows it never comes through, nor does the
  // end.
  between().at_command({.what = action::hold_rest, .n = 2, .command = "PING", .connection = 0});
  const auto h = std::make_shared<redis::pubsub>(services_at(clock, alarms), proxied(), 500ms);
  listener a;
  const auto s = h->subscribe("c", a);
  alarms.advance(1ms);
  REQUIRE(until([&] { return a.subscribed == 1; }));
  alarms.advance(10s);
  REQUIRE(until([&] { return between().count().fired == 1; }));
  REQUIRE(until([&] {
    alarms.advance(1ms);
    return a.subscribed == 2;
  }));
  CHECK(between().count().connections == 2);
  CHECK(subscribers("c") == 1);
  h->close();
}

TEST_CASE_METHOD(fixture,
                 "a sharded channel hears spublish and the word that the server chooses, and leaves with its slot") {
  need_redis_7("sharded channels");
  redis_options options;
  options.tcp = true;  // the cluster's bus needs a port
  options.arguments = {"--cluster-enabled", "yes"};
  server(options);
  admin()("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  until([&] { return admin()("CLUSTER", "INFO").to_string().find("cluster_state:ok") != std::string::npos; });
  auto node = direct();
  node.expected = redis::server_mode::cluster;
  const auto h = std::make_shared<redis::pubsub>(services(), node, 2s, std::nullopt);
  std::vector<std::string> moved;
  h->on_moved([&](std::string_view channel, std::string_view words) {
    moved.push_back(std::string(channel) + "; " + std::string(words.substr(0, words.find(' '))));
  });
  listener a;
  const detail::lock_keys lock(detail::plain_lock, "m");
  const auto channel = detail::channel_of(lock);
  auto one = h->subscribe(channel, a);
  REQUIRE(until([&] { return a.subscribed == 1; }));
  std::size_t heard = 0;
  for (const std::string word : {"spublish", "auto", "both", "publish"}) {
    admin()("HSET", "m", "me:1", "1");
    CHECK(admin()("EVAL", detail::lua::release.body, 1, "m", word, channel, "me:1", 0, 1000).integer() >= 0);
    if (word != "publish") CHECK(until([&] { return a.messages.size() == heard + 1; }));
    heard = a.messages.size();
  }
  admin()("CLUSTER", "DELSLOTS", std::to_string(admin()("CLUSTER", "KEYSLOT", "m").integer()));
  REQUIRE(until([&] { return moved.size() == 1; }));
  one.reset();
  one = h->subscribe(channel, a);
  REQUIRE(until([&] { return moved.size() == 2; }));
  CHECK(moved == std::vector<std::string>{channel + "; ", channel + "; CLUSTERDOWN"});
  CHECK(heard == 3);
  CHECK(a.failed == 0);
  h->close();
}
