// SPDX-License-Identifier: BSL-1.0
// Holders that the server notifies of a change by another program.
#include "sync/renewal/key_tracker.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// A server that pushes, and a hold that was renewed once.
struct renewed_hold : engine_fixture {
  lock_call held;

  renewed_hold() {
    play();
    server.pushing = true;
    held = lock("a");
    run();
    advance(settings.ttl / 3);
  }
  void change(const std::string& key = "a") {
    server.change(key);
    run();
    advance(0ms);
  }
  std::size_t questions() const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < server.count(); ++i) n += server.sent(i).argv[0] == "EXISTS";
    return n;
  }
};

}  // namespace

TEST_CASE_METHOD(engine_fixture, "a hold that ends before its first renewal asks for no push") {
  play();
  server.pushing = true;
  const auto held = lock("a");
  run();
  advance(settings.ttl / 3 - settings.ttl / 60 - 1ms);
  unlock(held);
  run();
  CHECK(server.count() == 2);
  CHECK(server.pushes_wanted == 0);
}

TEST_CASE_METHOD(renewed_hold, "each renewal is followed by a question that asks for the next change") {
  CHECK(sent("renew") == 1);
  CHECK(server.last().line() == "EXISTS a");
  CHECK(server.last().track);
  advance(settings.ttl / 3);
  CHECK(sent("renew") == 2);
  CHECK(questions() == 2);
}

TEST_CASE_METHOD(renewed_hold, "a holder is told at once that its key was deleted") {
  advance(1s);
  node.clear();
  change();
  CHECK(state(held) == lease_state::lost);
  CHECK(heard() == "acquired lost");
}

TEST_CASE_METHOD(renewed_hold, "a change that leaves the hold is one confirmation, and no question follows it") {
  advance(1s);
  const auto before = sent("renew"), asked = questions();
  change();
  CHECK(sent("renew") == before + 1);
  CHECK(questions() == asked);
  CHECK(state(held) == lease_state::held);
  advance(settings.ttl / 3);
  CHECK(sent("renew") == before + 2);
  CHECK(questions() == asked + 1);
}

namespace {

/// A server that pushes a client's own writes to it, as Redis before 7.0.5 does with those of scripts.
struct own_writes_pushed : engine_fixture {
  bool tracked = false;

  own_writes_pushed() {
    play();
    server.pushing = true;
    const auto run_command = server.on_command;
    server.on_command = [this, run_command](const fake_topology::command& asked) {
      if (asked.argv[0] == "EXISTS") tracked = true;
      if (asked.argv[0] != "EXISTS" && std::exchange(tracked, false)) server.change("a");
      return run_command(asked);
    };
  }
};

}  // namespace

TEST_CASE_METHOD(own_writes_pushed, "a server that pushes a client's own renewals causes no stream of them") {
  const auto held = lock("a");
  run();
  for (int n = 0; n < 20 * 30; ++n) advance(settings.ttl / 30);
  CHECK(state(held) == lease_state::held);
  constexpr std::size_t regular = 20 * 3;
  CHECK(sent("renew") <= 3 * regular + 10);
  CHECK(sent("renew") >= 2 * regular - 10);  // the pushes come
}

TEST_CASE_METHOD(renewed_hold, "a flood of changes confirms one hold a hundred times a second") {
  advance(1s);
  const auto before = sent("renew");
  for (int i = 0; i < 1000; ++i) {
    for (int j = 0; j < 10; ++j) {
      server.change("a");
      run();
    }
    advance(1ms);
  }
  CHECK(sent("renew") - before <= 102);
  CHECK(sent("renew") - before >= 90);
}

TEST_CASE_METHOD(renewed_hold, "a holder is told at once that all keys were deleted") {
  advance(1s);
  node.clear();
  change({});
  advance(0ms);
  CHECK(state(held) == lease_state::lost);
}

TEST_CASE_METHOD(engine_fixture, "a holder is told at once also after the end of a lease with a longer TTL") {
  play();
  server.pushing = true;
  const owner who;
  const auto outer = lock("a", by(who));
  run();
  const auto inner = lock("a", by(who, {.ttl = 3 * settings.ttl}));
  run();
  REQUIRE(inner.granted());
  unlock(inner);
  run();
  for (int n = 0; n < 10 && server.last().argv[0] != "EXISTS"; ++n) advance(settings.ttl / 3);
  REQUIRE(server.last().line() == "EXISTS a");
  advance(100ms);
  node.clear();
  server.change("a");
  run();
  advance(10ms);
  CHECK(state(outer) == lease_state::lost);
}

TEST_CASE_METHOD(renewed_hold, "a key that went between the renewal and the question is found missing") {
  server.on_command = [this](const fake_topology::command& c) -> std::optional<redis::reply> {
    if (c.argv[0] == "EXISTS") node.clear();
    return obey(c);
  };
  advance(settings.ttl / 3 + 20ms);
  CHECK(state(held) == lease_state::lost);
}

TEST_CASE_METHOD(renewed_hold, "servers are asked to push while a hold is renewed") {
  CHECK(server.pushes_wanted > 0);
  unlock(held);
  run();
  CHECK(server.pushes_wanted == 0);
}

TEST_CASE_METHOD(renewed_hold, "a claim whose key was changed is not handed on before it is confirmed") {
  advance(1s);
  server.on_command = nullptr;
  server.change("a");
  run();
  CHECK(held.value()->of->on->in_doubt);
  advance(0ms);
  play_all();
  CHECK_FALSE(held.value()->of->on->in_doubt);
}

TEST_CASE_METHOD(engine_fixture, "a server that begins to push is asked to, for the holds that are there") {
  play();
  const auto held = lock("a");
  run();
  advance(settings.ttl / 3);
  CHECK(server.pushes_wanted > 0);
  CHECK(server.last().argv[0] != "EXISTS");
  server.begin_pushing();
  run();
  CHECK(server.last().line() == "EXISTS a");
  CHECK(sent("renew") == 1);
}

namespace {

/// Holds that were never renewed, and a server that begins to push and answers when the test says so.
struct many_holds : engine_fixture {
  std::deque<lock_call> held;

  void take(int count) {
    play();
    server.pushing = true;
    for (int n = 0; n < count; ++n) held.push_back(lock(std::to_string(n)));
    run();
    server.on_command = nullptr;
    server.begin_pushing();
    run();
  }
  std::size_t largest_question() const {
    std::size_t most = 0;
    for (const auto n : server.open()) most = std::max(most, server.sent(n).argv.size() - 1);
    return most;
  }
  /// Answers what is open, and then what follows; returns how many questions there were.
  std::size_t answer_rest() {
    std::size_t all = 0;
    while (!server.open().empty()) {
      CHECK(server.open().size() <= detail::key_tracker::most_under_way);
      for (const auto n : server.open()) {
        ++all;
        server.reply(n, replies::integer(static_cast<long long>(server.sent(n).argv.size() - 1)));
      }
      run();
    }
    return all;
  }
};

}  // namespace

TEST_CASE_METHOD(many_holds, "a server that may have forgotten all is asked by a few commands at a time") {
  take(2'000);
  CHECK(server.open().size() == detail::key_tracker::most_under_way);
  CHECK(largest_question() == detail::renewals::batch_size);
  CHECK(answer_rest() == 20);
}

TEST_CASE_METHOD(many_holds, "the keys of one slot are asked for together, although they were taken apart") {
  server.grouped_by = [](std::string_view key) { return static_cast<detail::key_group>(key.back() - '0'); };
  take(200);
  CHECK(server.open().size() == 10);
  CHECK(largest_question() == 20);
  CHECK(answer_rest() == 10);
}

TEST_CASE_METHOD(many_holds, "a question that is not answered ends those that wait behind it") {
  take(2'000);
  for (const auto n : server.open()) server.fail(n, errc::unconfirmed);
  run();
  CHECK(server.open().empty());
  server.begin_pushing();
  run();
  CHECK(answer_rest() == 20);
}

TEST_CASE_METHOD(engine_fixture, "a server that does not push is asked by renewals alone") {
  play();
  const auto held = lock("a");
  run();
  advance(settings.ttl);
  CHECK(sent("renew") == server.count() - 1);
}

TEST_CASE("confirmations after pushed changes have a budget") {
  detail::push_budget budget;
  const detail::time_point now{1h};
  CHECK(budget.next(now - 10ms, now) == now);
  CHECK(budget.next(now - 9ms, now) == now + 1ms);
  for (int i = 0; i < 999; ++i) budget.spend(now);
  CHECK(budget.next(now - 1s, now) == now);
  budget.spend(now);
  CHECK(budget.next(now - 1s, now) == now + 1ms);
  CHECK(budget.next(now - 1s, now + 1ms) == now + 1ms);
}

TEST_CASE_METHOD(renewed_hold, "a client with more than a hundred thousand holds asks for no push") {
  struct : detail::key_tracker::host {
    void missing(const detail::renewals::shares&) override { FAIL(); }
  } nobody;
  detail::environment around{clock, timers, server, random, settings};
  detail::push_demand demand(server, settings);
  around.pushes = &demand;
  detail::key_tracker tracker(around, nobody);
  const detail::renewals::shares parts{detail::share_ptr(&held.value()->of->on->sole_share())};
  const auto before = questions();
  tracker.ask(0, parts, detail::key_tracker::most_tracked + 1);
  CHECK(questions() == before);
  tracker.ask(0, parts, detail::key_tracker::most_tracked);
  CHECK(questions() == before + 1);
  run();
}
