// SPDX-License-Identifier: BSL-1.0
// Changes that several primaries push, each by itself.
#include "unit/sync/quorum_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct pushing_primaries : quorum_fixture {
  pushing_primaries() : quorum_fixture({.push = push_mode::automatic}) {
    for (auto* one : at) one->pushing = true;
  }
  void taken_elsewhere() {
    for (const auto& one : nodes) one->hold("a", "other:1", clock.now() + 1min);
  }
  /// Another program deletes it at these primaries, and they push that.
  void delete_at(std::initializer_list<std::size_t> primaries) {
    for (const auto n : primaries) {
      nodes[n]->command({"DEL", "a"});
      at[n]->change("a");
    }
    run();
  }
  std::size_t sent() const {
    std::size_t all = 0;
    for (const auto* one : at) all += one->count();
    return all;
  }
  /// A vote takes a millisecond, and so does the patience with messages of a minority.
  void answer_slowly() {
    for (int round = 0; round < 2; ++round) {
      advance(1ms);
      answer_all();
    }
  }
};

}  // namespace

TEST_CASE_METHOD(pushing_primaries, "a waiter for a red_lock is notified of a release at a majority") {
  taken_elsewhere();
  const auto waiting = lock("a");
  answer_all();
  REQUIRE(waiting.waits());
  for (const auto* one : at) CHECK(one->last().track);
  delete_at({0, 1, 2});
  answer_all();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(pushing_primaries, "a renewal of a red_lock at all primaries costs each waiter one attempt") {
  taken_elsewhere();
  const auto waiting = lock("a");
  answer_slowly();
  for (int renewals = 0; renewals < 3; ++renewals) {
    const auto before = sent();
    for (const auto& one : nodes) one->command({"PEXPIRE", "a", "60000"});
    for (auto* one : at) one->change("a");
    run();
    answer_slowly();
    answer_slowly();
    CHECK(sent() == before + primaries);
  }
  CHECK(waiting.waits());
}

TEST_CASE_METHOD(pushing_primaries, "a red_lock that nobody else has asks for no push") {
  const auto held = granted("a");
  unlock(held);
  answer_all();
  for (const auto* one : at) {
    CHECK(one->pushes_wanted == 0);
    for (std::size_t n = 0; n < one->count(); ++n) CHECK_FALSE(one->sent(n).track);
  }
}

TEST_CASE_METHOD(pushing_primaries, "a waiter for a red_lock is woken when a majority has pushed a change, once") {
  taken_elsewhere();
  const auto waiting = lock("a");
  answer_slowly();
  const auto before = sent();
  delete_at({0});
  delete_at({1});
  CHECK(sent() == before);
  delete_at({2});
  CHECK(sent() == before + primaries);
  delete_at({3, 4});
  for (std::size_t n = 0; n < primaries; ++n) publish(n, "a");  // the same release
  answer_all();
  CHECK(waiting.granted());
  CHECK(sent() == before + primaries);
}

TEST_CASE_METHOD(pushing_primaries, "a change during an attempt for a red_lock causes one more") {
  taken_elsewhere();
  const auto waiting = lock("a");
  answer_slowly();
  for (const auto n : {0, 1, 2}) at[n]->change("a");
  run();
  const auto before = sent();
  REQUIRE_FALSE(at[0]->open().empty());
  for (const auto n : {0, 1, 2}) at[n]->change("a");
  run();
  advance(2ms);
  answer_all();
  CHECK(sent() == before + primaries);
}

TEST_CASE_METHOD(pushing_primaries,
                 "a waiter beside a holder that lacks a primary asks seldom, whatever changes there") {
  for (std::size_t n = 0; n < primaries - 1; ++n) nodes[n]->hold("a", "other:1", clock.now() + 1min);
  const auto waiting = lock("a");
  answer_slowly();
  const auto attempts = [this] {
    std::size_t all = 0;
    for (std::size_t n = 0; n < at[0]->count(); ++n) all += at[0]->sent(n).argv[0].starts_with("EVAL");
    return all;
  };
  const auto before = attempts();
  for (int ms = 0; ms < 1000; ++ms) {
    // Another waiter has got this vote and given it back.
    at.back()->change("a");
    publish(primaries - 1, "a");
    advance(1ms);
    answer_all();
  }
  CHECK(waiting.waits());
  CHECK(attempts() - before <= 30);
}

TEST_CASE_METHOD(pushing_primaries, "a red_lock that too few primaries track is waited for as before") {
  for (std::size_t n = 0; n < 3; ++n) at[n]->pushing = false;
  taken_elsewhere();
  const auto waiting = lock("a");
  answer_all();
  const auto before = sent();
  at[3]->forget_pushes();
  run();
  advance(5ms);
  CHECK(sent() == before);  // nothing was promised
  CHECK(waiting.waits());
}

TEST_CASE_METHOD(pushing_primaries, "the holder of a red_lock is told that a majority has deleted it") {
  const auto held = granted("a");
  advance(settings.ttl / 3);
  answer_all();
  for (const auto* one : at) CHECK(one->last().line() == "EXISTS a");
  advance(1s);
  answer_all();
  delete_at({0, 1, 2});
  advance(0ms);
  answer_all();
  CHECK(state(held) == lease_state::lost);
}

TEST_CASE_METHOD(pushing_primaries, "a change at one primary is confirmed there alone") {
  const auto held = granted("a");
  advance(settings.ttl / 3);
  answer_all();
  advance(1s);
  answer_all();
  const auto before = sent();
  delete_at({4});
  advance(0ms);
  CHECK(sent() == before + 1);
  answer_all();
  CHECK(state(held) == lease_state::held);
}
