// SPDX-License-Identifier: BSL-1.0
#include "sync/line/reentry.hpp"

#include <boost/asio/error.hpp>

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
namespace asio = boost::asio;

namespace {

constexpr auto aborted = asio::error::operation_aborted;

/// More than a hold has left: a re-entry has to ask Redis for it.
constexpr lock_options longer{.ttl = 30s};

/// Alice holds "a" once.
struct fixture : engine_fixture {
  const owner alice;
  const lock_call outer = hold("a", by(alice));
  const detail::hold& held = *outer.value()->of;

  fixture() { heard(); }
  lock_call again(lock_options options = longer) { return lock("a", by(alice, options)); }
  /// All that Alice has is unlocked; nothing may be left then.
  void check_all_ends(std::initializer_list<lock_call> leases) {
    play();
    for (const auto& l : leases) {
      unlock(l);
      run();
    }
    check_nothing_is_left();
  }
};

}  // namespace

TEST_CASE_METHOD(fixture, "an owner that holds the lock re-enters by the absolute count") {
  const auto inner = again();
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
  CHECK(inner.waits());
  reenters();
  CHECK(inner.granted());
  CHECK(inner.value()->of == outer.value()->of);
  CHECK(heard() == "reentered");
  again();
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 3)");
}

TEST_CASE_METHOD(fixture, "every way to lock re-enters") {
  const auto tried = try_lock("a", by(alice, longer));
  reenters();
  CHECK(tried.granted());
  const auto tried_for = try_lock_for("a", 1s, by(alice, longer));
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 3)");
  reenters();
  CHECK(tried_for.granted());
  advance(1s);
}

TEST_CASE_METHOD(fixture, "another owner and nobody in particular wait") {
  const auto bob = lock("a", by(owner()));
  const auto nobody = lock("a");
  CHECK(server.count() == 1);
  CHECK(bob.waits());
  CHECK(nobody.waits());
}

TEST_CASE_METHOD(engine_fixture, "the owner of an unbound hold re-enters it when it is named") {
  const auto outer = hold("a");
  const auto inner = lock("a", by(outer.value()->of->owner));
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
}

TEST_CASE_METHOD(fixture, "a re-entry does not queue behind those who wait") {
  const auto waiting = lock("a");
  const auto inner = again();
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
  reenters();
  CHECK(inner.granted());
  CHECK(waiting.waits());
}

TEST_CASE_METHOD(fixture, "a re-entry extends the validity from its own send and never shortens it") {
  const auto outer = hold("b", by(alice, {.ttl = 30s}));
  const auto& held = *outer.value()->of;
  const auto valid = held.valid_until();
  advance(1s);
  const auto shorter = lock("b", by(alice, {.ttl = 2s, .renew = true}));
  CHECK(last_sent() == "set_hold_count(b; 28985, #2, 2)");
  reenters();
  CHECK(held.valid_until() == valid);
  const auto asked = clock.now();
  const auto longer = lock("b", by(alice, {.ttl = 60s}));
  advance(100ms);
  reenters();
  CHECK(held.valid_until() == asked + 60s - 602ms);
}

TEST_CASE_METHOD(fixture, "concurrent re-entries of one hold run one after the other") {
  const auto second = again(), third = again();
  CHECK(in_flight() == 1);
  reenters();
  CHECK(second.granted());
  CHECK(third.waits());
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 3)");
  reenters();
  CHECK(third.granted());
}

TEST_CASE_METHOD(fixture, "re-entries that wait for Redis run one after the other with the count of the moment") {
  const auto second = again();
  reenters();
  const auto third = again();
  CHECK(unlock(second).succeeded());
  const auto fourth = again();
  CHECK(in_flight() == 1);
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 3)");
  reenters();
  CHECK(third.granted());
  CHECK(in_flight() == 1);
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 3)");
  reenters();
  CHECK(fourth.granted());
  CHECK(in_flight() == 0);
}

TEST_CASE_METHOD(fixture, "holds of different names do not wait for each other's changes") {
  const auto b = hold("b", by(alice));
  again();
  lock("b", by(alice));
  CHECK(in_flight() == 2);
}

TEST_CASE_METHOD(fixture, "a re-entry without an answer is repeated with the same count") {
  const auto inner = again();
  fails(errc::unconfirmed);
  CHECK(inner.waits());
  advance(20ms);
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
  reenters();
  CHECK(inner.granted());
  unlock(inner);
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
}

TEST_CASE("a re-entry waits through what may mend itself and fails at once with the rest") {
  struct row {
    const char* reply;
    errc connection, code;
    bool lock_waits;
  };
  const row all[] = {
      {"OOM command not allowed", {}, errc::server_refused, true},
      {"BUSY Redis is busy", {}, errc::server_refused, true},
      {"", errc::unreachable, errc::unreachable, true},
      {"", errc::unconfirmed, errc::unreachable, true},
      {"", errc::server_refused, errc::server_refused, true},
      {"NOPERM no", {}, errc::no_permission, false},
      {"READONLY replica", {}, errc::not_primary, false},
      {"WRONGTYPE a string", {}, errc::corrupt_lock, false},
      {"HOLDFAST corrupt count", {}, errc::corrupt_lock, false},
      {"", errc::auth_failed, errc::auth_failed, false},
      {"", errc::overloaded, errc::overloaded, false},
      {"", errc::tls_failed, errc::tls_failed, false},
  };
  const auto give = [](engine_fixture& f, const row& r) {
    r.connection == errc{} ? f.errs(r.reply) : f.fails(r.connection);
  };
  for (const auto& r : all) {
    CAPTURE(r.reply, error_code(r.code).message());
    {
      fixture f;
      const auto inner = f.again();
      give(f, r);
      CHECK(inner.waits() == r.lock_waits);
      if (r.lock_waits) {
        f.advance(20ms);
        f.reenters();
        CHECK(inner.granted());
      } else {
        CHECK(inner.failed_with(r.code));
      }
    }
    {
      fixture f;
      const auto inner = f.try_lock("a", by(f.alice, longer));
      give(f, r);
      CHECK(inner.failed_with(r.code));
      CHECK(f.heard().find("acquire_failed") != std::string::npos);
    }
  }
}

TEST_CASE_METHOD(fixture, "a key that is no lock any more is a hold that is lost") {
  const auto inner = again();
  errs("WRONGTYPE Operation against a key holding the wrong kind of value");
  CHECK(inner.failed_with(errc::corrupt_lock));
  CHECK(held.ended());
  CHECK(unlock(outer).failed_with(errc::corrupt_lock));
}

TEST_CASE_METHOD(fixture, "the answer 0 to a re-entry means that the hold is lost") {
  const auto inner = again();
  answers(replies::integer(0));
  CHECK(inner.failed_with(errc::lost));
  CHECK(held.ended());
  CHECK(outer.value()->state() == lease_state::lost);
  CHECK(heard() == "lost acquire_failed");
}

TEST_CASE_METHOD(fixture, "a re-entry that is confirmed after the validity was over is lost all the same") {
  const auto inner = again();
  timers.on_step = nullptr;
  server.reply_last(replies::integer(1));
  clock.skip(30s);
  run();
  CHECK(inner.failed_with(errc::lost));
  CHECK(last_sent().starts_with("release"));
}

TEST_CASE_METHOD(fixture, "after a loss the owner hears lost until its leases are gone") {
  const auto inner = again();
  reenters();
  advance(10s);
  confirms_nothing();
  CHECK(again().failed_with(errc::lost));
  CHECK(try_lock("a", by(alice, longer)).failed_with(errc::lost));
  CHECK(unlock(outer).failed_with(errc::lost));
  CHECK(again().failed_with(errc::lost));
  drop(inner);
  const auto fresh = again();
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(fresh.granted());
}

TEST_CASE_METHOD(fixture, "a loss that nobody noticed yet is found by the re-entry") {
  clock.skip(30s);
  CHECK(again().failed_with(errc::lost));
  CHECK(held.ended());
}

TEST_CASE_METHOD(fixture, "others may lock a name whose lost leases are not gone") {
  advance(10s);
  confirms_nothing();
  const auto bob = lock("a", by(owner()));
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(bob.granted());
  CHECK(again().failed_with(errc::lost));
}

TEST_CASE_METHOD(fixture, "a re-entry that waits fails in the instant in which its hold is lost") {
  const auto ends = held.valid_until();
  std::vector<lock_call> waiting;
  SECTION("between two attempts") {
    waiting.push_back(again());
    fails(errc::unreachable);
    server.on_command = [](const auto&) { return replies::error("OOM command not allowed"); };
    advance(ends - clock.now() - 1ns);
  }
  SECTION("without a connection") {
    link_down();
    waiting = {again(), again(), try_lock_for("a", 1h, by(alice, longer))};
  }
  SECTION("unanswered") { waiting = {again(), again(), try_lock_for("a", 1h, by(alice, longer))}; }
  advance(ends - clock.now() - 1ns);
  for (const auto& w : waiting) CHECK(w.waits());
  advance(1ns);
  for (const auto& w : waiting) {
    CHECK(w.failed_with(errc::lost));
    CHECK(w.detail().starts_with("the hold that it would re-enter is lost: its validity was over"));
  }
  CHECK(unlock(outer).failed_with(errc::lost));
  play();
  link_up();
  while (in_flight() > 0) not_yours();
  advance(1min);
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "a re-entry that waits hears at once of a loss that another command finds") {
  const auto inner = again();
  errs("OOM command not allowed");
  advance(1ms);
  renew(outer);
  confirms_nothing();
  CHECK(inner.failed_with(errc::lost));
  CHECK(heard() == "lost acquire_failed");
  unlock(outer);
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "a re-entry that waits goes to the line at once when its hold is lost and has no lease") {
  const auto inner = again();
  fails(errc::unconfirmed);  // and waits for its next attempt
  const auto u = unlock(outer);
  not_yours();
  CHECK(u.failed_with(errc::lost));
  advance(1s);
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(inner.granted());
  check_all_ends({inner});
}

TEST_CASE_METHOD(fixture, "a re-entry with a deadline ends at it, though its hold lives on in an outage") {
  const auto inner = try_lock_for("a", 1s, by(alice, longer));
  link_down();
  advance(1s - 1ns);
  CHECK(inner.waits());
  advance(1ns);
  CHECK(inner.failed_with(errc::unreachable));
  CHECK(held.exclusive());
}

// ---- deadlines

TEST_CASE_METHOD(fixture, "a re-entry that is not answered by its deadline is unreachable") {
  const auto inner = try_lock_for("a", 100ms, by(alice, longer));
  advance(100ms);
  CHECK(inner.failed_with(errc::unreachable));
  reenters();  // too late: the count goes back
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  reenters();
  check_all_ends({outer});
}

TEST_CASE_METHOD(fixture, "a re-entry that Redis refuses until its deadline says so") {
  const auto inner = try_lock_for("a", 30ms, by(alice, longer));
  errs("OOM command not allowed");
  advance(20ms);
  errs("OOM command not allowed");
  advance(10ms);
  CHECK(inner.failed_with(errc::server_refused));
  check_all_ends({outer});
}

TEST_CASE_METHOD(fixture, "a deadline while the re-entry backs off ends the pause") {
  const auto inner = try_lock_for("a", 10ms, by(alice, longer));
  fails(errc::unconfirmed);
  advance(10ms);
  CHECK(inner.failed_with(errc::unreachable));
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  reenters();
  check_all_ends({outer});
}

// ---- cancellation

TEST_CASE_METHOD(fixture, "a re-entry cancelled while it is queued sends nothing") {
  const auto second = again(), third = again();
  third.cancel();
  CHECK(third.failed_with(aborted));
  reenters();
  CHECK(server.count() == 2);
  check_all_ends({outer, second});
}

TEST_CASE_METHOD(fixture, "a re-entry cancelled in flight is undone") {
  const auto inner = again();
  inner.cancel();
  CHECK(inner.failed_with(aborted));
  CHECK(server.count() == 2);
  reenters();
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  reenters();
  CHECK(outer.value()->state() == lease_state::held);
  check_all_ends({outer});
}

TEST_CASE_METHOD(fixture, "a re-entry cancelled in flight and never answered is undone") {
  const auto inner = again();
  inner.cancel();
  fails(errc::unconfirmed);
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
}

TEST_CASE_METHOD(fixture, "a re-entry cancelled in flight and never written needs no undoing") {
  const auto inner = again();
  inner.cancel();
  fails(errc::unreachable);
  CHECK(server.count() == 2);
  check_all_ends({outer});
}

TEST_CASE_METHOD(fixture, "a re-entry cancelled while it backs off leaves no timer and no count") {
  const auto inner = again();
  fails(errc::unconfirmed);
  inner.cancel();
  CHECK(inner.failed_with(aborted));
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  reenters();
  const auto u = unlock(outer);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  frees();
  CHECK(u.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "a re-entry cancelled while it backs off after a plain refusal leaves nothing to undo") {
  const auto inner = again();
  errs("LOADING Redis is loading");
  inner.cancel();
  CHECK(server.count() == 2);
  unlock(outer);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "what is queued behind a re-entry that backs off goes on at once") {
  const auto second = again();
  const auto third = again();
  CHECK(server.count() == 2);
  fails(errc::unreachable);
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
  CHECK(server.count() == 3);
  reenters();
  CHECK(third.granted());
  second.cancel();
  check_all_ends({outer, third});
}

TEST_CASE_METHOD(fixture, "an unlock does not wait for a re-entry that the server refuses") {
  const auto second = again();
  reenters();
  const auto third = again();
  errs("OOM command not allowed when used memory > 'maxmemory'.");
  CHECK(unlock(second).succeeded());
  CHECK(in_flight() == 0);  // the re-entry will tell the count
  advance(1s);
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
  reenters();
  CHECK(third.granted());
  check_all_ends({outer, third});
}

TEST_CASE_METHOD(fixture,
                 "the last unlock while a re-entry backs off frees the hold, and the re-entry goes to the line") {
  const auto second = again();
  fails(errc::unreachable);
  const auto u = unlock(outer);
  frees();
  CHECK(u.succeeded());
  advance(1s);
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(second.granted());
  check_all_ends({second});
}

TEST_CASE_METHOD(fixture, "a re-entry without patience fails though another one backs off") {
  const auto second = again();
  fails(errc::unreachable);
  const auto third = try_lock("a", by(alice, longer));
  fails(errc::unreachable);
  CHECK(third.failed_with(errc::unreachable));
  second.cancel();
  check_all_ends({outer});
}

TEST_CASE_METHOD(fixture, "a re-entry that may have run and is cancelled in the queue for its repetition is undone") {
  const auto inner = again();
  fails(errc::unconfirmed);
  const auto other = try_lock("a", by(alice, longer));
  advance(50ms);  // the repetition is due, behind the other
  inner.cancel();
  errs("OOM command not allowed when used memory > 'maxmemory'.");
  CHECK(other.failed_with(errc::server_refused));
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 1)");
  reenters();
  check_all_ends({outer});
}

TEST_CASE_METHOD(fixture, "a re-entry whose undoing fails leaves the next change to set the count") {
  const auto inner = again();
  inner.cancel();
  reenters();
  fails(errc::unconfirmed);
  CHECK(in_flight() == 0);
  const auto next = again();
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
}

// ---- unlock while a re-entry is under way

TEST_CASE_METHOD(fixture, "the last unlock behind a re-entry that is granted lowers the count") {
  const auto inner = again({.ttl = 60s, .renew = true});
  const auto u = unlock(outer);
  CHECK(server.count() == 2);
  reenters();
  CHECK(inner.granted());
  CHECK(last_sent() == "set_hold_count(a; 60000, #1, 1)");
  CHECK(u.succeeded());
  CHECK(held.state() == lease_state::held);
  reenters();
  advance(20s);
  CHECK(last_sent() == "renew(a; 60000, #1)");
  confirms();
  check_all_ends({inner});
}

TEST_CASE_METHOD(fixture, "the last unlock behind a re-entry that is cancelled frees") {
  const auto inner = again();
  const auto u = unlock(outer);
  inner.cancel();
  reenters();
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  frees();
  CHECK(u.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "an unlock that waits for another is in time when the validity ends meanwhile") {
  const auto outer = hold("m", by(alice, {.ttl = 1s})), inner = lock("m", by(alice, {.ttl = 1s}));
  reenters();
  advance(900ms);
  const auto first = unlock(inner), last = unlock(outer);
  heard();
  advance(100ms);
  reenters();
  CHECK(first.succeeded());
  frees();
  CHECK(last.succeeded());
  CHECK(heard() == "released");
}

TEST_CASE_METHOD(fixture, "unlocks that were the last until a re-entry was granted wait for no release") {
  const auto second = again(), third = again();
  const auto u1 = unlock(outer);
  reenters();
  const auto u2 = unlock(second);
  CHECK(u1.waits());
  reenters();
  CHECK(third.granted());
  CHECK(u1.succeeded());
  CHECK(u2.succeeded());
  CHECK(last_sent() == "set_hold_count(a; 29995, #1, 1, 30000)");
  const auto u3 = unlock(third);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  reenters();
  CHECK(u3.waits());
  frees();
  CHECK(u3.succeeded());
  check_nothing_is_left();
}

namespace {

/// Two unlocks, each the last when it was called, wait for a re-entry that is cancelled.
struct two_last_unlocks : fixture {
  const lock_call second = again(), third = again();
  const verb_call u1 = unlock(outer);
  verb_call u2;

  two_last_unlocks() {
    advance(100ms);
    reenters();
    u2 = unlock(second);
    third.cancel();
    heard();
  }
};

}  // namespace

TEST_CASE_METHOD(two_last_unlocks, "every last unlock answers what its hold's release answers, and not before") {
  reenters();
  REQUIRE(in_flight() == 1);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  CHECK(u1.waits());
  CHECK(u2.waits());
  SECTION("released") {
    frees();
    CHECK(u1.succeeded());
    CHECK(u2.succeeded());
    CHECK(heard() == "released");
  }
  SECTION("it was gone") {
    not_yours();
    CHECK(u1.failed_with(errc::lost));
    CHECK(u2.failed_with(errc::lost));
    CHECK(heard() == "lost");
  }
  SECTION("refused for good") {
    errs("NOPERM this user has no permissions");
    CHECK(u1.failed_with(errc::no_permission));
    CHECK(u2.failed_with(errc::no_permission));
  }
  SECTION("no answer: when the time of the release is over") {
    advance(500ms - 1ns);
    CHECK(u1.waits());
    CHECK(u2.waits());
    advance(1ns);
    CHECK(u1.failed_with(errc::unconfirmed));
    CHECK(u2.failed_with(errc::unconfirmed));
    CHECK(heard() == "release_failed");
    frees();
  }
  SECTION("an answer while the connection is alive is not too late for the first") {
    advance(400ms);
    frees();
    CHECK(u1.succeeded());
    CHECK(u2.succeeded());
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(two_last_unlocks, "last unlocks that wait for a re-entry hear of the loss that it finds") {
  answers(replies::integer(0));
  CHECK(u1.failed_with(errc::lost));
  CHECK(u2.failed_with(errc::lost));
  CHECK(sent("release") == 0);
  check_nothing_is_left();
}

TEST_CASE_METHOD(two_last_unlocks, "close answers last unlocks, those of a release under way by its answer") {
  SECTION("not sent yet") {
    const auto c = close();
    reenters();
    frees();
    CHECK(u1.failed_with(errc::closed));
    CHECK(u2.failed_with(errc::closed));
    CHECK(c.succeeded());
  }
  SECTION("answered in the grace") {
    reenters();
    const auto c = close();
    CHECK(u1.waits());
    CHECK(u2.waits());
    frees();
    CHECK(u1.succeeded());
    CHECK(u2.succeeded());
    CHECK(c.succeeded());
  }
  SECTION("not answered in the grace") {
    reenters();
    const auto c = close(100ms);
    advance(100ms);
    CHECK(u1.failed_with(errc::unconfirmed));
    CHECK(u2.failed_with(errc::unconfirmed));
    CHECK(c.succeeded());
    fails(errc::unconfirmed);
  }
  SECTION("at once") {
    locks->abandon();
    CHECK(u1.failed_with(errc::closed));
    CHECK(u2.failed_with(errc::closed));
    while (in_flight() > 0) fails(errc::unconfirmed);
    CHECK(only_leases_keep(held));
  }
  CHECK(timers.idle());
}

TEST_CASE_METHOD(two_last_unlocks,
                 "an engine destroyed while last unlocks wait answers nobody and keeps nothing of them") {
  CHECK_FALSE(only_leases_keep(held));
  locks.reset();
  server.close();
  CHECK(only_leases_keep(held));
  CHECK(u1.waits());
  CHECK(u2.waits());
}

TEST_CASE_METHOD(fixture, "a dropped lease and an unlock that are both the last end with one release") {
  const auto second = again(), third = again();
  drop(outer);
  reenters();
  const auto u = unlock(second);
  third.cancel();
  reenters();
  CHECK(u.waits());
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  frees();
  CHECK(u.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture,
                 "an unlock that is not the last succeeds when its turn comes after the release, and at once") {
  const auto second = again(), third = again(), fourth = again();
  const auto u1 = unlock(outer);
  reenters();
  reenters();
  const auto partial = unlock(second), last = unlock(third);
  fourth.cancel();
  reenters();
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
  CHECK(partial.succeeded());
  CHECK(u1.waits());
  CHECK(last.waits());
  frees();
  CHECK(u1.succeeded());
  CHECK(last.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "a try_lock that waits for its turn and in the line has the time of one command") {
  const auto inner = again();
  const auto last = unlock(outer);
  SECTION("and fails when its turn has not come") {
    const auto tried = try_lock("a", by(alice, {.ttl = 1s}));
    advance(199ms);
    CHECK(tried.waits());
    advance(1ms);
    CHECK(tried.failed_with(errc::unreachable));
    CHECK(tried.detail() == "Redis did not answer what came before it in time");
    inner.cancel();
    reenters();
    frees();
  }
  SECTION("its attempt in the line has what is left") {
    const auto tried = try_lock("a", by(alice, longer));
    advance(300ms);
    inner.cancel();
    reenters();
    REQUIRE(last_sent() == "acquire(a; 30000, #2)");
    CHECK(server.last().timeout == 200ms);
    frees();
    advance(200ms);
    CHECK(tried.failed_with(errc::unreachable));
  }
  play();
  while (in_flight() > 0) frees();
  CHECK(last.succeeded());
  check_all_ends({});
}

TEST_CASE_METHOD(fixture, "a try_lock that waited for its turn re-enters in what is left of the time of one command") {
  const auto inner = again();
  const auto tried = try_lock("a", by(alice, longer));
  advance(300ms);
  reenters();
  REQUIRE(last_sent() == "set_hold_count(a; 30000, #1, 3)");
  CHECK(server.last().timeout == 200ms);
  advance(200ms);
  CHECK(tried.failed_with(errc::unreachable));
  reenters();  // it may have been counted
  check_all_ends({inner, outer});
}

TEST_CASE_METHOD(fixture, "a re-entry between two last unlocks goes to the line behind their release") {
  const auto second = again(), third = again();
  const auto u1 = unlock(outer);
  reenters();
  const auto fourth = again();
  const auto u2 = unlock(second);
  third.cancel();
  reenters();
  REQUIRE(in_flight() == 2);
  CHECK(wire(3) == "release(a; publish, redisson_lock__channel:{a}, #1)");
  CHECK(wire(4) == "acquire(a; 30000, #2)");
  frees();
  CHECK(u1.succeeded());
  CHECK(u2.succeeded());
  grants();
  CHECK(fourth.granted());
  check_all_ends({fourth});
}

TEST_CASE_METHOD(
    fixture, "a re-entry goes to the line when the hold turns out to be lost and nobody has a lease of it any more") {
  SECTION("by the release before it") {
    const auto inner = again();
    drop(outer);
    const auto next = again();
    inner.cancel();
    reenters();
    not_yours();
    CHECK(last_sent() == "acquire(a; 30000, #2)");
    grants();
    CHECK(next.granted());
    check_all_ends({next});
  }
  SECTION("by the re-entry itself") {
    const auto next = try_lock("a", by(alice, longer));
    drop(outer);
    answers(replies::integer(0));
    CHECK(last_sent() == "acquire(a; 30000, #2)");
    busy(1s);
    CHECK(next.refused());
    check_all_ends({});
  }
  SECTION("by the clock") {
    const auto next = again();
    drop(outer);
    clock.skip(30s);
    reenters();
    CHECK(wire(2) == "release(a; publish, redisson_lock__channel:{a}, #1)");
    CHECK(wire(3) == "acquire(a; 30000, #2)");
    frees();
    grants();
    CHECK(next.granted());
    check_all_ends({next});
  }
}

TEST_CASE_METHOD(fixture, "a re-entry behind the last unlock goes to the line like anybody") {
  const auto inner = again();
  const auto u = unlock(outer);
  const auto third = again(), fourth = again();
  inner.cancel();
  reenters();
  REQUIRE(in_flight() == 2);
  CHECK(wire(2) == "release(a; publish, redisson_lock__channel:{a}, #1)");
  CHECK(wire(3) == "acquire(a; 30000, #2)");
  frees();
  grants();
  CHECK(third.granted());  // in the order in which they came
  CHECK(last_sent() == "set_hold_count(a; 30000, #2, 2)");
  reenters();
  CHECK(fourth.granted());
  check_all_ends({third, fourth});
}

TEST_CASE_METHOD(fixture, "a deadline goes with its caller from a hold to the line") {
  const auto inner = again();
  unlock(outer);
  const auto limited = try_lock_for("a", 1s, by(alice, longer));
  advance(400ms);
  inner.cancel();
  reenters();
  frees();
  busy(10s);
  advance(600ms - 1ns);
  CHECK(limited.waits());
  advance(1ns);
  CHECK(limited.refused());
  play();
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "a deadline goes with its caller from the line to a hold") {
  unlock(outer);
  const auto first = lock("a", by(alice, longer));
  const auto limited = try_lock_for("a", 1s, by(alice, longer));
  frees();
  advance(400ms);
  grants();
  REQUIRE(first.granted());
  CHECK(last_sent() == "set_hold_count(a; 30000, #2, 2)");
  advance(600ms - 1ns);
  CHECK(limited.waits());
  advance(1ns);
  CHECK(limited.failed_with(errc::unreachable));
  reenters();
  reenters();
  check_all_ends({first});
}

TEST_CASE_METHOD(fixture, "a re-entry that goes to the line has waited since its call") {
  const auto inner = again();
  unlock(outer);
  const auto third = again();
  advance(600ms);
  inner.cancel();
  heard();
  reenters();
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  frees();
  advance(100ms);
  grants();
  REQUIRE(third.granted());
  CHECK(last_event().what == kind::acquired);
  CHECK(last_event().waited == 700ms);
  check_all_ends({third});
}

TEST_CASE_METHOD(fixture, "a re-entry that the connection refuses is answered once, whatever ends it meanwhile") {
  server.refusal = errc::auth_failed;
  const auto inner = again();
  SECTION("its caller") {
    inner.cancel();
    CHECK(inner.failed_with(aborted));
  }
  SECTION("the end of the client") {
    server.refusal.reset();
    locks->close(1s, [] {});
    CHECK(inner.failed_with(errc::shutting_down));
  }
  run();
  server.refusal.reset();
  if (outer.value()->try_release()) locks->drop(outer.value());
  while (in_flight() > 0) frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "close answers a re-entry that waits at a hold that was lost before") {
  const auto inner = again();  // written, and not answered before the end
  clock.skip(1min);
  advance(0ms);
  CHECK(inner.failed_with(errc::lost));
  const auto late = again();
  CHECK(late.waits());
  const auto c = close();
  CHECK(late.failed_with(errc::shutting_down));
  unlock(outer);
  reenters();
  while (in_flight() > 0) frees();
  CHECK(c.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "a hold that is given up between the flag and the close keeps nothing of what is queued") {
  const auto inner = again();
  reenters();
  const auto in_flight_one = again();
  unlock(inner);
  locks->state()->closed.store(true);  // what ~client does on any thread
  drop(outer);
  locks->abandon();
  server.close();
  CHECK(only_leases_keep(held));
}

TEST_CASE_METHOD(fixture, "a re-entry that went to the line is cancelled there") {
  const auto inner = again();
  unlock(outer);
  const auto third = again();
  inner.cancel();
  reenters();
  third.cancel();
  CHECK(third.failed_with(aborted));
  play();
  frees();
  grants();
  frees();
  advance(1s);
  check_nothing_is_left();
}

TEST_CASE_METHOD(fixture, "a re-entry that waits when its owner's last unlock finds the hold over has lost nothing") {
  const auto inner = again();
  clock.skip(31s);
  CHECK(unlock(outer).failed_with(errc::lost));
  CHECK(inner.waits());
  CHECK(sent("acquire") == 2);
}

// ---- one owner twice in line

TEST_CASE_METHOD(engine_fixture, "an owner that waits twice re-enters at its grant") {
  const owner alice;
  const auto first = lock("a", by(alice, longer)), between = lock("a"), second = lock("a", by(alice, longer));
  advance(50ms);
  grants();
  CHECK(first.granted());
  CHECK(second.waits());
  CHECK(last_sent() == "set_hold_count(a; 30000, #1, 2)");
  reenters();
  CHECK(second.granted());
  CHECK(last_event().waited == 50ms);
  CHECK(between.waits());
  unlock(first);
  reenters();
  unlock(second);
  frees();
  grants();
  CHECK(between.granted());
}

TEST_CASE_METHOD(engine_fixture, "an owner that waits twice may cancel the second when it re-enters") {
  const owner alice;
  const auto first = lock("a", by(alice, longer)), second = lock("a", by(alice, longer));
  grants();
  CHECK(first.granted());
  second.cancel();
  CHECK(second.failed_with(aborted));
  reenters();
  CHECK(last_sent() == "set_hold_count(a; 29995, #1, 1, 30000)");
  reenters();
  unlock(first);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "waiters without an owner are never taken for one another") {
  const auto first = lock("a"), second = lock("a");
  grants();
  CHECK(first.granted());
  CHECK(second.waits());
  CHECK(sent("set_hold_count") == 0);
}

// ---- close

TEST_CASE_METHOD(fixture, "close answers re-entries in every state") {
  const auto sent_one = again(), queued = again();
  const auto c = close();
  CHECK(sent_one.failed_with(errc::shutting_down));
  CHECK(queued.failed_with(errc::shutting_down));
  reenters();
  CHECK(c.waits());
  frees();
  CHECK(c.succeeded());
  CHECK(server.count() == 3);
}

TEST_CASE_METHOD(fixture, "close answers an unlock that is queued behind a re-entry") {
  const auto inner = again();
  const auto u = unlock(outer);
  const auto c = close();
  CHECK(inner.failed_with(errc::shutting_down));
  reenters();
  CHECK(u.failed_with(errc::closed));
  frees();
  CHECK(c.succeeded());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(fixture, "what is queued when a client is abandoned refers to nothing any more") {
  const auto sent_one = again(), queued = again();
  const auto u = unlock(outer);
  CHECK_FALSE(only_leases_keep(held));
  locks->abandon();
  CHECK(queued.failed_with(errc::shutting_down));
  CHECK(u.failed_with(errc::closed));
  while (in_flight() > 0) fails(errc::unconfirmed);
  CHECK(only_leases_keep(held));
  CHECK(timers.idle());
}

TEST_CASE_METHOD(fixture, "a hundred thousand queued re-entries that were cancelled end without deep recursion") {
  const auto first = again();
  std::vector<lock_call> queued;
  for (int i = 0; i < 100'000; ++i) queued.push_back(again());
  for (const auto& q : queued) q.cancel();
  reenters();
  CHECK(first.granted());
  CHECK_FALSE(held.changing());
  check_all_ends({first, outer});
}

TEST_CASE_METHOD(fixture, "an engine destroyed while re-entries wait leaves no timer of theirs") {
  const auto backing_off = again(), another = again(), with_deadline = try_lock_for("a", 1min, by(alice, longer));
  for (int i = 0; i < 3; ++i) fails(errc::unreachable);
  locks.reset();
  CHECK(timers.idle());
  backing_off.cancel();
}
