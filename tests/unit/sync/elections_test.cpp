// SPDX-License-Identifier: BSL-1.0
// Elections in an engine: values are written in the order of their calls, and an observer leaves nothing behind.
#include <vector>

#include "base/cancelled.hpp"
#include "protocol/election/election_lock.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

using leader = std::optional<detail::leader_answer>;
using leader_call = call<leader>;

const detail::leader_answer one{30s, 50, "other:1", "one"};

redis::reply told(const detail::leader_answer& of) {
  return replies::array({replies::integer(of.ttl.count()), replies::string(std::to_string(of.term)),
                         replies::string(of.field), replies::string(of.value.value())});
}

/// Calls that wait, and holds, as an observer counts them.
struct election_count final : observer {
  int waiters = 0, held = 0;

  void measured(const measurement& each) noexcept override {
    const bool begins = each.kind == measurement_kind::wait_began, ends = each.kind == measurement_kind::wait_ended;
    if (begins || ends) CHECK(each.lock_kind == "election");
    waiters += begins - ends;
  }
  void on(const event& each) noexcept override {
    const bool begins = each.kind == event_kind::acquired, ends = ends_hold(each.kind);
    if (begins || ends) CHECK(each.lock_kind == "election");
    held += begins - ends;
  }
};

/// Leases outlive their engine.
struct kept_candidates {
  std::vector<lock_call> candidates;
};

struct election_fixture : kept_candidates, engine_fixture {
  election_fixture() : engine_fixture(brief()) {}

  static config brief() {
    auto settings = without_turns();
    settings.command_timeout = 100ms;
    settings.poll_cap = 60s;
    return settings;
  }
  static std::shared_ptr<const detail::election_keys> chief(std::string value = {}) {
    return std::make_shared<const detail::election_keys>(detail::election_keys("a"), std::move(value));
  }
  std::string observers() const { return detail::election_steps::observers_channel(*chief()); }

  lock_call campaign(std::string value = "one") {
    const auto c = candidates.emplace_back();
    const detail::lock_request request{.owner = owner(), .asked = detail::resolve_terms(settings, {})};
    c.place(locks->lock(chief(std::move(value)), request,
                        [c](detail::lock_answer answer) { c.answer(answer.failed, std::move(answer.value)); }));
    return c;
  }
  lock_call lead() {
    const auto c = campaign();
    grants_token(50);
    REQUIRE(c.granted());
    heard();
    return c;
  }
  verb_call proclaim(const lock_call& of, std::string value) {
    verb_call c;
    c.place(locks->elections().proclaim(of.value(), chief(std::move(value)),
                                        [c](const std::optional<detail::failure>& failed) { c.answer(failed); }));
    return c;
  }
  leader_call next(leader after = {}) {
    leader_call c;
    c.place(locks->elections().next(chief(), std::move(after),
                                    [c](auto&& answer) { c.answer(answer.failed, std::move(answer.value)); }));
    return c;
  }
  /// An observer of `known` that has found no change, and listens.
  leader_call next_and_listen(const leader& known = one) {
    const auto c = next(known);
    const auto state = known ? told(*known) : replies::nil();
    answers(state);
    server.acknowledge(observers());
    answers(state);
    CHECK(c.waits());
    return c;
  }
  std::string proclaimed(const std::string& value) const {
    return "proclaim(a; #1, " + value + ", publish, " + observers() + ")";
  }
  void check_nothing_is_left() {
    engine_fixture::check_nothing_is_left();
    CHECK(server.subscribers(observers()) == 0);
  }
};

}  // namespace

TEST_CASE_METHOD(election_fixture, "a candidate is elected with its value, and its term is the token") {
  const auto c = campaign();
  CHECK(last_sent() == "campaign(a, redisson_lock_token:{a}; 30000, #1, one, publish, " + observers() + ")");
  grants_token(50);
  CHECK(c.value()->of->token() == 50U);
  unlock(c);
  CHECK(last_sent() == "resign(a; publish, redisson_lock__channel:{a}, " + observers() + ", #1)");
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(election_fixture, "a lead is not passed on: the next candidate of the client asks Redis") {
  const auto first = lead(), second = campaign("two");
  unlock(first);
  frees();
  run();
  CHECK(last_sent() == "campaign(a, redisson_lock_token:{a}; 30000, #2, two, publish, " + observers() + ")");
  grants_token(51);
  CHECK(second.value()->of->token() == 51U);
}

// A leader is observed for as long as a program runs. So its observers would hide the candidates.
TEST_CASE_METHOD(election_fixture,
                 "candidates that wait and lead are counted under their kind, and observers are not") {
  const auto count = std::make_shared<election_count>();
  settings.observer = count;
  const auto first = lead();
  CHECK(count->held == 1);
  CHECK(count->waiters == 0);
  const auto second = campaign("two");
  CHECK(count->waiters == 1);
  auto observer = next_and_listen();
  CHECK(count->waiters == 1);
  observer.cancel();
  unlock(first);
  frees();
  run();
  CHECK(count->held == 0);
  grants_token(51);
  CHECK(count->held == 1);
  CHECK(count->waiters == 0);
}

TEST_CASE_METHOD(election_fixture, "values are written one after the other, in the order of their calls") {
  const auto c = lead();
  const auto two = proclaim(c, "two"), three = proclaim(c, "three");
  CHECK(in_flight() == 1);
  CHECK(last_sent() == proclaimed("two"));
  answers(replies::integer(0));
  CHECK(two.succeeded());
  CHECK(last_sent() == proclaimed("three"));
  answers(replies::integer(0));
  CHECK(three.succeeded());
  unlock(c);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(election_fixture, "a value whose answer is lost is sent again before the next one") {
  const auto c = lead();
  const auto two = proclaim(c, "two"), three = proclaim(c, "three");
  fails(errc::unconfirmed);
  CHECK(last_sent() == proclaimed("two"));
  CHECK(two.waits());
  fails(errc::unconfirmed);
  CHECK(two.error() == errc::unconfirmed);
  CHECK(state(c) == lease_state::held);
  CHECK(last_sent() == proclaimed("three"));
  answers(replies::integer(0));
  CHECK(three.succeeded());
}

TEST_CASE_METHOD(election_fixture,
                 "a value that may have been written is unconfirmed, whatever its second copy meets") {
  const auto c = lead();
  const auto two = proclaim(c, "two");
  fails(errc::unconfirmed);
  SECTION("an error of the server") { errs("OOM command not allowed"); }
  SECTION("a connection that is gone") { fails(errc::unreachable); }
  CHECK(two.error() == errc::unconfirmed);
  CHECK(state(c) == lease_state::held);
}

TEST_CASE_METHOD(election_fixture, "a leader that Redis does not know is lost") {
  const auto c = lead();
  const auto two = proclaim(c, "two"), three = proclaim(c, "three");
  answers(replies::nil());
  CHECK(two.failed_with(errc::lost));
  CHECK(three.failed_with(errc::lost));
  CHECK(heard() == "lost");
  CHECK(proclaim(c, "four").failed_with(errc::lost));
  unlock(c);
  check_nothing_is_left();
}

TEST_CASE_METHOD(election_fixture, "a leader proclaims in no other election") {
  const auto c = lead();
  const auto other = std::make_shared<const detail::election_keys>(detail::election_keys("b"), "two");
  verb_call two;
  two.place(locks->elections().proclaim(c.value(), other,
                                        [two](const std::optional<detail::failure>& failed) { two.answer(failed); }));
  CHECK(two.failed_with(errc::not_held));
  CHECK(in_flight() == 0);
}

TEST_CASE_METHOD(election_fixture, "a key that is no lock ends the lead") {
  const auto c = lead();
  const auto two = proclaim(c, "two");
  errs("WRONGTYPE x");
  CHECK(two.failed_with(errc::corrupt_lock));
  CHECK(state(c) == lease_state::lost);
}

TEST_CASE_METHOD(election_fixture, "a refusal of the server leaves the lead as it was") {
  const auto c = lead();
  const auto two = proclaim(c, "two");
  errs("OOM command not allowed");
  CHECK(two.failed_with(errc::server_refused));
  CHECK(state(c) == lease_state::held);
  unlock(c);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(election_fixture, "a value that nobody was told of is written, and the observer hears why") {
  const auto c = lead();
  const auto two = proclaim(c, "two");
  answers(replies::string("NOPERM no channel"));
  CHECK(two.succeeded());
  CHECK(heard() == "notifications_degraded");
}

TEST_CASE_METHOD(election_fixture, "an unlock waits for the values before it, and no value follows it") {
  const auto c = lead();
  const auto two = proclaim(c, "two"), three = proclaim(c, "three");
  const auto unlocked = unlock(c);
  CHECK(proclaim(c, "four").failed_with(errc::not_held));
  answers(replies::integer(0));
  CHECK(two.succeeded());
  CHECK(three.failed_with(errc::not_held));
  CHECK(last_sent().starts_with("resign(a;"));
  frees();
  CHECK(unlocked.succeeded());
  check_nothing_is_left();
}

TEST_CASE_METHOD(election_fixture, "a caller that is cancelled goes at once, and its value may still be written") {
  const auto c = lead();
  const auto two = proclaim(c, "two"), three = proclaim(c, "three");
  three.cancel();
  two.cancel();
  CHECK(two.failed_with(detail::cancelled()));
  CHECK(three.failed_with(detail::cancelled()));
  answers(replies::integer(0));
  CHECK(in_flight() == 0);
  unlock(c);
  frees();
  check_nothing_is_left();
}

TEST_CASE_METHOD(election_fixture, "a leader whose validity ends meanwhile is lost, and so are its callers") {
  const auto c = lead();
  link_down();
  const auto two = proclaim(c, "two");
  advance(100ms);
  CHECK(two.failed_with(errc::unreachable));
  CHECK(state(c) == lease_state::suspended);
  advance(31s);
  CHECK(state(c) == lease_state::lost);
  CHECK(proclaim(c, "three").failed_with(errc::lost));
}

TEST_CASE_METHOD(election_fixture, "a close ends a proclamation as closed") {
  const auto c = lead();
  const auto two = proclaim(c, "two"), three = proclaim(c, "three");
  const auto closed = close();
  CHECK(two.failed_with(errc::closed));
  CHECK(three.failed_with(errc::closed));
  CHECK(proclaim(c, "four").failed_with(errc::closed));
  play_all();
  CHECK(closed.succeeded());
}

TEST_CASE_METHOD(election_fixture, "an engine that ends answers nobody who proclaims") {
  const auto c = lead();
  const auto two = proclaim(c, "two"), three = proclaim(c, "three");
  locks.reset();
  CHECK(two.waits());
  CHECK(three.waits());
}

TEST_CASE("an observer takes another leader, none, and another value for news, but no lower term") {
  const auto changed = [](auto change) {
    auto other = one;
    change(other);
    return detail::is_news(one, other);
  };
  CHECK_FALSE(detail::is_news({}, {}));
  CHECK_FALSE(detail::is_news(one, one));
  CHECK(detail::is_news({}, one));
  CHECK(detail::is_news(one, {}));
  CHECK(changed([](auto& other) { ++other.term; }));
  CHECK(changed([](auto& other) { other.value = "two"; }));
  CHECK(changed([](auto& other) { other.value.reset(); }));
  CHECK(changed([](auto& other) { other.field = "other:2"; }));
  CHECK_FALSE(changed([](auto& other) { other.ttl = 1s; }));
  CHECK_FALSE(changed([](auto& other) {
    --other.term;
    other.value = "two";
    other.field = "other:2";
  }));
}

TEST_CASE_METHOD(election_fixture, "an observer that is late gets the leader by one look") {
  const auto c = next();
  CHECK(last_sent() == "observe(a, redisson_lock_token:{a})");
  answers(told(one));
  REQUIRE(c.value());
  CHECK(c.value()->term == 50);
  CHECK(server.subscribe_calls(observers()) == 0);
  check_nothing_is_left();
}

TEST_CASE_METHOD(election_fixture, "an observer looks again after a message") {
  const auto c = next_and_listen();
  CHECK(in_flight() == 0);
  server.push(observers(), "51");
  auto two = one;
  two.term = 51;
  answers(told(two));
  CHECK(c.value()->term == 51);
  check_nothing_is_left();
}

TEST_CASE_METHOD(election_fixture, "an observer looks again when the TTL that it has read is over") {
  const auto c = next_and_listen();
  advance(30s);
  CHECK(in_flight() == 0);
  advance(1ms);
  CHECK(in_flight() == 1);
  answers(replies::nil());
  CHECK_FALSE(c.value());
  check_nothing_is_left();
}

TEST_CASE_METHOD(election_fixture, "an observer of a lock without TTL looks again after the poll cap") {
  auto endless = one;
  endless.ttl = -1ms;  // as PTTL says it
  const auto c = next_and_listen(endless);
  advance(53s);
  CHECK(in_flight() == 0);
  advance(7s);
  CHECK(in_flight() == 1);
}

TEST_CASE_METHOD(election_fixture, "an observer passes an older leader over, and waits on") {
  const auto c = next_and_listen();
  server.push(observers(), "49");
  auto older = one;
  older.term = 49;
  answers(told(older));
  CHECK(c.waits());
}

TEST_CASE_METHOD(election_fixture, "an observer that is cancelled anywhere leaves nothing") {
  SECTION("at its first look") {
    const auto c = next(one);
    c.cancel();
    CHECK(c.failed_with(detail::cancelled()));
    answers(told(one));
  }
  SECTION("while it is parked") {
    const auto c = next_and_listen();
    c.cancel();
    CHECK(c.failed_with(detail::cancelled()));
    c.cancel();
  }
  check_nothing_is_left();
}

TEST_CASE_METHOD(election_fixture, "an observer waits through an outage") {
  const auto c = next_and_listen();
  link_down();
  advance(10s);
  CHECK(c.waits());
  link_up();
  play_all();
  advance(settings.poll_cap);
  CHECK_FALSE(c.value());
}

TEST_CASE_METHOD(election_fixture, "a drain ends every observer and refuses new ones") {
  const auto held = hold("m");
  const auto c = next_and_listen();
  locks->drain(10s, [] {});
  CHECK(c.failed_with(errc::shutting_down));
  CHECK(next().failed_with(errc::shutting_down));
  unlock(held);
  frees();
  advance(1ms);
}

TEST_CASE_METHOD(election_fixture, "a close ends every observer and refuses new ones") {
  const auto c = next_and_listen();
  close();
  CHECK(c.failed_with(errc::shutting_down));
  CHECK(next().failed_with(errc::shutting_down));
}

TEST_CASE_METHOD(election_fixture, "an engine that ends answers no observer") {
  const auto c = next_and_listen(), other = next();
  locks.reset();
  CHECK(c.waits());
  CHECK(other.waits());
  c.cancel();
}

TEST_CASE_METHOD(election_fixture, "the simulated server elects, tells and forgets a leader") {
  play();
  const auto played = [this](const auto& c) {
    run();
    return c;
  };
  const auto observing = played(next());
  CHECK(observing.waits());
  const auto first = played(campaign("one"));
  REQUIRE(first.granted());
  const auto known = observing.value();
  REQUIRE(known);
  CHECK(known->term == first.value()->of->token());
  CHECK(known->value == "one");
  const auto changed = played(next(known));
  CHECK(changed.waits());
  CHECK(played(proclaim(first, "two")).succeeded());
  REQUIRE(changed.value());
  CHECK(changed.value()->value == "two");
  const auto ended = played(next(changed.value()));
  CHECK(played(renew(first)).succeeded());
  CHECK(ended.waits());
  CHECK(played(unlock(first)).succeeded());
  CHECK_FALSE(ended.value());
  CHECK(node.command({"EXISTS", "a"}).integer == 0);
}
