// SPDX-License-Identifier: BSL-1.0
// min_replicas: what counts only when replicas have it.
#include <memory>

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr auto drift = 302ms;  // of 30 s

struct replicated_fixture : engine_fixture {
  replicated_fixture()
      : engine_fixture([] {
          auto c = without_turns();
          c.min_replicas = 1;
          return c;
        }()) {}

  void replicas(unsigned had) {
    server.replicas_have(had);
    run();
  }
  void nobody_knows() {
    server.replicas_have(0, redis::failure{errc::unreachable, "no answer in time"});
    run();
  }
  std::size_t asked() const { return server.replica_questions.size(); }
  lock_call hold_on_replica(const std::string& name, asking a = {}) {
    const auto c = lock(name, a);
    grants();
    replicas(1);
    REQUIRE(c.granted());
    return c;
  }
  static nanoseconds left(const lock_call& c) { return c.value()->of->left(); }
};

}  // namespace

TEST_CASE_METHOD(engine_fixture, "without min_replicas nobody asks for replicas") {
  hold("a");
  advance(10s);
  confirms();
  CHECK(server.replica_questions.empty());
}

TEST_CASE_METHOD(engine_fixture, "a lease may want replicas of its own accord") {
  const auto a = lock("a", with({.min_replicas = 2}));
  grants();
  CHECK(a.waits());
  REQUIRE(server.replica_questions.size() == 1);
  CHECK(server.replica_questions[0].replicas == 2);
  server.replicas_have(2);
  run();
  CHECK(a.granted());
}

TEST_CASE_METHOD(replicated_fixture, "a grant is told when enough replicas have it, and is valid from its send") {
  const auto a = lock("a");
  advance(100ms);
  grants();
  CHECK(a.waits());
  REQUIRE(asked() == 1);
  CHECK(server.replica_questions[0].key == "a");
  CHECK(server.replica_questions[0].deadline == clock.now() + 500ms);
  advance(50ms);
  replicas(1);
  CHECK(a.granted());
  CHECK(left(a) == 30s - drift - 150ms);
  CHECK(heard() == "acquired");
}

TEST_CASE_METHOD(replicated_fixture, "replicas have a quarter of a short lease's time") {
  lock("a", with({.ttl = 100ms}));
  grants();
  CHECK(server.replica_questions[0].deadline == clock.now() + nanoseconds(97ms) / 4);
}

TEST_CASE_METHOD(replicated_fixture,
                 "what too few replicas have is given back, and lock() tries again with another field") {
  const auto a = lock("a");
  grants();
  replicas(0);
  CHECK(a.waits());
  CHECK(heard() == "not_replicated");
  CHECK(last_event().reason == errc::not_replicated);
  CHECK(last_event().detail == "0 of 1 in time");
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  frees();
  advance(20ms);
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  replicas(1);
  CHECK(a.granted());
}

TEST_CASE_METHOD(replicated_fixture, "a try that too few replicas have fails and says so") {
  const auto a = try_lock("a");
  grants();
  SECTION("because they are too few") { replicas(0); }
  SECTION("because nobody knows") { nobody_knows(); }
  CHECK(a.failed_with(errc::not_replicated));
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(replicated_fixture, "a caller who leaves while replicas are waited for leaves nothing") {
  const auto a = lock("a"), b = lock("b");
  grants();
  server.reply(server.open().front(), replies::nil());
  run();
  a.cancel();
  CHECK(last_sent().starts_with("release(a; "));
  frees();
  replicas(1);
  CHECK(a.error() == boost::asio::error::operation_aborted);
  replicas(1);
  CHECK(b.granted());
}

TEST_CASE_METHOD(replicated_fixture, "a deadline that comes while replicas are waited for is told as that") {
  const auto a = try_lock_for("a", 200ms);
  grants();
  advance(200ms);
  CHECK(a.failed_with(errc::not_replicated));
  frees();
  replicas(1);
  check_nothing_is_left();
}

TEST_CASE_METHOD(replicated_fixture, "whoever stands behind waits until replicas have said their word") {
  const auto a = lock("a"), b = lock("a");
  grants();
  CHECK(in_flight() == 0);
  replicas(1);
  CHECK(a.granted());
  CHECK(b.waits());
}

TEST_CASE_METHOD(replicated_fixture, "a renewal extends a lease when enough replicas have it") {
  const auto a = hold_on_replica("a");
  advance(10s);
  confirms();
  CHECK(left(a) == 20s - drift);
  CHECK(state(a) == lease_state::held);
  advance(100ms);
  replicas(1);
  CHECK(left(a) == 30s - drift - 100ms);
  advance(10s - 100ms);
  CHECK(sent("renew") == 2);
}

TEST_CASE_METHOD(replicated_fixture, "a renewal that too few replicas have leaves the validity, and is repeated") {
  const auto a = hold_on_replica("a");
  advance(10s);
  heard();
  confirms();
  replicas(0);
  CHECK(heard() == "renewal_failed suspended");
  CHECK(last_event().reason == errc::not_replicated);
  CHECK(left(a) == 20s - drift);
  advance(500ms);
  confirms();
  replicas(1);
  CHECK(heard() == "restored");
  CHECK(left(a) == 30s - drift);
}

TEST_CASE_METHOD(replicated_fixture, "renewals of one script ask for replicas once, and each for as many as it wants") {
  const auto a = hold_on_replica("a"), c = lock("c", with({.min_replicas = 0}));
  grants();
  const auto b = lock("b", with({.min_replicas = 2}));
  grants();
  replicas(2);
  const auto before = asked();
  advance(10s);
  REQUIRE(last_sent() == "renew(a, c, b; 30000, 30000, 30000, #1, #2, #3)");
  confirms();
  REQUIRE(asked() == before + 1);
  CHECK(server.replica_questions.back().replicas == 2);
  replicas(1);
  CHECK(state(a) == lease_state::held);
  CHECK(state(c) == lease_state::held);
  CHECK(state(b) == lease_state::suspended);
}

TEST_CASE_METHOD(replicated_fixture,
                 "where nobody knows what replicas have, a hold of the script that asked for none is confirmed") {
  const auto a = hold_on_replica("a"), c = lock("c", with({.min_replicas = 0}));
  grants();
  advance(10s);
  REQUIRE(last_sent() == "renew(a, c; 30000, 30000, #1, #2)");
  confirms();
  nobody_knows();
  CHECK(state(a) == lease_state::suspended);
  CHECK(state(c) == lease_state::held);
  CHECK(left(c) == 30s - drift);
}

TEST_CASE_METHOD(replicated_fixture, "what is lost is lost at once, whatever replicas have") {
  const auto a = hold_on_replica("a"), b = hold_on_replica("b");
  advance(10s);
  answers(replies::integers({0, 1}));
  CHECK(state(a) == lease_state::lost);
  CHECK(state(b) == lease_state::held);
  replicas(1);
  CHECK(left(b) == 30s - drift);
}

TEST_CASE_METHOD(replicated_fixture, "a lease that is released while replicas are waited for stays released") {
  const auto a = hold_on_replica("a");
  advance(10s);
  confirms();
  const auto u = unlock(a);
  frees();
  CHECK(u.succeeded());  // it waits for no replica
  replicas(1);
  check_nothing_is_left();
}

TEST_CASE_METHOD(replicated_fixture, "renew() waits for replicas, and without them extends nothing") {
  const auto a = hold_on_replica("a");
  const auto r = renew(a, 60s);
  confirms();
  CHECK(r.waits());
  SECTION("enough") {
    replicas(1);
    CHECK(r.succeeded());
    CHECK(left(a) > 59s);
  }
  SECTION("too few") {
    replicas(0);
    CHECK(r.failed_with(errc::not_replicated));
    CHECK(left(a) == 30s - drift);
  }
}

TEST_CASE_METHOD(replicated_fixture, "a re-entry is told when enough replicas have it") {
  const owner alice;
  const auto outer = hold_on_replica("a", by(alice));
  const auto inner = try_lock("a", by(alice, {.ttl = 30s}));
  reenters();
  CHECK(inner.waits());
  SECTION("enough") {
    replicas(1);
    CHECK(inner.granted());
  }
  SECTION("too few: the count is set back") {
    replicas(0);
    CHECK(inner.failed_with(errc::not_replicated));
    CHECK(last_sent() == "set_hold_count(a; 29995, #1, 1, 30000)");
  }
  SECTION("whoever leaves is counted no more") {
    inner.cancel();
    replicas(1);
    CHECK(last_sent() == "set_hold_count(a; 29995, #1, 1, 30000)");
  }
}

TEST_CASE_METHOD(replicated_fixture, "a re-entry that asks for no replicas waits for those that its hold wants") {
  const owner alice;
  const auto outer = lock("a", by(alice, {.min_replicas = 2}));
  grants();
  replicas(2);
  const auto valid = outer.value()->of->valid_until();
  advance(1s);
  const auto inner = try_lock("a", by(alice, {.ttl = 30s, .min_replicas = 0}));
  reenters();
  CHECK(inner.waits());
  CHECK(server.replica_questions.back().replicas == 2);
  SECTION("enough") {
    replicas(2);
    CHECK(inner.granted());
    CHECK(outer.value()->of->valid_until() == valid + 1s);
  }
  SECTION("too few") {
    replicas(1);
    CHECK(inner.failed_with(errc::not_replicated));
    CHECK(outer.value()->of->valid_until() == valid);
  }
}

TEST_CASE_METHOD(replicated_fixture, "a count does not restore what too few replicas have") {
  const owner alice;
  const auto outer = hold_on_replica("a", by(alice));
  const auto inner = lock("a", by(alice));
  REQUIRE(inner.granted());
  reenters();
  advance(10s);
  confirms();
  replicas(0);
  REQUIRE(outer.value()->state() == lease_state::suspended);
  unlock(inner);
  reenters();
  CHECK(outer.value()->state() == lease_state::suspended);
}

TEST_CASE_METHOD(replicated_fixture, "a count extends no validity that replicas must have") {
  const owner alice;
  const auto outer = lock("a", by(alice, {.min_replicas = 0}));
  grants();
  const auto valid = outer.value()->of->valid_until();
  advance(5s);
  lock("a", by(alice, {.min_replicas = 0}));  // its count is on its way
  const auto inner = lock("a", by(alice, {.ttl = 5s, .min_replicas = 1}));
  server.reply(server.open().at(1), replies::integer(1));
  run();
  replicas(1);
  REQUIRE(inner.granted());
  reenters();
  CHECK(outer.value()->of->valid_until() == valid);
}

TEST_CASE_METHOD(replicated_fixture, "any_of has the one that it is granted when enough replicas have it") {
  const auto c = lock_any({"a", "b"});
  answers(replies::integer(2));
  CHECK(c.waits());
  CHECK(server.replica_questions.back().key == "b");
  SECTION("enough") {
    replicas(1);
    CHECK(c.value()->of->keys()->name == "b");
  }
  SECTION("too few: it waits in the lines") {
    replicas(0);
    CHECK(last_sent().starts_with("release(b; "));
    frees();
    CHECK(subscribers("a") == 0);
    CHECK(sent("acquire") == 2);
  }
  SECTION("cancelled") {
    c.cancel();
    CHECK(sent("release") == 2);
    frees();
    not_yours();
    replicas(1);
    check_nothing_is_left();
  }
}

TEST_CASE_METHOD(replicated_fixture, "multi_lock has all when enough replicas have each") {
  const auto c = lock_all({"a", "b"});
  grants();
  CHECK(asked() == 2);
  replicas(1);
  CHECK(c.waits());
  SECTION("enough") {
    replicas(1);
    CHECK(c.granted());
  }
  SECTION("too few of one: that one is asked for again") {
    replicas(0);
    CHECK(last_sent().starts_with("release(b; "));
    frees();
    advance(20ms);
    CHECK(last_sent().starts_with("acquire_all(b; "));
    grants();
    replicas(1);
    CHECK(c.granted());
  }
}
