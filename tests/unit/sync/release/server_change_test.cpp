// SPDX-License-Identifier: BSL-1.0
// What a server has answered, and the one that takes its place may not have: releases and counts.
#include "unit/sync/engine_fixture.hpp"
#include "unit/sync/quorum_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct fixture : engine_fixture {
  const owner alice;

  /// The primary is replaced, and the link to the next one is up.
  void fail_over() {
    link_down();
    server.change_server();
    link_up();
  }
  /// What is sent meanwhile.
  template <class Do>
  std::string sent_by(Do act) {
    auto n = server.count();
    act();
    std::string all;
    for (; n < server.count(); ++n) all += (all.empty() ? "" : " ") + wire(n);
    return all;
  }
  std::string sent_after_failover() {
    return sent_by([this] { fail_over(); });
  }
};

}  // namespace

TEST_CASE_METHOD(fixture, "a release that was answered is sent again when another server has the key") {
  unlock(hold("a"));
  frees();
  heard();
  const auto release = "release(a; publish, redisson_lock__channel:{a}, #1)";
  CHECK(sent_after_failover() == release);
  CHECK(server.last().rank == detail::urgency::obligation);  // before what waits to be sent
  SECTION("the observer hears of it where that has freed the lock") {
    frees();
    CHECK(heard() == "released_late");
    CHECK(sent_after_failover() == release);  // that one may be replaced as well
    not_yours();
  }
  SECTION(
      "nobody hears of it where the lock was free, and the next server is asked as well until its key has expired") {
    not_yours();
    CHECK(heard().empty());
    CHECK(sent_after_failover() == release);
    not_yours();
    advance(30s + 500ms);
    CHECK(sent_after_failover().empty());
  }
  SECTION("nobody hears of it where the server refuses it") {
    errs("NOPERM this user has no permissions");
    CHECK(heard().empty());
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "an answered release is not sent again while the same server has the key") {
  unlock(hold("a"));
  frees();
  CHECK(sent_by([this] {
          link_down();
          link_up();
        }).empty());
}

TEST_CASE_METHOD(fixture,
                 "a release that a server without a run id has answered is sent again after each end of its link") {
  server.withhold_run();
  unlock(hold("a"));
  frees();
  const auto sent_again = [this] {
    return sent_by([this] {
      link_down();
      link_up();
    });
  };
  const auto release = "release(a; publish, redisson_lock__channel:{a}, #1)";
  CHECK(sent_again() == release);
  not_yours();  // of the primary that is about to be replaced
  CHECK(sent_again() == release);
  frees();  // of its successor
  CHECK(sent_again() == release);
  not_yours();
  advance(30s + 500ms);
  CHECK(sent_again().empty());
}

TEST_CASE_METHOD(fixture, "an answered release is not sent again once its key has expired at every server") {
  unlock(hold("a"));
  frees();
  advance(30s + 500ms);
  CHECK(sent_after_failover().empty());
}

TEST_CASE_METHOD(fixture, "a release is sent again in the time that its key has left") {
  unlock(hold("a"));
  frees();
  advance(20s);
  fail_over();
  link_down();
  advance(10s + 500ms);
  CHECK(locks->idle());
  CHECK(heard() == "acquired released");
  link_up();
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "a lock that another server keeps for nobody is free for those who wait here") {
  unlock(hold("a"));
  frees();
  const auto waiter = lock("a");
  busy(29s);
  acknowledges("a");
  busy(29s);
  CHECK(sent_after_failover() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  const auto release = server.count() - 1;
  server.reply(release, replies::integer(0));
  run();
  grants();
  CHECK(waiter.granted());
}

TEST_CASE_METHOD(fixture, "the release of every kind is sent again") {
  unlock(hold("p"));
  frees();
  const auto f = lock("f", fenced());
  grants_token(7);
  unlock(f);
  frees();
  const auto s = lock("s", simple());
  answers(replies::status("OK"));
  unlock(s);
  frees();
  CHECK(sent_after_failover() ==
        "release(p; publish, redisson_lock__channel:{p}, #1) release(f; publish, redisson_lock__channel:{f}, #2) "
        "simple_release(s; publish, holdfast_simple:{s}, #3)");
}

TEST_CASE_METHOD(fixture, "the releases of several locks, of any of several and of late grants are sent again") {
  play();
  const auto both = lock_all({"a", "b"});
  const auto any = lock_any({"c", "d"});
  run();
  unlock(both);
  unlock(any);
  run();
  server.on_command = nullptr;
  const auto late = lock("e");
  late.cancel();
  grants();
  frees();
  play();
  const auto again = sent_after_failover();
  for (const std::string name : {"a", "b", "c", "e"}) CHECK(again.find("release(" + name + "; ") != again.npos);
  CHECK(again.find("release(d") == again.npos);
}

TEST_CASE_METHOD(fixture, "the field of a hold that a server has forgotten is given back at another server") {
  const auto held = hold("a");
  force_unlock("a");
  frees();
  advance(0ms);
  confirms_nothing();
  CHECK_FALSE(held.value()->of->exclusive());
  CHECK(sent_after_failover() == "release(a; publish, redisson_lock__channel:{a}, #1)");
}

TEST_CASE_METHOD(fixture, "a release that was answered is sent again when its key has moved to another server") {
  unlock(hold("a"));
  frees();
  server.change_server();
  CHECK(sent_by([this] { move({"a"}, 1); }) == "release(a; publish, redisson_lock__channel:{a}, #1)");
}

TEST_CASE_METHOD(fixture, "where one group of keys has moved no other release is looked at") {
  server.grouped_by = [](std::string_view key) { return static_cast<detail::key_group>(key.front()); };
  for (const auto* name : {"a", "b"}) {
    unlock(hold(name));
    frees();
  }
  server.change_server();
  for (const auto* name : {"a", "b"})
    CHECK(sent_by([&] { move({name}, 1); }).starts_with(std::string("release(") + name + ';'));
}

TEST_CASE_METHOD(fixture, "a count that was answered is sent again when another server has the key") {
  const auto outer = hold("a", by(alice));
  const auto inner = lock("a", by(alice));
  reenters();
  CHECK(sent_after_failover() == "renew(a; 30000, #1) set_hold_count(a; 30000, #1, 2)");
  confirms();
  reenters();
  unlock(inner);
  reenters();
  CHECK(sent_after_failover() == "renew(a; 30000, #1) set_hold_count(a; 30000, #1, 1)");
}

TEST_CASE_METHOD(fixture, "a count that was asked for with more than the hold has is sent again as well") {
  const auto outer = hold("a", by(alice, {.ttl = 10s}));
  const auto inner = lock("a", by(alice, {.ttl = 30s}));
  reenters();
  CHECK(sent_after_failover().find(" set_hold_count(a; 29995, #1, 2, 30000)") != std::string::npos);
}

TEST_CASE_METHOD(fixture, "a count that nobody has changed is not sent again") {
  const auto held = hold("a");
  CHECK(sent_after_failover() == "renew(a; 30000, #1)");
}

TEST_CASE_METHOD(fixture, "from close() on nothing is sent again") {
  unlock(hold("a"));
  frees();
  close();
  CHECK(sent_after_failover().empty());
}

TEST_CASE_METHOD(quorum_fixture,
                 "a primary that was restarted is sent again what it has answered, and the others not") {
  const auto held = granted("a");
  unlock(held);
  answer_all();
  REQUIRE(where("a").empty());
  at[1]->link_down();
  run();
  at[1]->change_server();
  at[1]->link_up();
  run();
  REQUIRE(at[1]->open().size() >= 1);
  std::size_t releases = 0;
  for (std::size_t n = 0; n < primaries; ++n)
    for (const auto open : at[n]->open())
      releases += n == 1 && at[n]->sent(open).line().find("redisson_lock__channel") != std::string::npos;
  CHECK(releases == 1);
  for (const std::size_t n : {0, 2, 3, 4}) CHECK(at[n]->open().empty());
}
