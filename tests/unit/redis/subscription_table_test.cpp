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
  CHECK(e.type == kind::confirmed);
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
  CHECK(t.on_reply(push("subscribe", "a")).type == kind::nothing);
  CHECK_FALSE(t.confirmed("a"));
  CHECK(t.on_reply(push("unsubscribe", "a", replies::integer(0))).type == kind::nothing);
  CHECK_FALSE(t.confirmed("a"));
  CHECK(t.on_reply(push("subscribe", "a")).type == kind::confirmed);
  CHECK(t.confirmed("a"));
}

TEST_CASE("messages of wanted channels are passed on, others ignored") {
  subscription_table t;
  t.start();
  t.want("a");
  write(t);
  t.on_reply(push("subscribe", "a"));
  const auto e = t.on_reply(message("a", "0"));
  CHECK(e.type == kind::message);
  CHECK(e.channel == "a");
  CHECK(e.text == "0");
  CHECK(t.on_reply(message("b", "0")).type == kind::nothing);
  t.unwant("a");
  CHECK(t.on_reply(message("a", "0")).type == kind::nothing);
  write(t);
  CHECK(t.on_reply(message("a", "0")).type == kind::nothing);
  CHECK(t.on_reply(push("unsubscribe", "a", replies::integer(0))).type == kind::nothing);
  CHECK_FALSE(t.oldest_unanswered());
}

TEST_CASE("a refused channel is asked for again when someone new wants it or the connection is new") {
  subscription_table t;
  t.start();
  t.want("a");
  t.want("b");
  write(t);
  const auto e = t.on_reply(replies::error("NOPERM no channel"));
  CHECK(e.type == kind::refused);
  CHECK(e.channel == "a");
  CHECK(e.text == "NOPERM no channel");
  CHECK(t.on_reply(push("subscribe", "b")).type == kind::confirmed);
  CHECK(write(t).empty());
  CHECK_FALSE(t.confirmed("a"));
  t.want("a");
  CHECK(write(t) == sub("a"));
  CHECK(t.on_reply(replies::error("NOPERM no channel")).type == kind::refused);
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
  CHECK(t.on_reply(push("subscribe", "a")).type == kind::confirmed);
}

TEST_CASE("PING is answered in either form") {
  subscription_table t;
  t.start();
  t.ping();
  CHECK(write(t) == make_command({"PING"}));
  CHECK(t.oldest_unanswered() == start);
  CHECK(t.on_reply(replies::array({replies::string("pong"), replies::string("")})).type == kind::nothing);
  t.ping();
  write(t);
  CHECK(t.on_reply(replies::status("PONG")).type == kind::nothing);
  t.ping();
  write(t);
  CHECK(t.on_reply(replies::error("BUSY")).type == kind::nothing);  // it is alive
}

TEST_CASE("an answer out of order or to nobody is out of step") {
  subscription_table t;
  t.start();
  CHECK(t.on_reply(push("subscribe", "a")).type == kind::desync);
  t.want("a");
  write(t);
  SECTION("another channel") { CHECK(t.on_reply(push("subscribe", "b")).type == kind::desync); }
  SECTION("another word") { CHECK(t.on_reply(push("unsubscribe", "a")).type == kind::desync); }
  SECTION("a status") { CHECK(t.on_reply(replies::ok()).type == kind::desync); }
  SECTION("too short") {
    CHECK(t.on_reply(replies::array({replies::string("subscribe"), replies::string("a")})).type == kind::desync);
  }
  SECTION("an empty array") { CHECK(t.on_reply(replies::array({})).type == kind::desync); }
  SECTION("a pong") { CHECK(t.on_reply(replies::status("PONG")).type == kind::desync); }
}

TEST_CASE("a channel that is refused in any other words than an ACL's is unavailable until it is asked for again") {
  subscription_table t;
  t.start();
  t.want("a");
  t.want("b");
  CHECK(write(t) == sub("a") + sub("b"));
  CHECK(t.any_unanswered());
  const auto refused = t.on_reply(replies::error("BUSY Redis is busy"));
  CHECK(refused.type == kind::unavailable);
  CHECK(refused.channel == "a");
  CHECK(refused.text == "BUSY Redis is busy");
  CHECK(t.on_reply(push("subscribe", "b")).type == kind::confirmed);
  CHECK_FALSE(t.any_unanswered());
  CHECK_FALSE(t.confirmed("a"));
  CHECK(write(t).empty());
  if (GENERATE(false, true))
    t.ask_again();  // by its owner
  else
    t.want("a");  // by somebody new
  CHECK(write(t) == sub("a"));
  SECTION("granted then") { CHECK(t.on_reply(push("subscribe", "a")).type == kind::confirmed); }
  SECTION("nobody wants it any more") {
    t.unwant("a");
    CHECK(t.on_reply(replies::error("BUSY Redis is busy")).type == kind::nothing);
    t.ask_again();
    CHECK(write(t).empty());
  }
}

TEST_CASE("an error in answer to UNSUBSCRIBE is one of the connection") {
  subscription_table t;
  t.start();
  t.want("a");
  write(t);
  t.on_reply(push("subscribe", "a"));
  t.unwant("a");
  write(t);
  CHECK(t.on_reply(replies::error("ERR unknown command")).type == kind::error);
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

namespace {

std::string ssub(std::string_view channel) { return make_command({"SSUBSCRIBE", channel}); }
std::string sunsub(std::string_view channel) { return make_command({"SUNSUBSCRIBE", channel}); }

/// With sharded channels, which were asked for and acknowledged.
subscription_table with_shards(std::initializer_list<std::string_view> channels) {
  subscription_table t;
  t.start(redis::channel_kind::sharded);
  for (const auto c : channels) t.want(c);
  write(t);
  for (const auto c : channels) t.on_reply(push("ssubscribe", std::string(c)));
  return t;
}

}  // namespace

TEST_CASE("sharded channels have words of their own") {
  auto t = with_shards({});
  t.want("a");
  CHECK(write(t) == ssub("a"));
  CHECK(t.on_reply(push("ssubscribe", "a")).type == kind::confirmed);
  CHECK(t.on_reply(push("smessage", "a", replies::string("0"))).type == kind::message);
  t.unwant("a");
  CHECK(write(t) == sunsub("a"));
  CHECK(t.on_reply(push("sunsubscribe", "a")).type == kind::nothing);
  CHECK_FALSE(t.busy());
  SECTION("another's message is no message") { CHECK(t.on_reply(message("a", "0")).type == kind::desync); }
  SECTION("an acknowledgement that nobody asked for") {
    CHECK(t.on_reply(push("ssubscribe", "a")).type == kind::desync);
  }
  SECTION("a new connection has the words that it is given") {
    t.want("a");
    t.stop();
    t.start();
    CHECK(write(t) == sub("a"));
  }
}

TEST_CASE("a sunsubscribe that nobody asked for says that the channel has moved") {
  auto t = with_shards({"a", "b"});
  const auto e = t.on_reply(push("sunsubscribe", "a"));
  CHECK(e.type == kind::moved);
  CHECK(e.channel == "a");
  CHECK(e.text.empty());
  CHECK_FALSE(t.confirmed("a"));
  CHECK(t.confirmed("b"));
  SECTION("it is asked for again when someone new wants it") {
    CHECK(write(t).empty());
    t.want("a");
    CHECK(write(t) == ssub("a"));
    CHECK(t.on_reply(push("ssubscribe", "a")).type == kind::confirmed);
  }
  SECTION("or on a new connection") {
    t.stop();
    t.start(redis::channel_kind::sharded);
    CHECK(write(t) == ssub("a") + ssub("b"));
  }
  SECTION("it is not given back where it is not") {
    t.unwant("a");
    CHECK(write(t).empty());
    CHECK_FALSE(t.busy());
  }
}

TEST_CASE("a sunsubscribe that nobody asked for is no answer to what is outstanding") {
  auto t = with_shards({"a"});
  SECTION("to PING, which is a status after the last channel") {
    t.ping();
    write(t);
    CHECK(t.on_reply(push("sunsubscribe", "a")).type == kind::moved);
    CHECK(t.on_reply(replies::status("PONG")).type == kind::nothing);
  }
  SECTION("to another channel's command") {
    t.want("b");
    write(t);
    CHECK(t.on_reply(push("sunsubscribe", "a")).type == kind::moved);
    CHECK(t.on_reply(push("ssubscribe", "b")).type == kind::confirmed);
  }
  CHECK_FALSE(t.oldest_unanswered());
}

TEST_CASE("a sunsubscribe of a channel that nobody wants is ignored") {
  auto t = with_shards({"a"});
  CHECK(t.on_reply(push("sunsubscribe", "unknown")).type == kind::nothing);
  t.unwant("a");
  CHECK(t.on_reply(push("sunsubscribe", "a")).type == kind::nothing);
  CHECK(write(t).empty());
  CHECK_FALSE(t.any_asked());
}

TEST_CASE("of a sunsubscribe and the answer to SUNSUBSCRIBE either may be the one too many") {
  auto t = with_shards({"a"});
  t.unwant("a");
  write(t);
  CHECK(t.on_reply(push("sunsubscribe", "a")).type == kind::nothing);
  CHECK_FALSE(t.busy());
  SECTION("and nobody wants it") { CHECK(t.on_reply(push("sunsubscribe", "a")).type == kind::nothing); }
  SECTION("and it is to be asked for again") {
    t.want("a");
    CHECK(t.on_reply(push("sunsubscribe", "a")).type == kind::nothing);
    CHECK(write(t) == ssub("a"));
  }
  SECTION("and it has been asked for again") {
    t.want("a");
    write(t);
    CHECK(t.on_reply(push("sunsubscribe", "a")).type == kind::nothing);
    CHECK(t.on_reply(push("ssubscribe", "a")).type == kind::confirmed);
    CHECK(t.on_reply(push("sunsubscribe", "a")).type == kind::moved);
  }
}

TEST_CASE(
    "SSUBSCRIBE where the slot is not, or is not to be had at present, moves the channel and not the connection") {
  auto t = with_shards({});
  const std::string words = GENERATE("MOVED 15495 127.0.0.1:7001", "CLUSTERDOWN The cluster is down",
                                     "TRYAGAIN Multiple keys request during rehashing of slot");
  t.want("a");
  t.want("b");
  write(t);
  const auto e = t.on_reply(replies::error(words));
  CHECK(e.type == kind::moved);
  CHECK(e.channel == "a");
  CHECK(e.text == words);
  CHECK(t.on_reply(push("ssubscribe", "b")).type == kind::confirmed);
  CHECK(write(t).empty());
  SECTION("a later answer counts") {
    t.want("a");
    write(t);
    t.unwant("a");
    write(t);
    t.want("a");
    write(t);
    CHECK(t.on_reply(replies::error(words)).type == kind::nothing);
    CHECK(t.on_reply(replies::error(words)).type == kind::nothing);  // to SUNSUBSCRIBE
    CHECK(t.on_reply(push("ssubscribe", "a")).type == kind::confirmed);
  }
  SECTION("nobody wants it any more") {
    t.unwant("a");
    CHECK(write(t).empty());
    t.want("c");
    write(t);
    t.unwant("c");
    CHECK(t.on_reply(replies::error(words)).type == kind::nothing);
    CHECK(write(t).empty());
  }
}

TEST_CASE("of sharded channels a refusal is a refusal, and a redirect of a classic one is no redirect") {
  auto t = with_shards({});
  t.want("a");
  write(t);
  SECTION("refused") { CHECK(t.on_reply(replies::error("NOPERM no channel")).type == kind::refused); }
  SECTION("other words") { CHECK(t.on_reply(replies::error("ERR unknown command")).type == kind::unavailable); }
  SECTION("classic") {
    t.stop();
    t.start();
    write(t);
    CHECK(t.on_reply(replies::error("MOVED 15495 127.0.0.1:7001")).type == kind::unavailable);
  }
}

TEST_CASE("the channel of pushed keys is a classic one among sharded channels too") {
  const auto of = GENERATE(redis::channel_kind::classic, redis::channel_kind::sharded);
  const std::string word = of == redis::channel_kind::sharded ? "ssubscribe" : "subscribe";
  subscription_table t;
  t.want("c");
  t.want(redis::push_channel);
  t.start(of);
  CHECK(write(t) == sub(redis::push_channel) + make_command({redis::subscribe_word(of), "c"}));
  CHECK(t.on_reply(push("subscribe", "__redis__:invalidate")).channel == redis::push_channel);
  CHECK(t.on_reply(push(word, "c")).type == kind::confirmed);
  const auto keys = replies::array({replies::string("a"), replies::string("b")});
  auto e = t.on_reply(push("message", "__redis__:invalidate", keys));
  CHECK(e.type == kind::changed);
  CHECK(e.keys == std::vector<std::string>{"a", "b"});
  e = t.on_reply(push("message", "__redis__:invalidate", replies::nil()));
  CHECK(e.type == kind::changed);
  CHECK(e.keys.empty());
  t.unwant(redis::push_channel);
  CHECK(write(t) == unsub(redis::push_channel));
  CHECK(t.on_reply(push("message", "__redis__:invalidate", keys)).type == kind::nothing);
  CHECK(t.on_reply(push("unsubscribe", "__redis__:invalidate")).type == kind::nothing);
}
