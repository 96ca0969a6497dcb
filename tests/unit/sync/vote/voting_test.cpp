// SPDX-License-Identifier: BSL-1.0
#include "sync/vote/voting.hpp"

#include "unit/sync/quorum_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct voting_fixture : quorum_fixture {
  std::string marker(std::size_t n) { return nodes[n]->command({"GET", "holdfast:redlock"}).text; }
  void forget(std::size_t n) { nodes[n]->command({"FLUSHALL"}); }
  /// An attempt, and all that follows from it.
  bool try_for(const std::string& name) {
    const auto c = try_lock(name);
    answer_all();
    advance(1ms);
    answer_all();
    if (c.granted()) {
      unlock(c);
      answer_all();
      return true;
    }
    CHECK(c.failed_with(errc::quorum_failed));
    return false;
  }
};

}  // namespace

// 1 % of 60 s and 2 ms are the drift of the clocks.
TEST_CASE_METHOD(voting_fixture,
                 "a primary without its marker has no vote until the longest TTL and the drift are over") {
  for (const std::size_t n : {0, 1, 2}) forget(n);
  CHECK_FALSE(try_for("a"));
  CHECK(heard().find("vote_withheld") != std::string::npos);
  CHECK(marker(0).starts_with("run0 60000 "));
  advance(60s + 500ms);
  CHECK_FALSE(try_for("a"));
  CHECK(marker(0) != "run0 60000");
  advance(102ms);
  CHECK_FALSE(try_for("a"));  // it ends the wait
  CHECK(marker(0) == "run0 60000");
  CHECK(try_for("a"));
}

TEST_CASE_METHOD(voting_fixture, "a wait whose marker was touched begins anew") {
  for (const std::size_t n : {0, 1, 2}) forget(n);
  CHECK_FALSE(try_for("a"));
  advance(59s);
  for (const std::size_t n : {0, 1, 2}) forget(n);
  advance(2s);
  CHECK_FALSE(try_for("a"));
  CHECK_FALSE(try_for("a"));
  CHECK(marker(0) != "run0 60000");
  advance(61s);
  CHECK_FALSE(try_for("a"));
  CHECK(try_for("a"));
}

TEST_CASE_METHOD(voting_fixture, "a wait begins anew with a new connection") {
  for (const std::size_t n : {0, 1, 2}) forget(n);
  CHECK_FALSE(try_for("a"));
  advance(59s);
  for (const std::size_t n : {0, 1, 2}) {
    at[n]->link_down();
    run();
    at[n]->link_up();
    run();
  }
  CHECK_FALSE(try_for("a"));
  advance(2s);
  CHECK_FALSE(try_for("a"));
  CHECK_FALSE(try_for("a"));
}

TEST_CASE_METHOD(voting_fixture, "a primary whose run is another than its marker's has no vote") {
  for (const std::size_t n : {0, 1, 2}) at[n]->run_ids = {"later" + std::to_string(n)};
  CHECK_FALSE(try_for("a"));
  CHECK(where("a").empty());
  CHECK(marker(1).starts_with("later1 60000 "));
}

TEST_CASE_METHOD(voting_fixture, "who waits for a vote says for how long in the text of a failure") {
  for (const std::size_t n : {0, 1, 2}) forget(n);
  CHECK_FALSE(try_for("a"));
  advance(20s);
  const auto c = try_lock("a");
  answer_all();
  REQUIRE(c.failed_with(errc::quorum_failed));
  CHECK(c.detail().find("node1: it has no vote for another 41 s") != std::string::npos);
}

TEST_CASE_METHOD(voting_fixture, "two primaries of one run are one server, and no vote counts") {
  at[1]->run_ids = {"run0"};
  at[1]->link_down();
  run();
  at[1]->link_up();
  run();
  const auto c = try_lock("a");
  answer_all();
  REQUIRE(c.failed_with(errc::invalid_config));
  CHECK(c.detail().find("node0 and node1 are one server") != std::string::npos);
  answer_all();
  CHECK(where("a").empty());
}

TEST_CASE_METHOD(voting_fixture, "an installation is founded on every primary or on none") {
  const auto found = [this] {
    verb_call v;
    locks->initialise_votes([v](const std::optional<detail::failure>& failed) { v.answer(failed); });
    answer_all();
    advance(1s);
    answer_all();
    return v;
  };
  CHECK(found().failed_with(errc::invalid_config));
  for (std::size_t n = 0; n < primaries; ++n) forget(n);
  at[3]->link_down();
  CHECK(found().failed_with(errc::quorum_failed));
  CHECK(where("holdfast:redlock").empty());
  at[3]->link_up();
  CHECK(found().succeeded());
  CHECK(where("holdfast:redlock") == "ABCDE");
  CHECK(try_for("a"));
}

TEST_CASE_METHOD(voting_fixture, "who founds an installation is told once which primary has failed") {
  verb_call v;
  locks->initialise_votes([v](const std::optional<detail::failure>& failed) { v.answer(failed); });
  at[3]->fail(at[3]->open().at(0), errc::unreachable, "node3: no answer in time");
  answer_all();
  REQUIRE(v.failed_with(errc::quorum_failed));
  CHECK(v.detail() == "node3: no answer in time");
}

TEST_CASE_METHOD(voting_fixture, "clients that disagree about the longest TTL are told so, with both values") {
  for (const std::size_t n : {0, 1, 2})
    nodes[n]->command({"SET", "holdfast:redlock", "run" + std::to_string(n) + " 90000"});
  CHECK_FALSE(try_for("a"));
  const auto c = try_lock("a");
  answer_all();
  REQUIRE(c.failed_with(errc::invalid_config));
  CHECK(c.detail().find("its marker is 'run0 90000', and this client's red_lock.longest_ttl 60000") !=
        std::string::npos);
  advance(2s);
  for (const std::size_t n : {0, 1, 2}) vote(n);
  CHECK(try_for("a"));
}

TEST_CASE_METHOD(voting_fixture, "a client with which the primaries disagree makes none of them wait") {
  for (const std::size_t n : {0, 1, 2, 3})
    nodes[n]->command({"SET", "holdfast:redlock", "run" + std::to_string(n) + " 90000"});
  forget(4);
  for (int i = 0; i < 5; ++i) {
    const auto c = try_lock("a");
    for (const std::size_t n : {4, 3, 2, 1, 0}) answer({n});
    CHECK_FALSE(c.waits());
    advance(500ms);
  }
  CHECK(marker(4).empty());
}

TEST_CASE_METHOD(voting_fixture, "an emptied majority does not wait for a client with which the others disagree") {
  for (const std::size_t n : {3, 4})
    nodes[n]->command({"SET", "holdfast:redlock", "run" + std::to_string(n) + " 90000"});
  for (const std::size_t n : {0, 1, 2}) forget(n);
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(try_for("a"));
    advance(700ms);
  }
  CHECK(where("holdfast:redlock") == "DE");
}

TEST_CASE_METHOD(voting_fixture, "a primary with the marker of another installation keeps no other from its vote") {
  nodes[4]->command({"SET", "holdfast:redlock", "run4 90000"});
  forget(3);
  CHECK(try_for("a"));
  CHECK(marker(3).starts_with("run3 60000 "));
}

TEST_CASE_METHOD(voting_fixture, "a primary that refuses whatever it is asked keeps no other from its vote") {
  forget(3);
  const auto c = lock("a");
  at[4]->reply_last(replies::error("MISCONF it cannot save"));
  answer({0, 1, 2, 3});
  CHECK(c.granted());
  CHECK(marker(3).starts_with("run3 60000 "));
}

TEST_CASE_METHOD(voting_fixture, "a primary whose answer comes after a majority's begins its wait all the same") {
  forget(4);
  const auto c = lock("a");
  answer({0, 1, 2});
  REQUIRE(c.granted());
  answer({3, 4});
  CHECK(marker(4).starts_with("run4 60000 "));
  CHECK(where("a") == "ABCD");
  CHECK(c.value()->of->on->may_be_at() == 0b01111);
}

TEST_CASE_METHOD(voting_fixture, "where nobody may change the marker that is told, and tried again after a second") {
  for (const std::size_t n : {0, 1, 2}) {
    forget(n);
    at[n]->on_command = [](const fake_topology::command& c) -> std::optional<redis::reply> {
      if (c.key != "holdfast:redlock" || c.argv[0] == "GET") return std::nullopt;
      return replies::error("NOPERM this user has no permissions to run the 'set' command");
    };
  }
  CHECK_FALSE(try_for("a"));
  const auto c = try_lock("a");
  answer_all();
  REQUIRE(c.failed_with(errc::no_permission));
  CHECK(c.detail().find("node1: it was to be given a vote: NOPERM this user") != std::string::npos);
  for (const std::size_t n : {0, 1, 2}) at[n]->on_command = {};
  advance(1s);
  CHECK_FALSE(try_for("a"));
  CHECK(marker(0).starts_with("run0 60000 "));
}

TEST_CASE_METHOD(voting_fixture, "a primary that is the first to be heard waits when a majority is") {
  for (const std::size_t n : {0, 1, 2, 3, 4}) forget(n);
  const auto c = try_lock("a");
  answer({0, 1});
  CHECK(marker(0).empty());
  answer({2});
  answer_all();
  for (const std::size_t n : {0, 1, 2, 3, 4}) CHECK(marker(n).starts_with("run" + std::to_string(n) + " 60000 "));
  CHECK_FALSE(c.waits());
}
