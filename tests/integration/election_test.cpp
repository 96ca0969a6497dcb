// SPDX-License-Identifier: BSL-1.0
// Elections: one candidate leads, everybody reads its term and its value, and observers see each change.
#include <optional>
#include <string>
#include <vector>

#include "integration/cancellable_call.hpp"
#include "integration/wire_fault.hpp"
#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using std::chrono::steady_clock;

namespace {

using leader_now = std::optional<leader_info>;

struct election_world : world {
  client first = make(be_woken), second = make(be_woken);

  static void be_woken(config& c) { c.poll_cap = 60s; }  // by a message, the end of a TTL, or never
  static election of(const client& by) { return by.election("chief"); }
  long long listeners() { return eye("PUBSUB", "NUMSUB", "holdfast_election:{chief}").array()[1].integer(); }
  long long candidates() { return eye("PUBSUB", "NUMSUB", "redisson_lock__channel:{chief}").array()[1].integer(); }
  std::string value_in_redis() { return eye("HGET", "chief", "leader").to_string(); }
  /// Observes until the leader is another one than `known`.
  leader_now next(const client& by, leader_now known) { return run(of(by).next(std::move(known))); }
};

}  // namespace

TEST_CASE_METHOD(election_world, "one candidate leads, and everybody reads its term, value and id") {
  CHECK_FALSE(run(of(second).leader()));
  auto lead = run(of(first).campaign("10.0.0.1:80"));
  REQUIRE(lead.token());
  CHECK_FALSE(run(of(second).try_campaign("10.0.0.2:80")));
  const auto seen = run(of(second).leader());
  REQUIRE(seen);
  CHECK(seen->term == lead.token());
  CHECK(seen->value == "10.0.0.1:80");
  CHECK(seen->id == lead.id());
  CHECK(seen->ttl > 0ms);
  CHECK(seen->ttl <= 30s);
  CHECK(value_in_redis() == "10.0.0.1:80");
  run(lead.unlock());
  CHECK_FALSE(run(of(second).leader()));
  CHECK(locks().empty());
}

TEST_CASE_METHOD(election_world, "a candidate that waits leads as soon as the leader resigns, with a larger term") {
  auto lead = run(of(first).campaign("one"));
  started<lease> waiting(*this, of(second).campaign("two"));
  started<std::optional<lease>> bounded(*this, of(second).try_campaign_for(1h, "three"));
  until([&] { return candidates() == 1; });
  const auto term = lead.token().value();
  run(lead.unlock());
  until([&] { return waiting.succeeded(); }, 3s);
  auto& next = waiting.answer->value();
  CHECK(next.token().value() > term);
  CHECK(value_in_redis() == "two");
  CHECK_FALSE(bounded.answer);
  run(next.unlock());
  until([&] { return bounded.succeeded(); }, 3s);
  CHECK(value_in_redis() == "three");
}

TEST_CASE_METHOD(election_world, "a lease is renewed beside its value, and no renewal changes the value") {
  auto brief = make([](config& c) { c.ttl = 300ms; });
  auto lead = run(of(brief).campaign("one"));
  const auto began = steady_clock::now();
  until([&] { return steady_clock::now() - began > 700ms; });
  CHECK(lead.held());
  CHECK(value_in_redis() == "one");
  CHECK(eye("PTTL", "chief").integer() > 0);
}

TEST_CASE_METHOD(election_world, "a leader changes its value, and observers get it within one message") {
  auto lead = run(of(first).campaign("one"));
  auto known = run(of(second).leader());
  started<leader_now> observing(*this, of(second).next(known));
  until([&] { return listeners() == 1; });
  run(of(first).proclaim(lead, "two"));
  until([&] { return observing.succeeded(); }, 3s);
  known = observing.answer->value();
  REQUIRE(known);
  CHECK(known->value == "two");
  CHECK(known->term == lead.token());
  until([&] { return listeners() == 0; });
}

TEST_CASE_METHOD(election_world, "an observer sees each kind of change") {
  leader_now known;
  std::uint64_t term = 0;
  const auto sees = [&](auto change) {
    started<leader_now> observing(*this, of(second).next(known));
    until([&] { return listeners() == 1; });
    pass(1ms);  // the look after the acknowledgement
    CHECK_FALSE(observing.answer);
    change();
    until([&] { return observing.succeeded(); }, 3s);
    known = observing.answer->value();
    until([&] { return listeners() == 0; });
  };
  std::optional<lease> lead;
  sees([&] { lead.emplace(run(of(first).campaign("one"))); });
  REQUIRE(known);
  CHECK(known->value == "one");
  term = known->term;
  sees([&] { run(lead->unlock()); });
  CHECK_FALSE(known);
  sees([&] { lead.emplace(run(of(first).campaign("one"))); });
  REQUIRE(known);
  CHECK(known->term > term);
  sees([&] { CHECK(run(of(second).force_unlock())); });
  CHECK_FALSE(known);
  CHECK_FALSE(run(of(second).force_unlock()));
}

TEST_CASE_METHOD(election_world, "an observer that is late gets the leader at once") {
  auto lead = run(of(first).campaign("one"));
  const auto known = next(second, {});
  REQUIRE(known);
  CHECK(known->value == "one");
  auto other = *known;
  other.value = "zero";
  CHECK(next(second, other)->value == "one");
  other = *known;
  other.id = "another";
  CHECK(next(second, other)->value == "one");
  other = *known;
  --other.term;
  CHECK(next(second, other)->term == known->term);
}

TEST_CASE_METHOD(election_world, "an end by TTL is seen without a message, when the TTL is over") {
  const auto ttl = 300ms;
  auto lead = run(of(first).campaign("one", {.ttl = ttl}));
  const auto known = run(of(second).leader());
  REQUIRE(known);
  started<leader_now> observing(*this, of(second).next(known));
  started<lease> waiting(*this, of(second).campaign("two"));
  until([&] { return waiting.succeeded(); }, 10s);
  until([&] { return observing.succeeded(); }, 10s);
  const auto later = observing.answer->value();
  // The candidate was elected in the same moment, or a moment later.
  if (later) CHECK(later->term == waiting.answer->value().token());
  CHECK_FALSE(lead.held());
}

TEST_CASE_METHOD(election_world, "a leader of a lower term than the known one is passed over") {
  auto lead = run(of(first).campaign("one"));
  auto known = run(of(second).leader());
  REQUIRE(known);
  ++known->term;
  started<leader_now> observing(*this, of(second).next(known));
  until([&] { return listeners() == 1; });
  run(of(first).proclaim(lead, "two"));
  CHECK_FALSE(observing.answer);
  run(lead.unlock());
  until([&] { return observing.succeeded(); }, 3s);
  CHECK_FALSE(observing.answer->value());
}

TEST_CASE_METHOD(election_world, "a value is any bytes, at most 64 KiB") {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  bytes.resize(64 * 1024, '\r');
  auto lead = run(of(first).campaign(bytes));
  CHECK(run(of(second).leader())->value == bytes);
  CHECK(code_of(of(first).proclaim(lead, bytes + "x")) == errc::invalid_argument);
  CHECK(code_of(of(second).try_campaign(bytes + "x")) == errc::invalid_argument);
  CHECK(code_of(of(second).campaign(bytes + "x")) == errc::invalid_argument);
  CHECK(code_of(of(second).candidate(bytes + "x").lock()) == errc::invalid_argument);
  CHECK(code_of(of(second).try_campaign_for(-1ms, "x")) == errc::invalid_wait);
  run(of(first).proclaim(lead, ""));
  CHECK(run(of(second).leader())->value.empty());
  run(lead.unlock());
}

TEST_CASE_METHOD(election_world, "a proclamation without the lead is refused, and nothing is written") {
  CHECK(code_of(of(first).proclaim({}, "x")) == errc::not_held);
  auto lead = run(of(first).campaign("one"));
  const auto plain = run(first.mutex("plain").lock());
  CHECK(code_of(of(first).proclaim(plain, "x")) == errc::not_held);
  CHECK(code_of(of(second).proclaim(lead, "x")) == errc::not_held);
  CHECK(code_of(first.election("other").proclaim(lead, "x")) == errc::not_held);
  CHECK(value_in_redis() == "one");
  run(lead.unlock());
  CHECK(code_of(of(first).proclaim(lead, "x")) == errc::not_held);
  lead = run(of(first).campaign("two"));
  eye("DEL", "chief");
  const auto other = run(of(second).campaign("three"));
  CHECK(code_of(of(first).proclaim(lead, "x")) == errc::lost);
  CHECK_FALSE(lead.held());
  CHECK(value_in_redis() == "three");
  run(first.shutdown(1s));
  CHECK(code_of(of(first).proclaim(lead, "x")) == errc::closed);
}

TEST_CASE_METHOD(election_world, "an owner that leads campaigns in vain") {
  const owner own;
  const auto e = first.election("chief", own);
  auto lead = run(e.campaign("one"));
  CHECK(code_of(e.campaign("two")) == errc::already_held);
  CHECK(code_of(e.try_campaign("two")) == errc::already_held);
  CHECK(value_in_redis() == "one");
}

TEST_CASE_METHOD(election_world, "an RFencedLock of the same name excludes candidates, and has a term alone") {
  const auto holder = "57a9e700-0000-4000-8000-000000000000:1";
  eye("HSET", "chief", holder, 1);
  eye("PEXPIRE", "chief", 60'000);
  eye("SET", "redisson_lock_token:{chief}", 41);
  CHECK_FALSE(run(of(first).try_campaign("one")));
  const auto known = run(of(second).leader());
  REQUIRE(known);
  CHECK(known->term == 41);
  CHECK(known->value.empty());
  CHECK(known->id.empty());
  started<leader_now> observing(*this, of(second).next(known));
  until([&] { return listeners() == 1; });
  pass(1ms);
  CHECK_FALSE(observing.answer);
  CHECK(code_of(of(first).force_unlock()) == errc::corrupt_lock);
  CHECK(run(first.fenced_mutex("chief").force_unlock()));
  auto lead = run(of(first).campaign("one"));
  CHECK(lead.token().value() > 41);
  until([&] { return observing.succeeded(); }, 3s);
}

TEST_CASE_METHOD(election_world, "the key of another kind of lock, or of data, is reported and left alone") {
  const auto refused = [&](bool may_be_busy) {
    CHECK(code_of(of(first).leader()) == errc::corrupt_lock);
    CHECK(code_of(of(first).next({})) == errc::corrupt_lock);
    CHECK(code_of(of(first).force_unlock()) == errc::corrupt_lock);
    if (!may_be_busy) CHECK(code_of(of(first).campaign("one")) == errc::corrupt_lock);
    CHECK_FALSE((may_be_busy && run(of(first).try_campaign("one"))));
  };
  SECTION("a string") {
    eye("SET", "chief", "text");
    refused(false);
    CHECK(eye("GET", "chief") == "text");
  }
  SECTION("a hash of data") {
    eye("HSET", "chief", "leader", "somebody", "term", "long", "id", "7");
    eye("PEXPIRE", "chief", 60'000);
    refused(true);
    CHECK(eye("HLEN", "chief") == 3);
  }
  SECTION("a shared mutex") {
    const auto held = run(second.shared_mutex("chief").lock());
    refused(true);
    CHECK(held.held());
  }
  SECTION("and by other kinds") {
    auto lead = run(of(first).campaign("one"));
    CHECK_FALSE(run(second.mutex("chief").try_lock()));
    CHECK(code_of(second.mutex("chief").force_unlock()) == errc::corrupt_lock);
    CHECK(code_of(second.simple_mutex("chief").lock()) == errc::corrupt_lock);
    CHECK(code_of(second.latch("chief").count_down()) == errc::corrupt_lock);
    run(lead.renew());
    CHECK(value_in_redis() == "one");
    run(lead.unlock());
  }
}

TEST_CASE_METHOD(election_world, "the term outlives the counter of the terms") {
  auto brief = make([](config& c) {
    c.ttl = 100ms;
    c.token_ttl = 200ms;
  });
  auto lead = run(of(brief).campaign("one"));
  eye("DEL", "redisson_lock_token:{chief}");
  CHECK(run(of(second).leader())->term == lead.token());
  run(of(brief).proclaim(lead, "two"));
  CHECK(run(of(second).leader())->term == lead.token());
}

TEST_CASE_METHOD(election_world, "an observer that is cancelled leaves no subscription") {
  cancellable_call<leader_now> observing(*this, of(second).next({}));
  until([&] { return listeners() == 1; });
  observing.cancel();
  until([&] { return observing.answer.has_value(); });
  CHECK(observing.answer->error() == asio::error::operation_aborted);
  until([&] { return listeners() == 0; });
}

TEST_CASE_METHOD(election_world, "a client that drains or closes lets nobody observe") {
  auto held = run(second.mutex("m").lock());
  started<leader_now> observing(*this, of(second).next({}));
  until([&] { return listeners() == 1; });
  started<void> draining(*this, second.drain(10s));
  until([&] { return observing.answer.has_value(); });
  CHECK(observing.answer->error() == errc::shutting_down);
  CHECK(code_of(of(second).next({})) == errc::shutting_down);
  CHECK_FALSE(run(of(second).leader()));
  run(held.unlock());
  until([&] { return draining.answer.has_value(); });
  CHECK(code_of(of(second).leader()) == errc::shutting_down);
  started<leader_now> closed(*this, of(first).next({}));
  until([&] { return listeners() == 1; });
  run(first.shutdown(1s));
  until([&] { return closed.answer.has_value(); });
  CHECK(closed.answer->error() == errc::shutting_down);
}

TEST_CASE("a campaign or a proclamation of which any command or reply is lost gives one term and the last value") {
  world w;
  proxy net(w.server);
  for (const auto& fault : wire_faults)
    for (std::size_t n = 1;; ++n) {
      INFO(fault.name << ", number " << n);
      const auto fired = net.count().fired;
      w.eye("SCRIPT", "FLUSH");  // so that each script is sent twice
      {
        auto redis = w.make([&](config& c) {
          c.url = net.url();
          c.command_timeout = fault.silent ? 60ms : 2s;
          c.connect_timeout = fault.silent ? 100ms : 2s;
        });
        const auto chief = redis.election("chief");
        fault.to_server ? net.at_command({.what = fault.done, .n = n}) : net.at_reply({.what = fault.done, .n = n});
        started<lease> elected(w, chief.campaign("one"));
        w.until([&] { return elected.answer.has_value(); });
        REQUIRE(elected.succeeded());
        const auto& lead = elected.answer->value();
        started<void> changed(w, chief.proclaim(lead, "two"));
        w.until([&] { return changed.answer.has_value(); });
        const bool may_fail = fault.silent && !changed.succeeded();
        if (may_fail) CHECK(lead.held());
        CHECK((changed.succeeded() || may_fail));
        net.release();
        w.until([&] { return !w.code_of(chief.proclaim(lead, "three")); });
        CHECK(w.eye("HGET", "chief", "leader") == "three");
        CHECK(w.eye("HGET", "chief", "term") == std::to_string(lead.token().value()));
        w.run(redis.shutdown(5s));
      }
      net.heal();
      w.until([&] { return w.eye("EXISTS", "chief") == 0; });
      if (net.count().fired == fired) break;
    }
}
