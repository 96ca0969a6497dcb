// SPDX-License-Identifier: BSL-1.0
#include "sync/engine.hpp"

#include <boost/asio/error.hpp>
#include <regex>

#include "support/no_memory.hpp"
#include "support/seeded_random.hpp"
#include "support/skip.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
namespace asio = boost::asio;

namespace {

const std::string free_a = "release(a; publish, redisson_lock__channel:{a}, #1)";

lease_state state(const lock_call& c) { return c.value()->state(); }

}  // namespace

// ---- unlock

TEST_CASE_METHOD(engine_fixture, "the last unlock frees by one command and disarms before it is sent") {
  const auto a = hold("a");
  advance(3s);
  const auto u = unlock(a);
  CHECK(state(a) == lease_state::released);
  CHECK_FALSE(a.value()->of->exclusive());
  CHECK(last_sent() == free_a);
  CHECK(server.last().timeout == 500ms);
  frees();
  CHECK(u.succeeded());
  CHECK(heard() == "acquired released");
  CHECK(last_event().held == 3s);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture,
                 "an unlock that is not the last tells the count and leaves the TTL that is left open") {
  const owner alice;
  const auto outer = hold("a", by(alice, {.ttl = 10s}));
  const auto inner = lock("a", by(alice));
  reenters();
  const auto u = unlock(inner);
  CHECK(last_sent() == "recount(a; 29995, #1, 1, 30000)");
  reenters();
  CHECK(u.succeeded());
  CHECK(state(inner) == lease_state::released);
  CHECK(state(outer) == lease_state::held);
}

TEST_CASE_METHOD(engine_fixture, "leases of one hold may be unlocked in any order") {
  const owner alice;
  const auto outer = hold("a", by(alice));
  const auto inner = lock("a", by(alice));
  reenters();
  unlock(outer);
  reenters();
  CHECK(state(inner) == lease_state::held);
  unlock(inner);
  CHECK(last_sent() == free_a);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "the last unlock does not wait for the count of the one before it") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto first = unlock(inner), last = unlock(outer);
  CHECK(first.succeeded());
  CHECK(last_sent() == free_a);
  CHECK(in_flight() == 2);
  reenters();
  CHECK(last.waits());
  frees();
  CHECK(last.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a second unlock answers not_held and sends nothing") {
  const auto a = hold("a");
  unlock(a);
  CHECK(unlock(a).failed_with(errc::not_held));
  frees();
  CHECK(unlock(a).failed_with(errc::not_held));
  CHECK(server.count() == 2);
}

TEST_CASE_METHOD(engine_fixture, "an unlock that finds the key gone or another's says lost") {
  const auto a = hold("a");
  const auto u = unlock(a);
  not_yours();
  CHECK(u.failed_with(errc::lost));
  CHECK(heard() == "acquired lost");
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "an unlock after a loss says lost and sends nothing") {
  const auto a = hold("a");
  advance(10s);
  confirms_nothing();
  CHECK(unlock(a).failed_with(errc::lost));
  CHECK(server.count() == 2);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture,
                 "an unlock after the validity says lost though nobody had noticed and frees what may be left") {
  const auto a = hold("a");
  clock.skip(29'698ms);
  CHECK(unlock(a).failed_with(errc::lost));
  CHECK(last_sent() == free_a);
  CHECK(heard() == "acquired lost");
  frees();
  CHECK(heard() == "released_late");
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "an unlock whose second copy finds nothing has released before the validity ends") {
  const auto a = hold("a");
  const auto u = unlock(a);
  fails(errc::unconfirmed);
  advance(0ms);
  not_yours();
  CHECK(u.succeeded());
  CHECK(heard() == "acquired released");
}

TEST_CASE_METHOD(engine_fixture, "an unlock whose second copy finds nothing is unconfirmed after the validity") {
  const auto a = hold("a", with({.ttl = 10s}));
  advance(9800ms);
  const auto u = unlock(a);
  advance(90ms);
  fails(errc::unconfirmed);
  advance(10ms);
  not_yours();
  CHECK(u.failed_with(errc::unconfirmed));
}

TEST_CASE_METHOD(engine_fixture,
                 "an unlock without an answer is unconfirmed on time and goes on until it is answered") {
  const auto a = hold("a");
  const auto b = lock("a");
  const auto u = unlock(a);
  link_down();
  advance(500ms);
  CHECK(u.failed_with(errc::unconfirmed));
  CHECK_FALSE(locks->idle());
  advance(2s);
  b.cancel();
  heard();
  link_up();
  while (in_flight() > 1) answers(replies::nil());
  frees();
  CHECK(heard() == "released_late");
  advance(1s);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a release that is never answered gives up after one TTL") {
  const auto a = hold("a");
  unlock(a);
  link_down();
  advance(29s);
  CHECK_FALSE(locks->idle());
  heard();
  advance(3s);
  CHECK(heard() == "release_given_up");
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a release that arrives late wakes who waits here") {
  const auto a = hold("a");
  const auto b = lock("a");
  acknowledges("a");
  unlock(a);
  fails(errc::unconfirmed);
  advance(0ms);
  CHECK(sent("acquire") == 1);
  frees();
  CHECK(last_sent() == "acquire(a; 30000, #2)");
}

TEST_CASE_METHOD(engine_fixture, "the count of a partial unlock that finds no answer is left to the next change") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  CHECK(unlock(inner).succeeded());
  fails(errc::unconfirmed);
  CHECK(state(outer) == lease_state::held);
  CHECK(in_flight() == 0);
  lock("a", by(alice));
  CHECK(last_sent() == "recount(a; 30000, #1, 2)");
}

TEST_CASE_METHOD(engine_fixture, "what finds no answer is answered within one command timeout") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto renewal = renew(outer), forced = force_unlock("b");
  CHECK(in_flight() == 2);
  advance(200ms);
  for (int i = 0; i < 2; ++i) fails(errc::unconfirmed);  // each is sent again
  advance(300ms - 1ns);
  CHECK(in_flight() == 2);
  advance(1ns);
  CHECK(in_flight() == 0);
  CHECK(renewal.failed_with(errc::unreachable));
  CHECK(forced.failed_with(errc::unreachable));
}

TEST_CASE_METHOD(engine_fixture, "what finds no answer until the command timeout is not sent again") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto partial = unlock(inner);
  advance(500ms);
  CHECK(partial.succeeded());
  CHECK(sent("recount") == 2);
  CHECK(in_flight() == 0);
}

TEST_CASE_METHOD(engine_fixture, "a partial unlock that is refused has counted here all the same") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto u = unlock(inner);
  errs("OOM command not allowed when used memory > 'maxmemory'.");
  CHECK(u.succeeded());
  unlock(outer);
  CHECK(last_sent() == free_a);
}

TEST_CASE_METHOD(engine_fixture, "a partial unlock of what is not ours any more ends the hold a round trip later") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  CHECK(unlock(inner).succeeded());
  answers(replies::integer(0));
  CHECK(state(outer) == lease_state::lost);
  CHECK(unlock(outer).failed_with(errc::lost));
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture,
                 "a partial unlock of a key that is no lock any more ends the hold a round trip later") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  CHECK(unlock(inner).succeeded());
  errs("WRONGTYPE Operation against a key holding the wrong kind of value");
  CHECK(state(outer) == lease_state::lost);
  CHECK(unlock(outer).failed_with(errc::corrupt_lock));
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a dropped lease is released with nobody waiting") {
  const auto a = hold("a");
  drop(a);
  CHECK(state(a) == lease_state::released);
  CHECK(last_sent() == free_a);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a dropped lease of a re-entered hold takes one from the count") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  drop(inner);
  CHECK(last_sent() == "recount(a; 30000, #1, 1)");
  reenters();
  CHECK(unlock(inner.value()).failed_with(errc::not_held));
}

TEST_CASE_METHOD(engine_fixture, "a lost lease that is dropped sends nothing and frees the name") {
  const owner alice;
  const auto a = hold("a", by(alice));
  advance(10s);
  confirms_nothing();
  CHECK_FALSE(locks->idle());
  drop(a);
  CHECK(server.count() == 2);
  check_nothing_is_left();
}

// ---- renew

TEST_CASE_METHOD(engine_fixture, "renew raises to the TTL of the lease or the one given") {
  const auto a = hold("a", with({.ttl = 10s}));
  advance(5s);
  const auto plain = renew(a);
  CHECK(last_sent() == "renew(a; 10000, #1)");
  advance(100ms);
  confirms();
  CHECK(plain.succeeded());
  CHECK(a.value()->of->left() == 10s - 102ms - 100ms);
  renew(a, 20s);
  CHECK(last_sent() == "renew(a; 20000, #1)");
  confirms();
  CHECK(a.value()->of->left() == 20s - 202ms);
  renew(a, 1s);
  confirms();
  CHECK(a.value()->of->left() == 20s - 202ms);
}

TEST_CASE_METHOD(engine_fixture, "a renew without an answer is tried twice and leaves the lease held") {
  const auto a = hold("a");
  const auto r = renew(a);
  fails(errc::unconfirmed);
  CHECK(r.waits());
  fails(errc::unconfirmed);
  CHECK(r.failed_with(errc::unreachable));
  CHECK(state(a) == lease_state::held);
  CHECK(server.count() == 3);
}

TEST_CASE_METHOD(engine_fixture, "the second try of a renew counts from its own send") {
  const auto a = hold("a", with({.ttl = 10s}));
  const auto r = renew(a);
  advance(300ms);
  fails(errc::unconfirmed);
  confirms();
  CHECK(r.succeeded());
  CHECK(a.value()->of->left() == 10s - 102ms);
}

TEST_CASE_METHOD(engine_fixture, "a renew of what is not ours any more says lost") {
  const auto a = hold("a");
  const auto r = renew(a);
  confirms_nothing();
  CHECK(r.failed_with(errc::lost));
  CHECK(state(a) == lease_state::lost);
  CHECK(renew(a).failed_with(errc::lost));
}

TEST_CASE_METHOD(engine_fixture, "a renew that is confirmed after the validity says lost") {
  const auto a = hold("a", with({.ttl = 10s}));
  const auto r = renew(a);
  timers.on_step = nullptr;
  server.reply_last(replies::integers({1}));
  clock.skip(10s);
  run();
  CHECK(r.failed_with(errc::lost));
  CHECK_FALSE(a.value()->of->exclusive());
}

TEST_CASE_METHOD(engine_fixture, "a renew after the validity finds the loss before it sends") {
  const auto a = hold("a", with({.ttl = 10s}));
  clock.skip(10s);
  CHECK(renew(a).failed_with(errc::lost));
  CHECK(sent("renew") == 0);
  CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
}

TEST_CASE_METHOD(engine_fixture, "a renew of a released lease says not_held") {
  const auto a = hold("a");
  const auto r = renew(a);
  const auto u = unlock(a);
  confirms();
  CHECK(r.failed_with(errc::not_held));
  CHECK(renew(a).failed_with(errc::not_held));
  frees();
  CHECK(u.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a renew passes on why Redis refused") {
  const auto a = hold("a");
  const auto r = renew(a);
  errs("NOPERM this user has no permissions");
  CHECK(r.failed_with(errc::no_permission));
  CHECK(state(a) == lease_state::held);
}

// ---- how a lease ends

namespace {

struct watching : engine_fixture {
  std::vector<error_code> told;
  detail::cancellable_ptr watch(const lock_call& l) {
    return locks->when_ended(l.value(), [this](error_code why) { told.push_back(why); });
  }
};

}  // namespace

TEST_CASE_METHOD(watching, "listeners hear of a loss once and after the state says so") {
  const auto a = hold("a");
  bool held = true;
  locks->when_ended(a.value(), [&](error_code) { held = a.value()->of->exclusive(); });
  watch(a);
  advance(10s);
  confirms_nothing();
  CHECK_FALSE(held);
  CHECK(told == std::vector<error_code>{errc::lost});
  unlock(a);
  close();
  CHECK(told.size() == 1);
}

TEST_CASE_METHOD(watching, "listeners hear not_held when the lease is released") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  watch(inner);
  watch(outer);
  unlock(inner);
  CHECK(told == std::vector<error_code>{errc::not_held});
  reenters();
  drop(outer);
  CHECK(told.size() == 2);
  frees();
}

TEST_CASE_METHOD(watching, "who listens after the end is told at once") {
  const auto a = hold("a"), b = hold("b");
  advance(10s);
  answers(replies::integers({0, 1}));
  CHECK(watch(a) == nullptr);
  unlock(b);
  CHECK(watch(b) == nullptr);
  CHECK(told == std::vector<error_code>{errc::lost, errc::not_held});
}

TEST_CASE_METHOD(watching, "a listener that is cancelled hears no more") {
  const auto a = hold("a");
  const auto first = watch(a);
  watch(a);
  first->cancel();
  CHECK(told == std::vector<error_code>{asio::error::operation_aborted});
  advance(10s);
  confirms_nothing();
  CHECK(told.size() == 2);
  first->cancel();
  CHECK(told.size() == 2);
}

TEST_CASE_METHOD(watching, "a listener may cancel others from its call") {
  const auto a = hold("a");
  detail::cancellable_ptr second;
  locks->when_ended(a.value(), [&](error_code) { second->cancel(); });
  second = watch(a);
  advance(10s);
  confirms_nothing();
  CHECK(told == std::vector<error_code>{errc::lost});
}

// ---- close

TEST_CASE_METHOD(watching, "close fails waiters and loses holds and releases them in one go") {
  const auto a = hold("a"), b = hold("b");
  const auto waiting = lock("a"), trying = lock("c"), tried = try_lock_for("a", 1min);
  watch(a);
  heard();
  const auto c = close(10s);
  CHECK(waiting.failed_with(errc::shutting_down));
  CHECK(trying.failed_with(errc::shutting_down));
  CHECK(tried.failed_with(errc::shutting_down));
  CHECK(told == std::vector<error_code>{errc::closed});
  CHECK(state(a) == lease_state::lost);
  CHECK(state(b) == lease_state::lost);
  CHECK(c.waits());
  CHECK(sent("release") == 3);
  grants();  // c, all the same
  for (int i = 0; i < 3; ++i) frees();
  CHECK(c.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "with nothing to release close ends at once") {
  CHECK(close().succeeded());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(
    engine_fixture,
    "after close every verb about a lease answers closed, every other shutting_down, and nothing is sent") {
  const auto a = hold("a"), b = hold("b");
  close();
  const auto before = server.count();
  CHECK(lock("c").failed_with(errc::shutting_down));
  CHECK(try_lock("c").failed_with(errc::shutting_down));
  CHECK(try_lock_for("c", 1s).failed_with(errc::shutting_down));
  CHECK(unlock(a).failed_with(errc::closed));
  CHECK(renew(b).failed_with(errc::closed));
  CHECK(force_unlock("a").failed_with(errc::shutting_down));
  drop(b);
  error_code why;
  CHECK(locks->when_ended(a.value(), [&](error_code e) { why = e; }) == nullptr);
  CHECK(why == errc::not_held);  // it was unlocked
  int closed = 0;
  locks->ask().is_locked(keys("a"),
                         [&](error_code e, const std::string&, bool) { closed += e == errc::shutting_down; });
  locks->hold_count(keys("a"), owner(),
                    [&](error_code e, const std::string&, unsigned) { closed += e == errc::shutting_down; });
  locks->ask().remaining_ttl(keys("a"),
                             [&](error_code e, const std::string&, auto) { closed += e == errc::shutting_down; });
  locks->ask().holder(keys("a"),
                      [&](error_code e, const std::string&, const auto&) { closed += e == errc::shutting_down; });
  locks->probe(detail::plain_lock, [&](error_code e, const std::string&) { closed += e == errc::shutting_down; });
  CHECK(closed == 5);
  CHECK(server.count() == before);
}

TEST_CASE_METHOD(engine_fixture, "close waits for releases that were under way") {
  const auto a = hold("a");
  const auto u = unlock(a);
  const auto c = close();
  CHECK(c.waits());
  CHECK(u.waits());
  frees();
  CHECK(u.succeeded());
  CHECK(c.succeeded());
}

TEST_CASE_METHOD(engine_fixture, "close waits no longer than the grace") {
  const auto a = hold("a"), b = hold("b");
  const auto u = unlock(a);
  link_down();
  heard();
  const auto c = close(200ms);
  advance(200ms - 1ns);
  CHECK(c.waits());
  advance(1ns);
  CHECK(c.succeeded());
  CHECK(u.failed_with(errc::unconfirmed));
  CHECK(heard() == "closed release_failed release_given_up release_given_up");
  CHECK(locks->idle());
  advance(1s);
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a second close waits with the first") {
  const auto a = hold("a");
  const auto first = close(10s), second = close(1min);
  advance(100ms);
  CHECK(first.waits());
  CHECK(second.waits());
  frees();
  CHECK(first.succeeded());
  CHECK(second.succeeded());
  CHECK(close().succeeded());
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "of several graces the shortest ends the wait of all") {
  const auto a = hold("a");
  link_down();
  const auto first = close(10s), second = close(100ms);
  advance(100ms);
  CHECK(first.succeeded());
  CHECK(second.succeeded());
  advance(1s);
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "close answers in the end whoever still waits for Redis") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto partial = unlock(inner);
  const auto renewed = renew(outer);
  const auto forced = force_unlock("b");
  const auto last = unlock(outer);
  verb_call asked, probed;
  locks->ask().is_locked(keys("b"), [&](error_code e, std::string d, bool v) { asked.answer(e, std::move(d), v); });
  locks->probe(detail::plain_lock, [&](error_code e, std::string d) { probed.answer(e, std::move(d)); });
  const auto c = close(100ms);
  advance(100ms);
  CHECK(c.succeeded());
  CHECK(partial.succeeded());
  CHECK(last.failed_with(errc::unconfirmed));
  CHECK(renewed.failed_with(errc::closed));
  CHECK(forced.failed_with(errc::shutting_down));
  CHECK(asked.failed_with(errc::shutting_down));
  CHECK(probed.failed_with(errc::shutting_down));
  advance(5s);  // late answers change nothing
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "a question that is answered within the grace gets its answer") {
  const auto a = hold("a");
  verb_call asked;
  locks->ask().is_locked(keys("b"), [&](error_code e, std::string d, bool v) { asked.answer(e, std::move(d), v); });
  close();
  answers(replies::integer(1));
  CHECK(asked.value());
  frees();
}

TEST_CASE_METHOD(engine_fixture, "between the flag and the close nothing is released in vain or not at all") {
  const owner alice;
  const auto a = hold("a", by(alice)), b = hold("b"), d = hold("d");
  const auto renewed = renew(b);
  const auto inner = lock("a", by(alice, {.ttl = 30s}));
  locks->state()->closed.store(true);  // what ~client does on any thread
  CHECK_FALSE(a.value()->of->exclusive());
  confirms();
  CHECK(renewed.failed_with(errc::closed));
  reenters();
  CHECK(inner.failed_with(errc::shutting_down));
  drop(d);
  const auto c = close();
  CHECK(sent("release") == 3);
  for (int i = 0; i < 3; ++i) frees();
  CHECK(c.succeeded());
  CHECK(std::count_if(events->all.begin(), events->all.end(), [](const auto& e) { return e.what == kind::closed; }) ==
        3);
  CHECK(heard().find("lost") == std::string::npos);
}

TEST_CASE_METHOD(engine_fixture, "a lease that is given up between the flag and the close is renewed no more") {
  const auto a = hold("a");
  locks->state()->closed.store(true);
  drop(a);
  link_down();
  link_up();
  advance(0ms);  // the release is repeated
  CHECK(sent("renew") == 0);
  const auto c = close();
  frees();
  CHECK(c.succeeded());
}

TEST_CASE_METHOD(engine_fixture, "a lease outlives its engine and reads as lost") {
  const auto a = hold("a");
  const auto b = lock("b");
  locks.reset();
  CHECK_FALSE(a.value()->of->exclusive());
  CHECK(state(a) == lease_state::lost);
  b.cancel();
  CHECK(b.waits());
}

TEST_CASE("an engine that is destroyed at any time leaves no timer and touches nothing") {
  engine_fixture f;
  const auto held = f.hold("a");
  f.try_lock_for("a", 1min);
  f.lock("b");
  f.busy(10s);
  const auto released = f.hold("c");
  f.unlock(released);
  f.fails(errc::unconfirmed);
  f.lock("d");
  f.errs("LOADING");
  f.locks->probe(detail::plain_lock, [](error_code, const std::string&) {});
  for (const auto n : f.server.open()) f.server.fail(n, errc::overloaded);  // their own deadlines are timers too
  f.locks.reset();
  CHECK(f.timers.idle());
  CHECK(f.subscribers("a") + f.subscribers("b") == 0);
}

// ---- without memory

namespace {

std::vector<record_ptr> kept;  // what was granted; nobody gives it back
void keep(detail::lock_answer a) {
  if (a.record) kept.push_back(std::move(a.record));
}

/// Plays `what` once for each allocation in it, which fails; then what is open is answered, and everything is closed
/// and destroyed.
template <class Prepare, class What>
void starve(Prepare prepare, What what) {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  bool failed = true;
  std::size_t n = 0;
  for (; failed; ++n) {
    INFO("allocation " << n << " fails");
    const guarded_blocks guard;
    engine_fixture f;
    f.settings.observer.reset();  // its own memory is not in question
    kept.clear();
    kept.reserve(10);
    const auto prepared = prepare(f);
    {
      const failing_allocations here(n);
      try {
        what(f, prepared);
      } catch (const std::bad_alloc&) {
      }
      failed = here.happened();
    }
    f.play();
    for (const auto command : f.server.open())
      if (f.server.sent(command).written) f.server.reply(command, f.obey(f.server.sent(command)));
    f.run();
    f.locks->abandon();
    f.run();
    CHECK(f.locks->idle());
    f.locks.reset();
  }
  kept.clear();
  CHECK(n > 2);
}

const auto nobody_hears = [](error_code, const std::string&) {};

detail::lock_request request_of(const config& c, owner who) {
  return {who, true, detail::resolve_terms(c, {}), detail::lock_request::patience::forever};
}

}  // namespace

TEST_CASE("no allocation that fails where a lock is asked for leaves a waiter whom nobody can cancel") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  using patience = detail::lock_request::patience;
  for (const bool others_wait : {false, true})
    for (const auto wait : {patience::forever, patience::until_deadline, patience::once}) {
      bool failed = true;
      for (std::size_t n = 0; failed; ++n) {
        INFO("allocation " << n << " fails");
        const guarded_blocks guard;
        engine_fixture f;
        f.settings.observer.reset();
        std::optional<lock_call> before;
        if (others_wait) before = f.lock("a");
        auto request = request_of(f.settings, owner());
        request.wait = wait;
        if (wait == patience::until_deadline) request.deadline = f.clock.now() + 1h;
        const auto keys = f.keys("a");
        kept.clear();
        kept.reserve(1);
        bool refused = false;
        {
          const failing_allocations here(n);
          try {
            f.locks->lock(keys, request, keep);
          } catch (const std::bad_alloc&) {
            refused = true;
          }
          failed = here.happened();
        }
        if (!refused) continue;
        f.play();
        for (const auto command : f.server.open())
          if (f.server.sent(command).written) f.server.reply(command, f.obey(f.server.sent(command)));
        f.run();
        if (before) f.unlock(*before);
        f.run();
        CHECK(kept.empty());
        f.node.clear();  // the fake link may have sent what it had no memory to keep
        const auto next = f.lock("a");
        f.run();
        CHECK(next.granted());
      }
    }
}

TEST_CASE("no allocation that fails where a lock is granted leaves a hold known that is gone") {
  const owner alice, bob;
  const auto play = [](const std::vector<owner>& who_wait) {
    const auto waiting = [&](engine_fixture& f) {
      for (const auto& who : who_wait) f.locks->lock(f.keys("a"), request_of(f.settings, who), keep);
      f.run();
      f.server.reply(f.server.open().front(), replies::nil());
      return 0;
    };
    starve(waiting, [](engine_fixture& f, int) { f.run(); });
  };
  play({alice, alice, alice});
  play({alice, bob});
}

TEST_CASE("no allocation that fails where a lock is freed leaves a hold known that is gone, or others waiting for it") {
  const auto held = [](engine_fixture& f) {
    auto lease = f.hold("a").value();
    f.lock("a");
    return lease;
  };
  starve(held, [](engine_fixture& f, const record_ptr& lease) { f.locks->unlock(lease, nobody_hears); });
  starve(held, [](engine_fixture& f, const record_ptr& lease) {
    if (lease->try_release()) f.locks->drop(lease);
  });
}

TEST_CASE("no allocation that fails where a nested lock begins or ends leaves a hold known that is gone") {
  const owner alice;
  const auto nested = [&](engine_fixture& f) {
    const auto outer = f.hold("a", by(alice)), inner = f.lock("a", by(alice));
    f.reenters();
    return std::pair(outer.value(), inner.value());
  };
  starve(nested,
         [&](engine_fixture& f, const auto&) { f.locks->lock(f.keys("a"), request_of(f.settings, alice), keep); });
  starve(nested, [](engine_fixture& f, const auto& leases) {
    f.locks->unlock(leases.first, nobody_hears);
    f.locks->unlock(leases.second, nobody_hears);
  });
  const auto answered = [&](engine_fixture& f) {
    auto outer = f.hold("a", by(alice)).value();
    auto longer = request_of(f.settings, alice);
    longer.asked.ttl = 1min;
    f.locks->lock(f.keys("a"), longer, keep);
    f.server.reply(f.server.open().front(), replies::integer(1));
    return outer;
  };
  starve(answered, [](engine_fixture& f, const auto&) { f.run(); });
}

// ---- questions

TEST_CASE_METHOD(engine_fixture, "is_locked asks for the key") {
  verb_call asked;
  const auto ask = [&] {
    asked = {};
    locks->ask().is_locked(keys("a"), [&](error_code e, std::string d, bool v) { asked.answer(e, std::move(d), v); });
  };
  ask();
  CHECK(server.last().line() == "EXISTS a");
  answers(replies::integer(1));
  CHECK(asked.value());
  ask();
  fails(errc::unconfirmed);
  answers(replies::integer(0));
  CHECK_FALSE(asked.value());
  ask();
  fails(errc::unconfirmed);
  fails(errc::unconfirmed);
  CHECK(asked.failed_with(errc::unreachable));
  ask();
  errs("NOPERM no");
  CHECK(asked.failed_with(errc::no_permission));
}

TEST_CASE_METHOD(engine_fixture, "Redis says whether an owner holds, and its client how often") {
  const owner alice;
  const auto a = hold("a", by(alice));
  std::optional<unsigned> count;
  const auto ask = [&](owner who) {
    count.reset();
    locks->hold_count(keys("a"), who, [&](error_code e, const std::string&, unsigned n) {
      if (!e) count = n;
    });
  };
  ask(owner());
  CHECK(count == 0U);
  ask(alice);
  CHECK(server.last().line() == "HGET a " + uuid + ":1");
  answers(replies::string("3"));
  CHECK(count == 1U);
  const auto inner = lock("a", by(alice));
  ask(alice);
  server.reply(server.open().at(1), replies::string("1"));  // before the count was told
  run();
  CHECK(count == 2U);
  reenters();
  ask(alice);
  answers(replies::nil());
  CHECK(count == 0U);
  ask(alice);
  unlock(inner);
  unlock(a);  // its leases are gone, and the answer is older
  answers(replies::string("2"));
  CHECK(count == 2U);
}

TEST_CASE_METHOD(engine_fixture, "holder asks once more if the first answer is lost") {
  call<std::optional<lock_holder>> asked;
  const auto ask = [&] {
    asked = {};
    locks->ask().holder(keys("a"), [&](error_code e, std::string d, auto who) { asked.answer(e, std::move(d), who); });
  };
  const auto a_holder = replies::array({replies::string("u:7"), replies::string("2"), replies::integer(1500)});
  ask();
  CHECK(server.last().argv.at(1) == detail::lua::holder.sha1);
  fails(errc::unconfirmed);
  answers(a_holder);
  CHECK(asked.value()->id == "u:7");
  CHECK(asked.value()->count == 2);
  CHECK(asked.value()->ttl == 1500ms);
  ask();
  answers(replies::nil());
  CHECK_FALSE(asked.value());
  ask();
  fails(errc::unconfirmed);
  fails(errc::unconfirmed);
  CHECK(asked.failed_with(errc::unreachable));
  ask();
  answers(replies::integer(3));
  CHECK(asked.failed_with(errc::corrupt_lock));
}

TEST_CASE_METHOD(engine_fixture, "remaining_ttl asks for the key's TTL") {
  std::optional<milliseconds> ttl;
  error_code error;
  const auto ask = [&] {
    locks->ask().remaining_ttl(
        keys("a"), [&](error_code e, const std::string&, auto t) { std::tie(error, ttl) = std::tie(e, t); });
  };
  ask();
  CHECK(server.last().line() == "PTTL a");
  answers(replies::integer(1500));
  CHECK(ttl == 1500ms);
  ask();
  answers(replies::integer(-2));
  CHECK_FALSE(ttl);
  ask();
  answers(replies::integer(-1));
  CHECK(ttl == milliseconds::max());
}

TEST_CASE_METHOD(engine_fixture, "force_unlock says whether there was a hold and wakes who waits here") {
  const auto waiting = lock("a");
  busy(10s);
  acknowledges("a");
  busy(10s);
  const auto forced = force_unlock("a");
  CHECK(last_sent() == "force_release(a; publish, redisson_lock__channel:{a})");
  answers(replies::integer(1));
  CHECK(forced.value());
  CHECK(last_sent() == "acquire(a; 30000, #1)");
  grants();
  CHECK(waiting.granted());
  const auto none = force_unlock("b");
  answers(replies::integer(0));
  CHECK_FALSE(none.value());
}

TEST_CASE_METHOD(engine_fixture,
                 "a force_unlock whose first answer was lost believes the second only if it found a hold") {
  const auto f = force_unlock("a");
  fails(errc::unconfirmed);
  CHECK(sent("force_release") == 2);
  SECTION("it did") {
    answers(replies::integer(1));
    CHECK(f.succeeded());
    CHECK(f.value());
  }
  SECTION("it found nothing: the first may have broken one") {
    answers(replies::integer(0));
    CHECK(f.failed_with(errc::unconfirmed));
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture, "a hold of ours that is force-unlocked here finds out at once") {
  const auto a = hold("a"), waiting = lock("a");
  force_unlock("a");
  answers(replies::integer(1));
  advance(0ms);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  confirms_nothing();
  CHECK(state(a) == lease_state::lost);
  CHECK(last_sent() == "acquire(a; 30000, #2)");
  grants();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(engine_fixture,
                 "a hold of ours that is force-unlocked elsewhere finds out by the message when somebody waits") {
  const auto a = hold("a"), waiting = lock("a");
  acknowledges("a");
  publishes("a");
  advance(20ms);
  CHECK(last_sent() == "renew(a; 30000, #1)");
  confirms_nothing();
  CHECK(state(a) == lease_state::lost);
  grants();
  CHECK(waiting.granted());
}

TEST_CASE_METHOD(engine_fixture, "the echo of the last holder's release costs a short hold nothing") {
  const auto first = hold("a"), second = lock("a"), third = lock("a");
  acknowledges("a");
  unlock(first);
  frees();
  grants();
  publishes("a");
  advance(19ms);
  unlock(second);
  frees();
  grants();
  CHECK(third.granted());
  CHECK(sent("renew") == 0);
}

// ---- connect()

TEST_CASE_METHOD(engine_fixture, "the probe uses every permission on a name of nobody") {
  verb_call probed;
  locks->probe(detail::plain_lock, [&](error_code e, std::string d) { probed.answer(e, std::move(d)); });
  const auto key = "__probe:" + uuid;
  CHECK(subscribers(key) == 1);
  for (const auto& script :
       {"acquire(" + key + "; 1000, #1)", "recount(" + key + "; 1000, #1, 2)", "renew(" + key + "; 1000, #1)",
        "release(" + key + "; publish, redisson_lock__channel:{" + key + "}, #1)"}) {
    CHECK(last_sent() == script);
    errs("NOSCRIPT No matching script.");
    REQUIRE(in_flight() == 1);  // as text, before anything else
    CHECK(last_sent() == script);
    answers(obey(unanswered()));
  }
  CHECK(in_flight() == 0);
  CHECK(probed.waits());
  acknowledges(key);
  CHECK(probed.succeeded());
  CHECK(subscribers(key) == 0);
  CHECK(timers.idle());
  CHECK(node.empty());
}

TEST_CASE_METHOD(engine_fixture, "the probe ends at the first refusal") {
  verb_call probed;
  locks->probe(detail::plain_lock, [&](error_code e, std::string d) { probed.answer(e, std::move(d)); });
  const auto key = "__probe:" + uuid;
  SECTION("of a command") {
    grants();
    errs("NOPERM this user has no permissions to run the 'evalsha' command");
    CHECK(probed.failed_with(errc::no_permission));
  }
  SECTION("of the subscription") {
    server.refuse(channel(key), errc::no_permission);
    run();
    CHECK(probed.failed_with(errc::no_permission));
  }
  SECTION("of the connection") {
    fails(errc::auth_failed);
    CHECK(probed.failed_with(errc::auth_failed));
  }
  SECTION("by silence") {
    advance(2500ms);
    CHECK(probed.failed_with(errc::unreachable));
  }
  CHECK(subscribers(key) == 0);
  advance(2500ms);
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "each primary is probed, by a name and a channel that live there") {
  const auto stem = "__probe:" + uuid;
  server.each_primary = {"", "{1}", "{2}"};
  lives_on(1, stem + "{1}");
  lives_on(2, stem + "{2}");
  play();
  verb_call probed;
  locks->probe(detail::plain_lock, [&](error_code e, std::string d) { probed.answer(e, std::move(d)); });
  SECTION("all let it") {
    run();
    CHECK(probed.succeeded());
    for (const detail::node_id n : {0U, 1U, 2U}) {
      std::size_t scripts = 0;
      for (std::size_t i = 0; i < server.count(); ++i) scripts += server.sent(i).node == n;
      CHECK(scripts == 4);
    }
  }
  SECTION("one does not") {
    server.refuse(channel(stem + "{2}"), errc::no_permission);
    run();
    CHECK(probed.failed_with(errc::no_permission));
  }
  for (const auto& end : server.each_primary) CHECK(subscribers(stem + end) == 0);
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "primaries that were met by the first probe are probed as well, within its time") {
  const auto stem = "__probe:" + uuid;
  verb_call probed;
  locks->probe(detail::plain_lock, [&](error_code e, std::string d) { probed.answer(e, std::move(d)); });
  lives_on(2, stem);  // nobody knew
  lives_on(1, stem + "{1}");
  server.each_primary = {"", "{1}"};
  advance(1s);
  acknowledges(stem);
  for (int i = 0; i < 5; ++i) answers(obey(unanswered()));
  CHECK(probed.waits());
  CHECK(unanswered().keys() == std::vector{stem + "{1}"});
  advance(1500ms);
  CHECK(probed.failed_with(errc::unreachable));
  CHECK(subscribers(stem + "{1}") == 0);
}

TEST_CASE_METHOD(engine_fixture, "a probe without an acknowledgement is unreachable") {
  verb_call probed;
  locks->probe(detail::plain_lock, [&](error_code e, std::string d) { probed.answer(e, std::move(d)); });
  while (in_flight()) answers(obey(unanswered()));
  advance(2500ms);
  CHECK(probed.failed_with(errc::unreachable));
  CHECK(timers.idle());
}

TEST_CASE_METHOD(engine_fixture, "a probe ends at its deadline though a command was sent anew, and says why") {
  verb_call probed;
  locks->probe(detail::plain_lock, [&](error_code e, std::string d) { probed.answer(e, std::move(d)); });
  advance(2s);
  errs("NOSCRIPT No matching script.");  // its text has the whole time of a command again
  server.why_silent.detail = "fake:6379: Connection refused";
  advance(500ms - 1ns);
  CHECK(probed.waits());
  advance(1ns);
  CHECK(probed.failed_with(errc::unreachable));
  CHECK(probed.detail() == "fake:6379: Connection refused");
  advance(5s);
  CHECK(timers.idle());
}

// ---- observers

TEST_CASE("each acquisition ends in exactly one event, whatever ends it") {
  struct way {
    const char* what;
    void (*end)(engine_fixture&, const lock_call&);
    kind told;
  };
  const way ways[] = {
      {"unlocked",
       [](engine_fixture& f, const lock_call& a) {
         f.unlock(a);
         f.frees();
       },
       kind::released},
      {"dropped",
       [](engine_fixture& f, const lock_call& a) {
         f.drop(a);
         f.frees();
       },
       kind::released},
      {"its release is answered late",
       [](engine_fixture& f, const lock_call& a) {
         f.unlock(a);
         f.advance(1s);
         f.frees();
       },
       kind::release_failed},
      {"its release is never answered",
       [](engine_fixture& f, const lock_call& a) {
         f.unlock(a);
         f.link_down();
       },
       kind::release_failed},
      {"its release is refused",
       [](engine_fixture& f, const lock_call& a) {
         f.unlock(a);
         f.errs("NOPERM this user has no permissions");
       },
       kind::release_failed},
      {"its release finds it gone",
       [](engine_fixture& f, const lock_call& a) {
         f.unlock(a);
         f.not_yours();
       },
       kind::lost},
      {"its renewal finds it gone, and then it is unlocked",
       [](engine_fixture& f, const lock_call& a) {
         f.advance(10s);
         f.confirms_nothing();
         f.unlock(a);
       },
       kind::lost},
      {"its validity ends, and then it is dropped",
       [](engine_fixture& f, const lock_call& a) {
         f.link_down();
         f.advance(1min);
         f.drop(a);
       },
       kind::lost},
      {"its client is closed",
       [](engine_fixture& f, const lock_call& a) {
         f.close();
         f.frees();
         f.unlock(a);
       },
       kind::closed},
      {"its client is closed, and Redis is away",
       [](engine_fixture& f, const lock_call&) {
         f.link_down();
         f.close(100ms);
       },
       kind::closed},
      {"its client is abandoned", [](engine_fixture& f, const lock_call&) { f.locks->abandon(); }, kind::closed},
  };
  for (const auto& w : ways) {
    CAPTURE(w.what);
    engine_fixture f;
    const auto a = f.hold("a");
    w.end(f, a);
    f.advance(2min);
    std::vector<kind> ends;
    for (const auto& e : f.events->all)
      if (ends_hold(e.what)) ends.push_back(e.what);
    CHECK(ends == std::vector{w.told});
    CHECK(f.events->all.front().what == kind::acquired);
  }
}

TEST_CASE_METHOD(engine_fixture, "a re-entry is told as one, with the count, and begins no hold") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice, {.ttl = 1min}));
  reenters();
  CHECK(heard() == "acquired reentered");
  CHECK(last_event().count == 2);
  CHECK(last_event().owner == alice);
  CHECK(last_event().id == uuid + ":1");
  CHECK(last_event().ttl == 1min);
  unlock(inner);
  reenters();
  unlock(outer);
  frees();
  CHECK(heard() == "released");
  CHECK(last_event().count == 0);
}

TEST_CASE_METHOD(engine_fixture, "an event of a hold says whose it is, its token, its TTL and how long") {
  const owner alice;
  auto how = fenced(alice);
  how.options.ttl = 20s;
  const auto a = lock("a", how);
  advance(20ms);
  grants_token(7);
  REQUIRE(heard() == "acquired");
  const auto check_whose = [&] {
    CHECK(last_event().name == "a");
    CHECK(last_event().owner == alice);
    CHECK(last_event().id == uuid + ":1");
    CHECK(last_event().token == 7U);
    CHECK(last_event().ttl == 20s);
  };
  check_whose();
  CHECK(last_event().waited == 20ms);
  CHECK(last_event().count == 1);
  advance(5s);
  SECTION("released") {
    unlock(a);
    advance(10ms);
    frees();
    CHECK(last_event().what == kind::released);
    CHECK(last_event().held == 5s);
  }
  SECTION("suspended") {
    link_down();
    CHECK(last_event().what == kind::suspended);
    CHECK(last_event().held == 5s);
  }
  SECTION("lost") {
    advance(20s);
    CHECK(last_event().what == kind::lost);
  }
  check_whose();
}

TEST_CASE("a loss says how it is known") {
  struct way {
    std::string said;
    void (*lose)(engine_fixture&, const lock_call&);
    lock_options options{};
  };
  const std::string gone = "Redis answered that its key is gone or another's";
  const way ways[] = {
      {gone,
       [](engine_fixture& f, const lock_call&) {
         f.advance(10s);
         f.confirms_nothing();
       }},
      {gone + ", after force_unlock() by this client",
       [](engine_fixture& f, const lock_call&) {
         f.force_unlock("a");
         f.answers(replies::integer(1));
         f.advance(0ms);
         f.confirms_nothing();
       }},
      {"its validity was over, and Redis had not confirmed it again: fake:6379: Connection refused",
       [](engine_fixture& f, const lock_call&) {
         f.server.why_silent.detail = "fake:6379: Connection refused";
         f.link_down();
         f.advance(1min);
       }},
      {"its validity was over, and Redis had not confirmed it again",
       [](engine_fixture& f, const lock_call&) {
         f.clock.skip(1min);
         f.advance(0ms);
       }},
      {"its TTL was over, and nobody wanted it to be renewed",
       [](engine_fixture& f, const lock_call&) { f.advance(5s); },
       {.ttl = 5s}},
      {"its TTL was over, and nobody wanted it to be renewed",
       [](engine_fixture& f, const lock_call&) {
         for (int i = 0; i < 3; ++i) {
           f.advance(10s);
           if (f.in_flight()) f.confirms();
         }
         f.advance(1min);
       },
       {.max_hold = 5s}},
  };
  for (const auto& w : ways) {
    CAPTURE(w.said);
    engine_fixture f;
    const auto a = f.hold("a", with(w.options));
    w.lose(f, a);
    const auto told =
        std::find_if(f.events->all.begin(), f.events->all.end(), [](const auto& e) { return e.what == kind::lost; });
    REQUIRE(told != f.events->all.end());
    CHECK(told->reason == errc::lost);
    CHECK(told->detail == w.said);
    const auto u = f.unlock(a);
    CHECK(u.failed_with(errc::lost));
    CHECK(u.detail() == w.said);
  }
}

TEST_CASE_METHOD(engine_fixture, "an unlock that finds the key gone says so, and whether it was forced") {
  const auto a = hold("a");
  const bool forced = GENERATE(false, true);
  if (forced) {
    force_unlock("a");
    answers(replies::integer(1));
  }
  const auto u = unlock(a);
  not_yours();
  CHECK(u.failed_with(errc::lost));
  CHECK((u.detail().find("force_unlock()") != std::string::npos) == forced);
  CHECK(u.detail().starts_with("Redis answered that its key is gone or another's"));
}

TEST_CASE_METHOD(engine_fixture, "an orderly shutdown is no loss and no failure") {
  const owner alice, bob;
  const auto a = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  const auto waiting = lock("a", by(bob)), asking = lock("b");
  heard();
  const auto c = close();
  while (in_flight()) frees();
  CHECK(c.succeeded());
  CHECK(waiting.failed_with(errc::shutting_down));
  std::map<kind, int> told;
  for (; events->told < events->all.size(); ++events->told) ++told[events->all[events->told].what];
  CHECK(told == std::map<kind, int>{{kind::closed, 1}, {kind::acquire_cancelled, 2}, {kind::released_late, 2}});
}

TEST_CASE_METHOD(engine_fixture, "a lease that was destroyed in the resumption that brought it is told, and no other") {
  const owner alice;
  const auto a = hold("a", by(alice));
  heard();
  const auto hand_over = [&](const lock_call& to) {
    to.value()->handed_over_at = clock.now().time_since_epoch().count();
  };
  const auto destroy = [&](const lock_call& which) {
    which.value()->note_drop();
    drop(which);
  };
  SECTION("at once") {
    hand_over(a);
    clock.skip(10us - 1ns);
    destroy(a);
    CHECK(heard() == "dropped_at_once");
    CHECK(last_event().owner == alice);
    frees();
    CHECK(heard() == "released");
  }
  SECTION("not after a while") {
    hand_over(a);
    clock.skip(10us);
    destroy(a);
    frees();
    CHECK(heard() == "released");
  }
  SECTION("not in another resumption") {
    destroy(a);
    frees();
    CHECK(heard() == "released");
  }
  SECTION("not when it was asked something") {
    hand_over(a);
    a.value()->note_use();
    destroy(a);
    frees();
    CHECK(heard() == "released");
  }
  SECTION("not when its hold goes on") {
    const auto inner = lock("a", by(alice));
    reenters();
    hand_over(inner);
    destroy(inner);
    reenters();
    CHECK(heard() == "reentered");
  }
}

TEST_CASE_METHOD(engine_fixture, "a coroutine that waits for what it has locked without owner is told of at once") {
  const int one = 0;
  const auto a = hold("a", of(&one));
  heard();
  lock("a", of(&one));
  CHECK(heard() == "waiting_for_ourselves");
  CHECK(last_event().name == "a");
}

TEST_CASE_METHOD(engine_fixture,
                 "a wait for a hold of this client is a hint where a coroutine of the two is not known") {
  const int one = 0;
  const auto known = GENERATE_COPY(values<const void*>({nullptr, &one}));
  const auto a = hold("a", of(known));
  heard();
  lock("a", of(known ? nullptr : &one));
  lock("a");
  CHECK(heard() == "perhaps_waiting_for_ourselves perhaps_waiting_for_ourselves");
  CHECK(last_event().name == "a");
}

TEST_CASE_METHOD(engine_fixture, "the next hold is that of the coroutine that waited for it") {
  const int one = 0, other = 0;
  const auto a = hold("a", of(&one));
  const auto next = lock("a", of(&other));
  unlock(a);
  frees();
  grants();
  REQUIRE(next.granted());
  heard();
  lock("a", of(&one));
  CHECK(heard().empty());
  lock("a", of(&other));
  CHECK(heard() == "waiting_for_ourselves");
}

TEST_CASE_METHOD(engine_fixture, "no wait for ourselves is told of where there is none") {
  const owner alice;
  const int one = 0, other = 0;
  const auto a = hold("a", of(&one)), b = hold("b", by(alice));
  heard();
  try_lock("a", of(&one));
  try_lock_for("a", 1s, of(&one));
  lock("a", of(&other));
  lock("a", by(alice));
  lock("b", of(&one));
  lock("c", of(&one));
  CHECK(heard().find("waiting_for_ourselves") == std::string::npos);
}

TEST_CASE("without an observer nothing is told") {
  engine_fixture f;
  f.settings.observer = nullptr;
  const auto a = f.hold("a");
  f.unlock(a);
  f.frees();
  CHECK(f.events->all.empty());
}

// ---- names

TEST_CASE("names of any bytes are keys and channels as Redisson makes them") {
  for (const auto& name : {std::string("\0a", 2), std::string("a\r\n$5\r\n"), std::string("{x}y"), std::string("a{"),
                           std::string(65'536, '%')}) {
    engine_fixture f;
    const auto a = f.hold(name);
    CHECK(f.server.last().keys() == std::vector<std::string>{name});
    CHECK(f.server.last().key == name);
    f.lock(name);
    const auto channel =
        name.find('{') == name.npos ? "redisson_lock__channel:{" + name + "}" : "redisson_lock__channel:" + name;
    CHECK(f.server.subscribers(channel) == 1);
    f.unlock(a);
    CHECK(f.server.last().keys() == std::vector<std::string>{name});
    CHECK(f.server.last().arguments().at(1) == channel);
    CHECK(f.last_event().name == name);
  }
}

TEST_CASE("the prefix is part of keys and channels and not of what the user sees") {
  config c;
  c.key_prefix = "app:{1}:";
  engine_fixture f(c);
  const auto a = f.hold("a");
  CHECK(f.server.last().keys() == std::vector<std::string>{"app:{1}:a"});
  f.unlock(a);
  CHECK(f.server.last().keys() == std::vector<std::string>{"app:{1}:a"});
  CHECK(f.server.last().arguments().at(1) == "redisson_lock__channel:app:{1}:a");
  f.frees();
  CHECK(f.last_event().name == "a");
  CHECK(a.value()->of->keys()->name == "a");
}

TEST_CASE("owner fields are a uuid of version 8 and never repeat") {
  config settings;
  manual_clock clock;
  manual_timers timers(clock);
  fake_topology server(clock, timers);
  seeded_random random(7);
  detail::engine locks({clock, timers, server, random, settings}, {},
                       detail::owner_fields(detail::uuid{random.next(), random.next()}));
  std::vector<std::string> fields;
  for (int i = 0; i < 3; ++i) {
    detail::lock_request r{owner(), false, detail::resolve_terms(settings, {}), detail::lock_request::patience::once};
    locks.lock(std::make_shared<const detail::lock_keys>(detail::plain_lock, "n" + std::to_string(i)), r,
               [](const detail::lock_answer&) {});
    fields.push_back(server.last().arguments().at(1));
  }
  const std::regex form("[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:[0-9]+");
  for (const auto& f : fields) CHECK(std::regex_match(f, form));
  CHECK(fields[0] != fields[1]);
  CHECK(fields[1] != fields[2]);
  CHECK(fields[0].substr(0, 36) == fields[2].substr(0, 36));
}

// ---- how long a release goes on

TEST_CASE_METHOD(
    engine_fixture,
    "a release goes on until the key must be gone, also where a renewal gave it more than its lease's TTL") {
  const auto l = hold("a", with({.ttl = 200ms}));
  const auto longer = renew(l, 30s);
  confirms();
  REQUIRE(longer.succeeded());
  const auto u = unlock(l);
  for (int second = 0; second < 10; ++second) {
    fails(errc::unreachable);
    advance(1s);
  }
  CHECK(u.failed_with(errc::unconfirmed));
  CHECK(in_flight() == 1);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(
    engine_fixture,
    "a release goes on until the key must be gone, also where a re-entry that is queued before it gave it more") {
  const owner alice;
  const auto l = hold("a", by(alice, {.ttl = 200ms, .renew = false}));
  const auto first = try_lock("a", by(alice, {.ttl = 200ms, .renew = false}));
  const auto longer = try_lock("a", by(alice, {.ttl = 30s}));
  const auto u = unlock(l);  // behind both
  fails(errc::unconfirmed);
  fails(errc::unconfirmed);  // it may have run: the key may live for 30 s
  CHECK(longer.failed_with(errc::unreachable));
  for (int second = 0; second < 10; ++second) {
    REQUIRE(in_flight() == 1);
    fails(errc::unreachable);
    advance(1s);
  }
  CHECK(u.failed_with(errc::unconfirmed));
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(engine_fixture,
                 "a release goes on until the key must be gone, also where what gave it more ran late") {
  play();
  const auto l = lock("a", with({.ttl = 200ms, .renew = true}));
  run();
  server.on_command = nullptr;
  const auto asked = clock.now();
  const auto longer = renew(l, 30s);
  const auto late = server.sent(server.count() - 1);
  play();
  advance(499ms);
  obey(late);
  advance(1ms);
  CHECK(longer.failed_with(errc::unreachable));
  advance(asked + 29'900ms - clock.now());
  server.on_command = nullptr;
  const auto u = unlock(l);
  while (clock.now() < asked + 30s + 499ms) {
    REQUIRE_FALSE(locks->idle());
    if (in_flight()) fails(errc::unreachable);
    advance(10ms);
  }
}

TEST_CASE_METHOD(engine_fixture,
                 "an unlock is answered within its own lease's command budget, whatever else was sent for the key") {
  const owner alice;
  const auto l = hold("a", by(alice, {.ttl = 200ms, .renew = false}));
  const auto longer = try_lock("a", by(alice, {.ttl = 30s}));
  fails(errc::unreachable);
  const auto began = clock.now();
  const auto u = unlock(l);
  while (u.waits()) REQUIRE(timers.advance_to_next());
  CHECK(u.failed_with(errc::unconfirmed));
  CHECK(clock.now() - began == 40ms);
}

TEST_CASE_METHOD(engine_fixture,
                 "an unlock is answered within one command timeout, also behind a re-entry that is not answered") {
  const owner alice;
  const auto outer = hold("a", by(alice));
  const auto inner = lock("a", by(alice));
  reenters();
  const auto stuck = try_lock("a", by(alice, {.ttl = 30s}));
  const auto began = clock.now();
  SECTION("the last one: unconfirmed, and it goes on") {
    const auto u = unlock(inner.value()), v = unlock(outer);
    while (v.waits()) REQUIRE(timers.advance_to_next());
    CHECK(u.succeeded());
    CHECK(v.failed_with(errc::unconfirmed));
    CHECK(clock.now() - began == 500ms);
    CHECK(stuck.failed_with(errc::unreachable));
    CHECK(last_sent() == "release(a; publish, redisson_lock__channel:{a}, #1)");
    frees();
    check_nothing_is_left();
  }
  SECTION("not the last one: at once") { CHECK(unlock(inner.value()).succeeded()); }
}

TEST_CASE_METHOD(engine_fixture,
                 "a release goes on until the key must be gone, also where an abandoned re-entry gave it more") {
  const owner alice;
  const auto l = lock("a", by(alice, {.ttl = 200ms, .renew = false}));
  grants();
  const auto inner = lock("a", by(alice, {.ttl = 30s}));
  inner.cancel();
  reenters();
  reenters();
  const auto u = unlock(l);
  for (int second = 0; second < 10; ++second) {
    fails(errc::unreachable);
    advance(1s);
  }
  CHECK(u.failed_with(errc::unconfirmed));
  CHECK(in_flight() == 1);
  frees();
  check_nothing_is_left();
}

// ---- unlocks in an outage

namespace {

struct nested : engine_fixture {
  const owner alice;
  std::vector<lock_call> leases;

  void enter(const std::string& name, lock_options options = {}) {
    const bool again = std::any_of(leases.begin(), leases.end(), [&](const auto& l) {
      return l.value()->of->keys()->name == name && l.value()->state() == lease_state::held;
    });
    leases.push_back(lock(name, by(alice, options)));
    again ? reenters() : grants();
    REQUIRE(leases.back().granted());
  }
  /// One after the other, the last one first, as their scopes end; the time that they take.
  nanoseconds unlock_all() {
    const auto began = clock.now();
    while (!leases.empty()) {
      const auto l = leases.back();
      leases.pop_back();
      const auto u = unlock(l);
      while (u.waits()) REQUIRE(timers.advance_to_next());
      const bool last = l.value()->of->ended();
      CHECK((last || l.value()->of->count() == 0 ? u.failed_with(errc::unconfirmed) : u.succeeded()));
    }
    return clock.now() - began;
  }
  void heal_and_check_nothing_is_left() {
    play();
    link_up();
    while (in_flight() > 0) reenters();
    advance(1min);
    check_nothing_is_left();
  }
};

}  // namespace

TEST_CASE_METHOD(nested, "in an outage the unlocks of nested locks take one command timeout together") {
  const int names = GENERATE(1, 2, 4);
  const bool down = GENERATE(true, false);
  CAPTURE(names, down);
  for (int i = 0; i < 8; ++i) enter("n" + std::to_string(i * names / 8));
  if (down) link_down();
  CHECK(unlock_all() == 500ms);
  heal_and_check_nothing_is_left();
}

TEST_CASE_METHOD(nested, "in an outage the unlocks of nested locks of short TTLs take as long as the longest may") {
  enter("a", {.ttl = 10s});
  enter("b", {.ttl = 1s});
  enter("b", {.ttl = 1s});
  enter("c", {.ttl = 500ms});
  link_down();
  SECTION("the longest last") { CHECK(unlock_all() == 500ms); }
  SECTION("without the longest") {
    leases.erase(leases.begin());
    CHECK(unlock_all() == 200ms);
  }
}

TEST_CASE_METHOD(nested, "a server that answers and will not write costs nested unlocks one command timeout together") {
  for (const auto* name : {"a", "b", "c", "c"}) enter(name);
  std::vector<lock_call> held = std::exchange(leases, {});
  const auto began = clock.now();
  for (; !held.empty(); held.pop_back()) {
    const auto u = unlock(held.back());
    while (u.waits()) {
      while (in_flight() > 0) errs("MISCONF Errors writing to the AOF file: No space left on device");
      if (u.waits()) REQUIRE(timers.advance_to_next());
    }
  }
  CHECK(clock.now() - began == 500ms);
  for (int i = 0; i < 3; ++i) {
    while (in_flight() == 0) REQUIRE(timers.advance_to_next());
    frees();
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(nested, "an unlock that begins long after an outage has cost another its time waits for nothing") {
  enter("a");
  enter("b");
  link_down();
  const auto first = unlock(leases[1]);
  advance(3s);
  CHECK(first.failed_with(errc::unconfirmed));
  const auto second = unlock(leases[0]);
  CHECK(second.failed_with(errc::unconfirmed));
  CHECK_FALSE(locks->idle());
  heal_and_check_nothing_is_left();
}

TEST_CASE_METHOD(nested, "an unlock waits its whole time again when there has been an answer") {
  enter("a");
  enter("b");
  const auto first = unlock(leases[1]);
  SECTION("to another command") {
    advance(500ms);
    const auto other = try_lock("c");
    server.reply_last(replies::nil());
    run();
    CHECK(other.granted());
  }
  SECTION("to the one that was late") {
    advance(520ms);
    frees();
  }
  SECTION("of a new connection") {
    link_down();
    advance(500ms);
    link_up();
  }
  CHECK(first.failed_with(errc::unconfirmed));
  advance(10ms);
  const auto second = unlock(leases[0]);
  advance(500ms - 1ns);
  CHECK(second.waits());
  server.reply_last(replies::integer(1));
  run();
  CHECK(second.succeeded());
}

TEST_CASE_METHOD(nested, "the silence of one server shortens no unlock of another") {
  lives_on(1, "elsewhere");
  enter("a");
  enter("b");
  enter("elsewhere");
  link_down(1);
  const auto first = unlock(leases[2]);
  advance(500ms);
  CHECK(first.failed_with(errc::unconfirmed));
  advance(1s);
  const auto second = unlock(leases[1]);
  advance(500ms - 1ns);
  CHECK(second.waits());
  server.reply_last(replies::integer(1));
  run();
  CHECK(second.succeeded());
  link_down(0);
  const auto third = unlock(leases[0]);
  advance(500ms - 1ns);
  CHECK(third.waits());
  advance(1ns);
  CHECK(third.failed_with(errc::unconfirmed));
}

TEST_CASE_METHOD(nested, "the silence of a server is not that of the one where the key has moved to") {
  enter("a");
  enter("b");
  lives_on(1, "b");
  link_down(0);
  const auto first = unlock(leases[0]);
  advance(100ms);
  move({"a"}, 1);
  REQUIRE(in_flight() == 1);
  advance(500ms);
  CHECK(first.failed_with(errc::unconfirmed));
  advance(1s);
  const auto second = unlock(leases[1]);
  advance(500ms - 1ns);
  CHECK(second.waits());
}

TEST_CASE_METHOD(nested, "a count that could not be lowered in an outage is lowered by what waits for nothing") {
  enter("a");
  enter("a");
  enter("a");
  enter("b");
  link_down();
  unlock(leases[3]);
  advance(500ms);
  const auto u = unlock(leases[2]);
  CHECK(u.succeeded());
  advance(100ms);
  const auto v = unlock(leases[1]);  // behind it
  CHECK(v.succeeded());
  link_up();
  CHECK(wire(server.open().front()).find("release") == 0);
  while (in_flight() > 0) reenters();
  CHECK(last_sent() == "recount(a; 30000, #1, 1)");
}

TEST_CASE_METHOD(nested, "a refusal is no silence, and each unlock hears why") {
  enter("a");
  enter("b");
  for (int i = 1; i >= 0; --i) {
    const auto u = unlock(leases[static_cast<std::size_t>(i)]);
    fails(errc::auth_failed);
    CHECK(u.failed_with(errc::auth_failed));
    advance(1s);
  }
}
