// SPDX-License-Identifier: BSL-1.0
// The calls of a semaphore, and the readers of its answers.
#include <chrono>
#include <string>
#include <vector>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "protocol/permits/permit_lock.hpp"
#include "unit/protocol/expected_calls.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::permit_lock;

namespace {

const detail::permit_keys a(permit_lock, "a", {}, 3), tagged(permit_lock, "{x}a", {.prefix = "p:"}, 3);
const detail::owner_field one(some_client, 7), two(some_client, 8, 2);

/// The id of the n-th number of the client.
std::string id(char number) { return std::string("\0\0\0\0\0\0\x80\0\0\0\0\0\0\0\0", 15) + number; }

redis::outcome answer_of(redis::reply reply) { return {{}, std::move(reply)}; }
redis::reply state(long long left, long long out, long long next, const std::string& first, long long held) {
  return replies::array({replies::integer(left), replies::integer(out), replies::integer(next), replies::string(first),
                         replies::integer(held)});
}

}  // namespace

TEST_CASE(
    "a semaphore has Redisson's keys, a door beside them, and Redisson's "
    "channel") {
  CHECK(operands(permit_lock.release.make(a, one)) ==
        words{"2", "a", "{a}:timeout", "publish", "redisson_sc:{a}", id(7)});
  CHECK(operands(permit_lock.semaphore.make(tagged)) == words{"2", "p:{x}a", "p:{x}a:timeout", "3", ""});
  CHECK(detail::channel_of(tagged) == "redisson_sc:p:{x}a");
}

TEST_CASE("a semaphore's calls have the operands of their scripts") {
  const std::vector both{one, two};
  const std::vector<detail::renewal> holds{{&a, one, {1s}}, {&tagged, two, {2s, 3s}}};
  CHECK(by_digest(permit_lock.acquire.make(a, 30s, one)) ==
        words{"EVALSHA", std::string(detail::lua::permits_acquire.sha1), "3", "a", "{a}:timeout", "holdfast_turn:{a}",
              "30000", "3", "0", "publish", "redisson_sc:{a}", "1", "1", id(7)});
  CHECK(operands(permit_lock.acquire_party.make(a, 30s, both, true)) ==
        words{"3", "a", "{a}:timeout", "holdfast_turn:{a}", "30000", "3", "600", "publish", "redisson_sc:{a}", "2", "1",
              "2", id(7), id(8), id(9)});
  CHECK(operands(permit_lock.renew.make(holds)) ==
        words{"2", "{a}:timeout", "p:{x}a:timeout", "2", "1", "2", "1000", "2000", id(7), id(8), id(9)});
  CHECK(operands(permit_lock.renew.make_one(a, {1s}, two)) ==
        words{"1", "{a}:timeout", "1", "2", "1000", id(8), id(9)});
  CHECK(operands(permit_lock.release.make(a, two)) ==
        words{"3", "a", "{a}:timeout", "holdfast_turn:{a}", "publish", "redisson_sc:{a}", id(8), id(9)});
  CHECK(operands(permit_lock.force_release.make(a)) ==
        words{"2", "a", "{a}:timeout", "3", "publish", "redisson_sc:{a}"});
  CHECK(operands(permit_lock.set_permits.make(a, 5)) ==
        words{"2", "a", "{a}:timeout", "5", "publish", "redisson_sc:{a}"});
  CHECK(operands(permit_lock.count.make(a, one)) == words{"2", "a", "{a}:timeout", "3", id(7)});
}

TEST_CASE(
    "an acquire of permits is granted, or busy until the next permit "
    "ends, or kept out by a door") {
  using kind = detail::acquire_answer::kind;
  const auto read = [](long long state, long long number) {
    return permit_lock.acquire.read(answer_of(replies::integers({state, number})));
  };
  CHECK(read(1, 2).value.type == kind::acquired);
  CHECK(read(0, 1500).value.type == kind::busy);
  CHECK(read(0, 1500).value.holder_ttl == 1500ms);
  CHECK(read(0, 922'337'203'685'477).value.holder_ttl == 24h);
  CHECK(read(0, -1).value.type == kind::busy);
  CHECK(read(0, -1).value.holder_ttl == 24h);  // nothing ends by itself
  CHECK(read(-1, 600).value.holder_ttl == 600ms);
  for (const auto& [state, number] : {std::pair(2, 0), std::pair(-2, 0), std::pair(-1, -1), std::pair(0, -2)})
    CHECK(read(state, number).failed->code == errc::protocol_error);
  const auto party = [](long long state, long long number) {
    return permit_lock.acquire_party.read(answer_of(replies::integers({state, number})), 3);
  };
  CHECK(party(3, 0).value.served == 3);
  CHECK_FALSE(party(3, 7).value.holder_ttl);
  CHECK(party(2, 7).value.type == kind::acquired);
  CHECK(party(2, 7).value.served == 2);
  CHECK(party(2, 7).value.holder_ttl == 7ms);  // of the third
  CHECK(party(4, 0).failed);
  CHECK(party(0, 7).value.type == kind::busy);
}

TEST_CASE(
    "only a primary can grant permits, and anybody can say that there "
    "are too few") {
  const auto shows = [](long long state) {
    return permit_lock.acquire.make(a, 30s, one).shows_primary(replies::integers({state, 0}));
  };
  CHECK(shows(1));
  CHECK_FALSE(shows(0));
  CHECK_FALSE(shows(-1));
}

TEST_CASE("a release of permits tells how many came back and how many were told") {
  const auto read = [](redis::reply reply) { return permit_lock.release.read(answer_of(std::move(reply))); };
  CHECK(read(replies::integers({1, 4})).value == 4U);
  CHECK(read(replies::nil()).value == std::nullopt);
  const auto withheld = replies::array({replies::integer(1), replies::string("NOPERM no channel")});
  CHECK(read(withheld).value == 0U);
  CHECK(detail::withheld_message(answer_of(withheld)));
  CHECK_FALSE(detail::withheld_message(answer_of(replies::integers({1, 4}))));
  for (const auto& strange : {replies::integers({0, 1}), replies::integers({1, -1}), replies::integers({1}),
                              replies::array({replies::integer(1), replies::nil()}), replies::integer(1)})
    CHECK(read(strange).failed->code == errc::protocol_error);
  CHECK(permit_lock.force_release.read(answer_of(replies::integers({3, 0}))).value == 3);
  CHECK(permit_lock.force_release.read(answer_of(replies::integers({0, 0}))).value == 0);
}

TEST_CASE(
    "as a lock a semaphore is taken when nothing is left, and its holder "
    "has the permit that ends next") {
  const auto full = answer_of(state(0, 2, 1500, std::string("\x01\xab", 2), 1));
  CHECK(permit_lock.exists.read(full).value);
  CHECK(permit_lock.ttl.read(full).value == 1500ms);
  const auto holder = permit_lock.holder.read(full).value;
  REQUIRE(holder);
  CHECK(holder->field == "01ab");
  CHECK(holder->count == 1);
  CHECK(holder->ttl == 1500ms);
  CHECK(permit_lock.count.read(full, one).value == 1);
  const auto unused = answer_of(state(3, 0, -1, "", 0));
  CHECK_FALSE(permit_lock.exists.read(unused).value);
  CHECK_FALSE(permit_lock.ttl.read(unused).value);
  CHECK_FALSE(permit_lock.holder.read(unused).value);
  CHECK(permit_lock.count.read(unused, one).value == 0);
  CHECK(permit_lock.exists.read(answer_of(state(-2, 3, 1, "x", 0))).value);
  for (const auto& strange : {state(0, -1, 1, "", 0), state(0, 1, -2, "", 0), state(0, 1, 1, "", 2),
                              replies::integers({1, 2, 3, 4, 0}), replies::nil()})
    CHECK(permit_lock.exists.read(answer_of(strange)).failed->code == errc::protocol_error);
}
