// SPDX-License-Identifier: BSL-1.0
// The limit on wake-ups.
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// Another client has "a" for a minute, and one of ours waits for it.
struct flooded : engine_fixture {
  const std::string other = "c6ae660e-4bf6-8605-ae66-59d052e0c483";
  lock_call waiting;

  flooded() {
    play();
    node.hold("a", other + ":1", clock.now() + 1min);
    waiting = lock("a");
    run();
  }
  /// Messages for which nothing has happened, a hundred a millisecond.
  void flood(milliseconds time) {
    for (; time > 0ms; time -= 1ms) {
      for (int i = 0; i < 100; ++i) publishes("a");
      advance(1ms);
    }
  }
};

}  // namespace

TEST_CASE_METHOD(flooded, "a flooded channel costs twenty tries at once and then a hundred a second") {
  const auto at_first = sent("acquire");
  flood(1ms);
  CHECK(sent("acquire") - at_first <= 20);
  CHECK(sent("acquire") - at_first >= 19);  // the acknowledgement was a wake-up, too
  flood(1s);
  CHECK(sent("acquire") - at_first <= 20 + 100);
  CHECK(sent("acquire") - at_first >= 19 + 98);
}

TEST_CASE_METHOD(flooded, "a flooded channel costs no more while a client holds that takes no turns") {
  node.clear();
  node.hold("a", "redisson:1", clock.now() + 1min);
  const auto at_first = sent("acquire");
  flood(1s);
  CHECK(sent("acquire") - at_first <= 20 + 100);
}

TEST_CASE_METHOD(flooded, "a lock that is freed while its channel is flooded is tried within 10 ms") {
  flood(100ms);
  node.clear();
  publishes("a");
  CHECK(waiting.waits());
  advance(10ms);
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(flooded, "a flooded channel costs no more where each try fails") {
  server.on_command = nullptr;
  const auto at_first = sent("acquire");
  for (int i = 0; i < 1000; ++i) {
    publishes("a");
    while (in_flight() > 0) errs("OOM command not allowed when used memory > 'maxmemory'.");
  }
  CHECK(sent("acquire") - at_first == 19);
}

TEST_CASE_METHOD(flooded, "while the lock changes hands elsewhere every wake-up is followed at once") {
  for (int i = 0; i < 1000; ++i) {
    advance(1ms);
    node.hold("a", other + ":" + std::to_string(i), clock.now() + 30s);
    const auto before = sent("acquire");
    publishes("a");
    REQUIRE(sent("acquire") == before + 1);
  }
}

TEST_CASE_METHOD(flooded, "a grant ends the thrift of those who wait behind it") {
  const auto next = lock("a");
  flood(10ms);
  node.clear();
  publishes("a");
  advance(10ms);
  REQUIRE(waiting.granted());
  server.on_command = nullptr;
  unlock(waiting);
  frees();
  CHECK(last_sent() == "acquire(a; 30000, #2)");
}
