// SPDX-License-Identifier: BSL-1.0
#include "support/fake_topology.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/plain_command.hpp"

using holdfast::errc;
namespace detail = holdfast::detail;
using holdfast::detail::outcome;
using holdfast::test::decode_commands;
using holdfast::test::fake_topology;
using holdfast::test::manual_clock;
using holdfast::test::manual_timers;
using holdfast::test::plain_command;
namespace replies = holdfast::test::replies;
using namespace std::chrono_literals;

namespace {

const std::string get_a = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n";

struct listener : holdfast::detail::subscriber {
  std::vector<std::string> heard;
  void on_subscribed() override { heard.push_back("subscribed"); }
  void on_message(std::string_view payload) override { heard.push_back("message " + std::string(payload)); }
  void on_subscribe_failed(holdfast::error_code error, const std::string& detail) override {
    heard.push_back(error.message() + " " + detail);
  }
};

struct fixture {
  manual_clock clock;
  manual_timers timers{clock};
  fake_topology server{clock, timers};
  std::vector<outcome> answers;

  fixture() {
    timers.on_step = [this] { server.run(); };
  }
  static auto note(std::vector<outcome>& where) {
    return [&where](outcome o) { where.push_back(std::move(o)); };
  }
  void get() { server.execute("a", plain_command(get_a, {.timeout = 1s}, note(answers))); }
  holdfast::redis::ticket get_patiently() {
    return server.execute("a",
                          plain_command(get_a, {.timeout = 1s, .waits_for_reply = true}, note(answers), note(late)));
  }
  std::vector<outcome> late;
};

}  // namespace

TEST_CASE("RESP commands decode to their arguments") {
  const std::vector<std::vector<std::string>> expected{{"GET", "a"}, {"SET", std::string("\0\r\n", 3), ""}};
  CHECK(decode_commands(get_a + std::string("*3\r\n$3\r\nSET\r\n$3\r\n\0\r\n\r\n$0\r\n\r\n", 28)) == expected);
  for (std::size_t length = 1; length < get_a.size(); ++length)
    CHECK_THROWS_AS(decode_commands(get_a.substr(0, length)), std::runtime_error);
  CHECK_THROWS_AS(decode_commands("GET a\r\n"), std::runtime_error);
}

TEST_CASE_METHOD(fixture, "an answer arrives from the pump and only once") {
  get();
  CHECK(server.sent(0).argv == std::vector<std::string>{"GET", "a"});
  CHECK(server.sent(0).line() == "GET a");
  CHECK(server.open() == std::vector<std::size_t>{0});
  server.reply(0, replies::integer(7));
  CHECK(answers.empty());
  CHECK(server.run());
  REQUIRE(answers.size() == 1);
  CHECK_FALSE(answers[0].error);
  CHECK(answers[0].reply.integer == 7);
  CHECK_THROWS_AS(server.reply(0, replies::ok()), std::logic_error);
  timers.advance(1h);
  CHECK(answers.size() == 1);
}

TEST_CASE_METHOD(fixture,
                 "a patient sender is told of its timeout and still gets the answer, with the time of the write") {
  server.link_down();
  get_patiently();
  timers.advance(1s);
  REQUIRE(late.size() == 1);
  CHECK(late[0].error == errc::unreachable);
  const auto written = clock.now();
  server.link_up();
  timers.advance(2s);
  server.reply(0, replies::ok());
  server.run();
  CHECK(late.size() == 1);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].sent == written);
}

TEST_CASE_METHOD(fixture, "what was not written can be withdrawn") {
  CHECK_FALSE(server.withdraw(get_patiently()));
  server.link_down();
  CHECK(server.withdraw(get_patiently()));
  server.link_up();
  timers.advance(5s);
  CHECK(late.empty());
  CHECK(answers.size() == 1);  // the first was lost
}

TEST_CASE_METHOD(fixture, "a server without an answer for its patience does not answer") {
  CHECK(server.answering("a"));
  get();
  timers.advance(499ms);
  CHECK(server.answering("a"));
  timers.advance(1ms);
  CHECK_FALSE(server.answering("a"));
  server.reply(0, replies::ok());
  CHECK(server.answering("a"));
  server.link_down();
  CHECK_FALSE(server.answering("a"));
}

TEST_CASE_METHOD(fixture, "a silent server leaves a command unconfirmed at its timeout") {
  get();
  timers.advance(999ms);
  CHECK(answers.empty());
  timers.advance(1ms);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].error == errc::unconfirmed);
}

TEST_CASE_METHOD(fixture, "a script can answer and its keys and arguments are told apart") {
  server.on_command = [](const fake_topology::command& c) -> std::optional<holdfast::redis::reply> {
    if (c.keys() == std::vector<std::string>{"k"} && c.arguments() == std::vector<std::string>{"x", "y"})
      return replies::ok();
    return std::nullopt;
  };
  const std::string call = "*6\r\n$7\r\nEVALSHA\r\n$3\r\nabc\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\nx\r\n$1\r\ny\r\n";
  server.execute("k", plain_command(call, {.timeout = 1s}, note(answers)));
  CHECK(answers.empty());
  server.run();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].reply.text == "OK");
}

TEST_CASE_METHOD(fixture, "a link that goes down leaves written commands unconfirmed and keeps others unwritten") {
  std::vector<bool> changes;
  server.on_link_change([&](auto, bool up) { changes.push_back(up); });
  get();
  server.link_down();
  get();
  server.run();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].error == errc::unconfirmed);
  CHECK_THROWS_AS(server.reply(1, replies::ok()), std::logic_error);
  timers.advance(1s);
  REQUIRE(answers.size() == 2);
  CHECK(answers[1].error == errc::unreachable);
  get();
  server.link_up();
  server.reply_last(replies::nil());
  server.run();
  REQUIRE(answers.size() == 3);
  CHECK_FALSE(answers[2].error);
  CHECK(changes == std::vector<bool>{false, true});
}

TEST_CASE_METHOD(fixture, "a subscriber hears the acknowledgement and messages while it keeps its subscription") {
  listener who;
  auto kept = server.subscribe("c", who);
  CHECK(server.push("c", "early") == 0);
  server.acknowledge("c");
  CHECK(who.heard.empty());
  CHECK(server.push("c", "0") == 1);
  server.run();
  CHECK(who.heard == std::vector<std::string>{"subscribed", "message 0"});
  CHECK_THROWS_AS(server.acknowledge("c"), std::logic_error);

  server.link_down();
  CHECK(server.push("c", "0") == 0);
  server.link_up();
  server.acknowledge("c");
  server.push("c", "1");
  kept.reset();
  server.run();
  CHECK(who.heard.size() == 2);
  CHECK(server.subscribers("c") == 0);
  CHECK(server.subscribe_calls("c") == 1);
}

TEST_CASE_METHOD(fixture, "a refused subscriber hears why") {
  listener who;
  const auto kept = server.subscribe("c", who);
  server.refuse("c", errc::no_permission, "channel c");
  server.run();
  CHECK(who.heard == std::vector<std::string>{"permission denied by Redis channel c"});
}

TEST_CASE_METHOD(fixture, "nodes have links of their own") {
  server.place("b", 1);
  CHECK(server.node_of("a") == 0);
  CHECK(server.node_of("b") == 1);
  std::vector<std::pair<detail::node_id, bool>> changes;
  server.on_link_change([&](detail::node_id node, bool up) { changes.emplace_back(node, up); });
  server.link_down(1);
  server.run();
  CHECK(changes == std::vector{std::pair<detail::node_id, bool>(1, false)});
  CHECK(server.answering("a"));
  CHECK_FALSE(server.answering("b"));
  get();
  CHECK(server.last().written);
  server.execute("b", plain_command(get_a, {.timeout = 1s}, note(answers)));
  CHECK_FALSE(server.last().written);
  server.link_up(1);
  CHECK(server.last().written);
  server.run();
  CHECK(changes.back() == std::pair<detail::node_id, bool>(1, true));
}
