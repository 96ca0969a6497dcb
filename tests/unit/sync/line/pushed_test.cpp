// SPDX-License-Identifier: BSL-1.0
// Waiters that the server notifies of a change by another program.
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// A server that pushes. A program of another language has "a" for a minute, and one of ours waits for it.
struct pushed_waiter : engine_fixture {
  lock_call waiting;

  pushed_waiter() {
    play();
    server.pushing = true;
    hold("other");
    waiting = lock("a", simple());
    run();
  }
  void hold(const std::string& by) { node.command({"SET", "a", by, "PX", "60000"}); }
  void change() {
    server.change("a");
    run();
  }
  std::size_t asked() const { return sent("simple_acquire"); }
};

/// The same, and 999 others wait for names of their own.
struct pushed_crowd : pushed_waiter {
  std::vector<lock_call> others;

  pushed_crowd() {
    for (std::size_t n = 1; n < 1'000; ++n) {
      const auto name = "many" + std::to_string(n);
      node.command({"SET", name, "other", "PX", "60000"});
      others.push_back(lock(name.c_str(), simple()));
      run();
    }
  }
  void change_any() {
    server.change({});
    run();
  }
};

}  // namespace

TEST_CASE_METHOD(pushed_waiter, "a waiter is woken by a release that no message reports") {
  CHECK(waiting.waits());
  node.clear();
  change();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(pushed_waiter, "a waiter that will be notified does not poll before the poll cap") {
  const auto before = asked();
  advance(settings.poll_cap - settings.poll_cap / 10 - 1ms);
  CHECK(asked() == before);
  advance(settings.poll_cap / 10 + 1ms);
  CHECK(asked() == before + 1);
}

TEST_CASE_METHOD(pushed_waiter, "a waiter is notified of each change, and asks for the next one each time") {
  for (int i = 0; i < 3; ++i) {
    const auto before = asked();
    change();
    REQUIRE(asked() == before + 1);
    REQUIRE(server.last().track);
  }
}

TEST_CASE_METHOD(pushed_waiter, "a try_lock and a first SET ask for no push") {
  const auto once = try_lock("b", simple());
  run();
  CHECK(once.granted());
  CHECK_FALSE(server.last().track);
  (void)lock("c", simple());
  run();
  CHECK_FALSE(server.last().track);
}

TEST_CASE_METHOD(pushed_waiter, "a message of the same release as a push costs no second attempt") {
  const auto before = asked();
  server.on_command = nullptr;
  hold("third");
  change();
  server.push("holdfast_simple:{a}", "0");
  run();
  play_all();
  CHECK(asked() == before + 1);
}

TEST_CASE_METHOD(pushed_waiter, "a change during an attempt causes one more, because the attempt may have run before") {
  server.on_command = nullptr;
  change();
  const auto before = asked();
  change();
  hold("third");
  server.reply_last(node.run(server.last()));
  run();
  CHECK(asked() == before + 1);
}

TEST_CASE_METHOD(pushed_waiter, "a flood of pushed changes costs twenty tries at once and then a hundred a second") {
  const auto before = asked();
  for (int i = 0; i < 1000; ++i) {
    for (int j = 0; j < 10; ++j) change();
    advance(1ms);
  }
  CHECK(asked() - before <= 20 + 100);
  CHECK(asked() - before >= 18 + 98);
}

TEST_CASE_METHOD(pushed_waiter, "a waiter polls again when the server has forgotten its promise") {
  server.forget_pushes();
  run();
  advance(1ms);
  const auto before = asked();
  advance(100ms);
  CHECK(asked() >= before + 2);
}

TEST_CASE_METHOD(pushed_waiter, "a waiter asks anew when the server pushes again") {
  server.forget_pushes();
  run();
  advance(1ms);
  server.begin_pushing();
  run();
  advance(1ms);
  const auto before = asked();
  advance(1s);
  CHECK(asked() == before);
  node.clear();
  change();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(pushed_waiter, "a waiter is woken if any key may have changed") {
  node.clear();
  server.change({});
  run();
  advance(1ms);
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(pushed_crowd, "many waiters are woken in portions if any key may have changed") {
  constexpr auto pause = 49ms;  // of 50 microseconds for each name at most
  random.number = static_cast<std::uint64_t>(nanoseconds(pause).count());
  const auto before = asked();
  change_any();
  advance(pause);
  for (const std::size_t portions : {256, 512, 768, 1'000, 1'000}) {
    CHECK(asked() == before + portions);
    advance(100us);
  }
}

TEST_CASE_METHOD(pushed_crowd, "a crowd that has left between two portions is not woken") {
  change_any();
  for (auto& each : others) each.cancel();
  change_any();
  node.clear();
  advance(1s);
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(pushed_crowd, "a crowd is not woken between two portions once its client has closed") {
  change_any();
  locks->close(0ns, [] {});
  const auto before = asked();
  advance(1s);
  CHECK(asked() == before);
}

TEST_CASE_METHOD(pushed_waiter, "an answer counts as not tracked if the server has forgotten all meanwhile") {
  server.on_command = nullptr;
  change();
  server.change({});
  run();
  hold("third");
  server.reply_last(node.run(server.last()));
  run();
  play_all();
  const auto before = asked();
  server.forget_pushes();
  run();
  advance(50ms);
  CHECK(asked() > before);
}

TEST_CASE_METHOD(pushed_waiter, "a server is asked to push while a caller waits") {
  CHECK(server.pushes_wanted > 0);
  node.clear();
  change();
  unlock(waiting);
  run();
  CHECK(server.pushes_wanted == 0);
}

TEST_CASE_METHOD(pushed_waiter, "a change of another name wakes nobody") {
  const auto before = asked();
  server.change("b");
  server.change("ab");
  run();
  CHECK(asked() == before);
}

namespace {

struct without_pushes : engine_fixture {
  without_pushes()
      : engine_fixture([] {
          auto c = without_turns();
          c.push = push_mode::off;
          return c;
        }()) {}
};

}  // namespace

TEST_CASE_METHOD(without_pushes, "with push=off no server is asked to push") {
  play();
  node.command({"SET", "a", "other", "PX", "60000"});
  const auto waiting = lock("a", simple());
  run();
  advance(100ms);
  CHECK(server.pushes_wanted == 0);
  CHECK(waiting.waits());
}

TEST_CASE_METHOD(engine_fixture, "a waiter for a mutex asks for no push: each release is published") {
  play();
  server.pushing = true;
  node.hold("a", "redisson:1", clock.now() + 1min);
  const auto waiting = lock("a");
  run();
  for (std::size_t n = 0; n < server.count(); ++n) CHECK_FALSE(server.sent(n).track);
  CHECK(server.pushes_wanted == 0);
}
