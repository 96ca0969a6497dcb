// SPDX-License-Identifier: BSL-1.0
// A red_lock that is passed on, and what its primaries tell of the turns of others.
#include "unit/sync/quorum_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE_METHOD(quorum_fixture, "a red_lock is passed on where a majority has it, and renewed there") {
  const auto first = granted("a");
  const auto second = lock("a");
  answer_all();
  const auto commands = [this] {
    std::size_t all = 0;
    for (const auto* one : at) all += one->count();
    return all;
  };
  const auto before = commands();
  CHECK(unlock(first).succeeded());
  REQUIRE(second.granted());
  CHECK(commands() == before);
  CHECK(second.value()->of->state() == lease_state::held);
  CHECK(where("a") == "ABCDE");
  const auto until = second.value()->of->valid_until();
  advance(10s);
  answer_all();
  CHECK(second.value()->of->valid_until() > until);
  unlock(second);
  answer_all();
  CHECK(where("a") == "");
}

TEST_CASE_METHOD(quorum_fixture, "a red_lock that a minority has not is renewed there after a pass as well") {
  const auto first = lock("a");
  answer({0, 1, 2});
  REQUIRE(first.granted());
  const auto second = lock("a");
  unlock(first);
  REQUIRE(second.granted());
  answer({3, 4});
  CHECK(where("a") == "ABCDE");
  unlock(second);
  answer_all();
  CHECK(where("a") == "");
}

TEST_CASE_METHOD(quorum_fixture, "what is doubted at some primaries stays so when a red_lock is passed on") {
  const auto first = granted("a");
  const auto second = lock("a");
  for (const std::size_t primary : {3, 4}) at[primary]->link_down();
  run();
  unlock(first);
  REQUIRE(second.granted());
  CHECK(second.value()->of->state() == lease_state::held);
  at[2]->link_down();
  run();
  CHECK(second.value()->of->state() == lease_state::suspended);
  for (const std::size_t primary : {2, 3, 4}) at[primary]->link_up();
  answer_all();
  CHECK(second.value()->of->state() == lease_state::held);
  unlock(second);
  answer_all();
  CHECK(where("a") == "");
}

TEST_CASE_METHOD(quorum_fixture, "the slower primaries' messages of one release are not another's") {
  const auto first = granted("a");
  const auto second = lock("a");
  run();
  advance(3ms);
  unlock(first);
  REQUIRE(second.waits());
  // one other client waits: each release tells two
  free_and_tell(2);
  const auto before = at[0]->count();
  for (const std::size_t primary : {0, 1, 2}) publish(primary, "a");  // our own
  advance(1500us);
  const bool slow = GENERATE(false, true);
  CAPTURE(slow);
  if (slow)
    for (const std::size_t primary : {3, 4}) publish(primary, "a");  // our own, of the slower two
  advance(1000us);
  CHECK(at[0]->count() == before);  // the rest is 2 ms + 600 us
  advance(100us);
  CHECK(at[0]->count() == before + 1);
}

TEST_CASE_METHOD(quorum_fixture, "what one gives back at one primary is nobody's turn") {
  const auto first = granted("a");
  const auto second = lock("a");
  run();
  advance(3ms);
  unlock(first);
  free_and_tell(3);
  REQUIRE(second.waits());
  const auto before = at[0]->count();
  publish_everywhere("a");  // our own
  advance(500us);
  const bool some = GENERATE(false, true);
  CAPTURE(some);
  if (some) publish(4, "a");  // one of the two others gives back what it had in part
  advance(500us);
  if (some) publish(3, "a");  // the other as well; neither has had it
  advance(1000us);
  CHECK(at[0]->count() == before);  // 2 ms + 1.2 ms
}

TEST_CASE_METHOD(quorum_fixture, "primaries that are divided among those who rest are no rival") {
  lock_call current = granted("a");
  lock_call next = lock("a");
  run();
  advance(3ms);
  const auto release = [&] {
    unlock(current);
    free_and_tell(2);
  };
  release();
  REQUIRE(next.waits());
  publish_everywhere("a");  // our own
  advance(1ms);
  // another takes A and B first as our rest ends; nobody has a majority yet
  const bool divided = GENERATE(false, true);
  CAPTURE(divided);
  if (divided)
    for (const std::size_t primary : {0, 1}) {
      nodes[primary]->command({"HSET", "a", "other", "1"});
      nodes[primary]->command({"PEXPIRE", "a", "30000"});
    }
  const auto before = at[0]->count();
  publish_everywhere("a");  // the other's turn is over
  advance(600us);
  REQUIRE(at[0]->count() > before);
  if (divided) {
    // a third has C and D, so that we have E alone
    for (const std::size_t primary : {2, 3}) {
      nodes[primary]->command({"HSET", "a", "third", "1"});
      nodes[primary]->command({"PEXPIRE", "a", "30000"});
    }
    answer_all();
    for (const std::size_t primary : {0, 1, 2, 3}) nodes[primary]->command({"DEL", "a"});
  }
  for (int i = 0; i < 50 && next.waits(); ++i) {
    answer_all();
    advance(1ms);
  }
  REQUIRE(next.granted());
  current = next;
  next = lock("a");
  run();
  advance(15ms);
  release();
  publish_everywhere("a");  // our own
  advance(1ms);
  const auto asked = at[0]->count();
  publish_everywhere("a");  // the other's turn is over
  advance(600us);
  CHECK(at[0]->count() > asked);
}

TEST_CASE_METHOD(quorum_fixture, "a primary that is doubted is asked again soon after a pass as well") {
  const auto first = granted("a");
  const auto second = lock("a");
  run();
  at[4]->link_down();
  run();
  at[4]->link_up();
  run();
  REQUIRE(at[4]->open().size() == 1);
  at[4]->fail(at[4]->open().front(), errc::server_refused);
  run();
  const auto before = at[4]->count();
  const bool passes = GENERATE(false, true);
  CAPTURE(passes);
  if (passes) {
    unlock(first);
    REQUIRE(second.granted());
  }
  advance(2s);
  CHECK(at[4]->count() > before);
}
