// SPDX-License-Identifier: BSL-1.0
// One budget: what a call promises to take at most, over all commands that it sends and the connection that it needs.
#include <utility>

#include "unit/sync/engine_fixture.hpp"
#include "unit/sync/quorum_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr auto* unknown_script = "NOSCRIPT No matching script. Please use EVAL.";

struct budget : engine_fixture {
  /// The connection takes 400 ms, and the server does not know the script after 60 more.
  void spend_most_of_it() {
    advance(400ms);
    link_up();
    advance(60ms);
    errs(unknown_script);
    REQUIRE(unanswered().argv[0] == "EVAL");
    advance(40ms - 1ns);
  }
  /// `call` begins without a connection.
  template <class Call>
  void check_takes_a_command_timeout(Call call) {
    link_down();
    const auto c = call();
    spend_most_of_it();
    CHECK(c.waits());
    advance(1ns);
    CHECK(c.failed_with(errc::unreachable));
  }
};

}  // namespace

TEST_CASE_METHOD(budget, "a try_lock() takes a command timeout, connection and a script that is sent anew included") {
  SECTION("of one lock") {
    check_takes_a_command_timeout([&] { return try_lock("a"); });
  }
  SECTION("of any of several") {
    check_takes_a_command_timeout([&] { return try_lock_any({"a", "b"}); });
  }
  SECTION("of all of several") {
    check_takes_a_command_timeout([&] { return try_lock_all({"a", "b"}); });
  }
  SECTION("that re-enters") {
    const owner alice;
    const auto outer = hold("a", by(alice));
    const auto c = try_lock("a", by(alice, {.ttl = 1min}));
    advance(400ms);
    errs(unknown_script);
    CHECK(unanswered().timeout == 100ms);
    advance(100ms);
    CHECK(c.failed_with(errc::unreachable));
  }
}

TEST_CASE_METHOD(budget, "a question and a force_unlock() take a command timeout for all that they send") {
  SECTION("force_unlock()") {
    check_takes_a_command_timeout([&] { return force_unlock("a"); });
  }
  SECTION("a question") {
    link_down();
    verb_call asked;
    locks->ask().is_locked(keys("a"), [asked](const auto& answer) { asked.answer(answer.failed, answer.value); });
    advance(400ms);
    link_up();
    advance(100ms - 1ns);
    CHECK(asked.waits());
    advance(1ns);
    CHECK(asked.failed_with(errc::unreachable));
  }
}

TEST_CASE_METHOD(budget, "a renew() takes a command timeout for all that it sends") {
  const auto a = hold("a");
  link_down();
  const auto c = renew(a);
  advance(400ms);
  link_up();
  advance(100ms - 1ns);
  CHECK(c.waits());
  advance(1ns);
  CHECK(c.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(budget, "a second copy of a question has what the first one and its connection have left") {
  link_down();
  const auto c = force_unlock("a");
  advance(300ms);
  link_up();
  advance(100ms);
  fails(errc::unconfirmed);
  REQUIRE(in_flight() == 1);
  CHECK(unanswered().timeout == 100ms);
  advance(100ms);
  CHECK(c.failed_with(errc::unreachable));
  CHECK(in_flight() == 0);
}

TEST_CASE_METHOD(budget, "an unlock() takes a command timeout, a connection and a script that is sent anew included") {
  const auto a = hold("a");
  link_down();
  const auto u = unlock(a);
  SECTION("a script that is not known") { spend_most_of_it(); }
  SECTION("a connection that ends") {
    advance(300ms);
    link_up();
    advance(150ms);
    link_down();
    advance(50ms - 1ns);
  }
  CHECK(u.waits());
  advance(1ns);
  CHECK(u.failed_with(errc::unconfirmed));
}

TEST_CASE_METHOD(quorum_fixture, "a vote by text has what its digest has left of the time") {
  const auto known = granted("b");  // by text
  const auto c = try_lock("a");
  advance(400ms);
  for (auto* one : at) one->reply(one->open().at(0), replies::error(unknown_script));
  run();
  CHECK(at[0]->last().timeout == 100ms);
  advance(100ms);
  CHECK(c.failed_with(errc::quorum_failed));
}

// ---- silence is no contention, of several primaries either

TEST_CASE_METHOD(quorum_fixture, "a bounded wait that no majority has answered has no quorum, however short it is") {
  const auto c = try_lock_for("a", 50ms);
  SECTION("none has") {}
  SECTION("two of five have") { answer({0, 1}); }
  advance(50ms);
  CHECK(c.failed_with(errc::quorum_failed));
  CHECK(c.detail().find("node2: no answer yet") != std::string::npos);
}

TEST_CASE_METHOD(quorum_fixture, "a bounded wait is contention where a majority has answered others since") {
  const auto c = try_lock_for("a", 50ms);
  std::vector<std::size_t> votes;
  for (auto* one : at) votes.push_back(one->open().at(0));
  const auto other = lock("b");
  advance(10ms);
  for (std::size_t n = 0; n < 3; ++n) at[n]->reply(votes[n] + 1, nodes[n]->run(at[n]->sent(votes[n] + 1)));
  run();
  REQUIRE(other.granted());
  advance(40ms);
  CHECK(c.refused());
}
