// SPDX-License-Identifier: BSL-1.0
// The names and calls of an election, and the readers of its answers.
#include <memory>
#include <string>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "protocol/election/election_lock.hpp"
#include "unit/protocol/expected_calls.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::election_keys;
using detail::election_lock;

namespace {

const election_keys a("a"), with_value(a, "v\r\n"), tagged(election_keys("{x}a", {.prefix = "p:"}), "w");

redis::outcome answer_of(redis::reply reply) { return {{}, std::move(reply)}; }
auto leader_in(redis::reply reply) { return detail::election_steps::read_leader(answer_of(std::move(reply))); }
redis::reply leads(long long ttl, const char* term, const char* owner, const char* value) {
  return replies::array({replies::integer(ttl), replies::string(term), replies::string(owner), replies::string(value)});
}

}  // namespace

TEST_CASE("an election has the keys and the channel of an RFencedLock, and a channel for observers") {
  CHECK(detail::channel_of(a) == "redisson_lock__channel:{a}");
  CHECK(detail::election_steps::observers_channel(a) == "holdfast_election:{a}");
  CHECK(detail::election_steps::observers_channel(tagged) == "holdfast_election:p:{x}a");
  CHECK(&election_lock.layout != &detail::fenced_lock.layout);
}

TEST_CASE("the names of a candidate are those of its election, and faults of a name stay") {
  CHECK(tagged.lock == "p:{x}a");
  CHECK(tagged.name == "{x}a");
  CHECK(tagged.value == "w");
  CHECK(a.value.empty());
  const election_keys split("a}", {.prefix = {}, .in_slots = true});
  CHECK(split.fault == detail::name_fault::splits_slots);
  CHECK(election_keys(split, "v").fault == detail::name_fault::splits_slots);
  CHECK(election_keys(election_keys(""), "v").fault == detail::name_fault::empty);
}

TEST_CASE("the calls of an election have the operands of their scripts") {
  const std::string digest(detail::lua::campaign.sha1);
  CHECK(by_digest(election_lock.acquire.make(with_value, 30s, u1)) ==
        words{"EVALSHA", digest, "2", "a", "redisson_lock_token:{a}", "30000", "u:1", "v\r\n", "publish",
              "holdfast_election:{a}"});
  CHECK(operands(election_lock.acquire.make(tagged, 10ms, u2).with_token_ttl(1h)) ==
        words{"2", "p:{x}a", "redisson_lock_token:p:{x}a", "10", "u:2", "w", "publish", "holdfast_election:p:{x}a",
              "3600000"});
  CHECK(operands(detail::election_steps::proclaim(with_value, u1)) ==
        words{"1", "a", "u:1", "v\r\n", "publish", "holdfast_election:{a}"});
  CHECK(operands(election_lock.release.make(a, u1)) ==
        words{"1", "a", "publish", "redisson_lock__channel:{a}", "holdfast_election:{a}", "u:1"});
  CHECK(operands(election_lock.force_release.make(a)) ==
        words{"1", "a", "publish", "redisson_lock__channel:{a}", "holdfast_election:{a}"});
  CHECK(operands(detail::election_steps::observe(a)) == words{"2", "a", "redisson_lock_token:{a}"});
  CHECK(by_digest(election_lock.last_token.make(a)) == words{"GET", "redisson_lock_token:{a}"});
}

TEST_CASE("a lock of an election is renewed together with the locks of a mutex") {
  CHECK(election_lock.renew == detail::plain_lock.renew);
}

TEST_CASE("a leader has a TTL, a term, an owner and a value") {
  CHECK_FALSE(leader_in(replies::nil()).value);
  const auto found = leader_in(leads(7, "42", "u:1", "v\r\n")).value;
  REQUIRE(found);
  CHECK(found->ttl == 7ms);
  CHECK(found->term == 42);
  CHECK(found->field == "u:1");
  CHECK(found->value == "v\r\n");
  CHECK(leader_in(leads(-1, "1", "u:1", "")).value->ttl == milliseconds::max());
  const auto peer = leader_in(replies::array({replies::integer(7), replies::string("0"), replies::string("f:1")}));
  REQUIRE(peer.value);
  CHECK(peer.value->term == 0);
  CHECK_FALSE(peer.value->value);
}

TEST_CASE("an answer that no leader has is no leader") {
  CHECK(leader_in(leads(7, "x", "u:1", "")).failed->code == errc::corrupt_lock);
  CHECK(leader_in(leads(7, "9007199254740993", "u:1", "")).failed->code == errc::corrupt_lock);
  CHECK(leader_in(replies::error("HOLDFAST no lock: a hash")).failed->code == errc::corrupt_lock);
  for (const auto& strange :
       {leads(-2, "1", "u:1", ""), leads(-3, "1", "u:1", ""), replies::integers({1, 2, 3}), replies::integer(1),
        replies::array({replies::integer(1), replies::string("1"), replies::integer(1)}),
        replies::array({replies::integer(1), replies::string("1"), replies::string("u"), replies::nil()}),
        replies::array({replies::integer(1), replies::string("1")})})
    CHECK(leader_in(strange).failed->code == errc::protocol_error);
}

TEST_CASE("a holder and a count are read in the answer about the leader") {
  const auto reply = leads(7, "42", "u:1", "v");
  const auto holder = election_lock.holder.read(answer_of(reply));
  REQUIRE(holder.value);
  CHECK(holder.value->field == "u:1");
  CHECK(holder.value->count == 1);
  CHECK(holder.value->ttl == 7ms);
  const auto mine = std::string(std::string_view(u1.to_text()));
  CHECK(election_lock.count.read(answer_of(leads(7, "42", mine.c_str(), "v")), u1).value == 1);
  CHECK(election_lock.count.read(answer_of(reply), u2).value == 0);
  CHECK(election_lock.count.read(answer_of(replies::nil()), u1).value == 0);
}

TEST_CASE("a proclamation says whether the owner leads, and why observers were not told") {
  const auto read = [](redis::reply reply) {
    return detail::election_steps::read_proclaim(answer_of(std::move(reply)));
  };
  CHECK(read(replies::integer(3)).value == 3U);
  CHECK_FALSE(read(replies::nil()).value);
  CHECK(read(replies::string("NOPERM no channel")).value == 0U);
  CHECK(detail::withheld_message(answer_of(replies::string("NOPERM no channel"))));
  CHECK(read(replies::integer(-1)).failed->code == errc::protocol_error);
}
