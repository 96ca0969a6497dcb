// SPDX-License-Identifier: BSL-1.0
#include "redis/subscription_table.hpp"

#include <string>

#include "support/catch.hpp"
#include "support/replies.hpp"

using namespace holdfast;
using namespace holdfast::test;
using redis::make_command;
using redis::subscription_table;
using kind = subscription_table::event::kind;

namespace {

constexpr auto start = detail::time_point{} + std::chrono::hours{1};

std::string write(subscription_table& t, detail::time_point now = start) {
  std::string out;
  t.write(out, 1'000'000, now);
  return out;
}
std::string sub(std::string_view channel) { return make_command({"SUBSCRIBE", channel}); }
std::string unsub(std::string_view channel) { return make_command({"UNSUBSCRIBE", channel}); }
redis::reply push(std::string word, std::string channel, redis::reply third = replies::integer(1)) {
  return replies::array({replies::string(std::move(word)), replies::string(std::move(channel)), std::move(third)});
}
redis::reply message(std::string channel, std::string payload) {
  return push("message", std::move(channel), replies::string(std::move(payload)));
}

}  // namespace

TEST_CASE("a wanted channel is asked for once there is a connection, and confirmed by its acknowledgement") {
  subscription_table t;
  t.want("a");
  CHECK(t.any_wanted());
  CHECK(write(t).empty());
  t.start();
  CHECK(write(t) == sub("a"));
  CHECK(write(t).empty());
  CHECK_FALSE(t.confirmed("a"));
  CHECK(t.busy());
  CHECK(t.oldest_unanswered() == start);
  const auto e = t.on_reply(push("subscribe", "a"));
  CHECK(e.what == kind::confirmed);
  CHECK(e.channel == "a");
  CHECK(t.confirmed("a"));
  CHECK_FALSE(t.oldest_unanswered());
  CHECK_FALSE(t.busy());
  t.unwant("a");
  CHECK(t.busy());
}

TEST_CASE("many channels go out together, one command each") {
  subscription_table t;
  t.start();
  for (const auto* c : {"a", "b", "c"}) t.want(c);
  CHECK(write(t) == sub("a") + sub("b") + sub("c"));
  t.unwant("b");
  t.want("d");
  CHECK(write(t) == unsub("b") + sub("d"));
}

TEST_CASE("what changes its mind before it is written is not written") {
  subscription_table t;
  t.start();
  t.want("a");
  t.unwant("a");
  CHECK(write(t).empty());
  CHECK_FALSE(t.any_wanted());
  t.want("a");
  write(t);
  t.on_reply(push("subscribe", "a"));
  t.unwant("a");
  t.want("a");
  CHECK(write(t).empty());
  CHECK(t.confirmed("a"));
}

TEST_CASE("of subscribe, unsubscribe, subscribe only the last acknowledgement confirms") {
  subscription_table t;
  t.start();
  t.want("a");
  write(t);
  t.unwant("a");
  write(t);
  t.want("a");
  CHECK(write(t) == sub("a"));
  CHECK(t.on_reply(push("subscribe", "a")).what == kind::nothing);
  CHECK_FALSE(t.confirmed("a"));
  CHECK(t.on_reply(push("unsubscribe", "a", replies::integer(0))).what == kind::nothing);
  CHECK_FALSE(t.confirmed("a"));
  CHECK(t.on_reply(push("subscribe", "a")).what == kind::confirmed);
  CHECK(t.confirmed("a"));
}

TEST_CASE("messages of wanted channels are passed on, others ignored") {
  subscription_table t;
  t.start();
  t.want("a");
  write(t);
  t.on_reply(push("subscribe", "a"));
  const auto e = t.on_reply(message("a", "0"));
  CHECK(e.what == kind::message);
  CHECK(e.channel == "a");
  CHECK(e.text == "0");
  CHECK(t.on_reply(message("b", "0")).what == kind::nothing);
  t.unwant("a");
  CHECK(t.on_reply(message("a", "0")).what == kind::nothing);
  write(t);
  CHECK(t.on_reply(message("a", "0")).what == kind::nothing);
  CHECK(t.on_reply(push("unsubscribe", "a", replies::integer(0))).what == kind::nothing);
  CHECK_FALSE(t.oldest_unanswered());
}

TEST_CASE("a refused channel is asked for again when someone new wants it or the connection is new") {
  subscription_table t;
  t.start();
  t.want("a");
  t.want("b");
  write(t);
  const auto e = t.on_reply(replies::error("NOPERM no channel"));
  CHECK(e.what == kind::refused);
  CHECK(e.channel == "a");
  CHECK(e.text == "NOPERM no channel");
  CHECK(t.on_reply(push("subscribe", "b")).what == kind::confirmed);
  CHECK(write(t).empty());
  CHECK_FALSE(t.confirmed("a"));
  t.want("a");
  CHECK(write(t) == sub("a"));
  CHECK(t.on_reply(replies::error("NOPERM no channel")).what == kind::refused);
  t.stop();
  t.start();
  CHECK(write(t) == sub("a") + sub("b"));
  t.on_reply(replies::error("NOPERM no channel"));
  t.unwant("a");
  CHECK(write(t).empty());
}

TEST_CASE("after a loss everything wanted is asked for again and nothing else") {
  subscription_table t;
  t.start();
  for (const auto* c : {"a", "b", "c"}) t.want(c);
  write(t);
  t.on_reply(push("subscribe", "a"));
  t.unwant("b");
  t.stop();
  CHECK_FALSE(t.oldest_unanswered());
  CHECK_FALSE(t.confirmed("a"));
  t.unwant("c");
  t.start();
  CHECK(write(t) == sub("a"));
  CHECK(t.on_reply(push("subscribe", "a")).what == kind::confirmed);
}

TEST_CASE("PING is answered in either form") {
  subscription_table t;
  t.start();
  t.ping();
  CHECK(write(t) == make_command({"PING"}));
  CHECK(t.oldest_unanswered() == start);
  CHECK(t.on_reply(replies::array({replies::string("pong"), replies::string("")})).what == kind::nothing);
  t.ping();
  write(t);
  CHECK(t.on_reply(replies::status("PONG")).what == kind::nothing);
  t.ping();
  write(t);
  CHECK(t.on_reply(replies::error("BUSY")).what == kind::error);
}

TEST_CASE("an answer out of order or to nobody is out of step") {
  subscription_table t;
  t.start();
  CHECK(t.on_reply(push("subscribe", "a")).what == kind::desync);
  t.want("a");
  write(t);
  SECTION("another channel") { CHECK(t.on_reply(push("subscribe", "b")).what == kind::desync); }
  SECTION("another word") { CHECK(t.on_reply(push("unsubscribe", "a")).what == kind::desync); }
  SECTION("a status") { CHECK(t.on_reply(replies::ok()).what == kind::desync); }
  SECTION("too short") {
    CHECK(t.on_reply(replies::array({replies::string("subscribe"), replies::string("a")})).what == kind::desync);
  }
  SECTION("an empty array") { CHECK(t.on_reply(replies::array({})).what == kind::desync); }
  SECTION("a pong") { CHECK(t.on_reply(replies::status("PONG")).what == kind::desync); }
  SECTION("an error that is none of permission") {
    CHECK(t.on_reply(replies::error("BUSY Redis is busy")).what == kind::error);
  }
}

TEST_CASE("a channel is the server's from the question until it is given back or refused or the connection is gone") {
  subscription_table t;
  t.start();
  t.want("a");
  CHECK_FALSE(t.any_asked());
  write(t);
  CHECK(t.any_asked());
  SECTION("given back") {
    t.on_reply(push("subscribe", "a"));
    t.unwant("a");
    write(t);
    CHECK(t.any_asked());
    t.on_reply(push("unsubscribe", "a"));
  }
  SECTION("refused") { t.on_reply(replies::error("NOPERM no channel")); }
  SECTION("gone") { t.stop(); }
  CHECK_FALSE(t.any_asked());
}
