// SPDX-License-Identifier: BSL-1.0
// The calls of a fair mutex, and the readers of their answers.
#include "protocol/fair/fair_lock.hpp"

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "topology/cluster/slots.hpp"
#include "unit/protocol/expected_calls.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::fair_lock;
using detail::place_field;
namespace fair_steps = detail::fair_steps;

namespace {

const detail::lock_keys a(fair_lock, "a"),
    tagged(fair_lock, "{x}a", {.prefix = "p:", .word = detail::publish_word::automatic});

redis::outcome answer_of(redis::reply reply) { return {{}, std::move(reply)}; }

words on_a(const words& arguments) {
  words all{"3", "a", "redisson_lock_queue:{a}", "redisson_lock_timeout:{a}"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}
std::string text_of_place(const std::string& number) { return std::string(some_client.text()) + ":" + number; }
redis::reply three(long long state, const char* place, redis::reply told) {
  return replies::array({replies::integer(state), replies::string(place), std::move(told)});
}

}  // namespace

TEST_CASE("a fair mutex has the keys of Redisson's fair lock, and each place a channel of its own") {
  CHECK(detail::channel_of(a) == "redisson_lock__channel:{a}");
  CHECK(fair_lock.places.channel(a, place_field(some_client, 3)) ==
        "redisson_lock__channel:{a}:" + text_of_place("1000000003"));
  CHECK(fair_lock.places.channel(tagged, place_field(some_client, 15)) ==
        "redisson_lock__channel:p:{x}a:" + text_of_place("1000000015"));
  CHECK(fair_lock.ordered());
  CHECK_FALSE(detail::plain_lock.ordered());
  CHECK(&fair_lock.layout != &detail::plain_lock.layout);
  CHECK(fair_lock.renew == detail::plain_lock.renew);
}

TEST_CASE("an acquire of a fair mutex names a suspect only if there is one") {
  const std::string nobody, suspect = "v:1000000000";
  CHECK(operands(fair_lock.acquire.make(a, 30s, u1)) == on_a({"30000", "u:1", "publish"}));
  CHECK(operands(fair_lock.places.acquire(a, 30s, u1, nobody)) == on_a({"30000", "u:1", "publish"}));
  CHECK(operands(fair_lock.places.acquire(a, 30s, u1, suspect)) == on_a({"30000", "u:1", "publish", suspect}));
  CHECK(by_digest(fair_lock.acquire.make(a, 30s, u1))[1] == detail::lua::fair_acquire.sha1);
  CHECK(fair_lock.acquire.make(a, 30s, u1).step() == fair_lock.places.acquire(a, 30s, u1, suspect).step());
}

TEST_CASE("a client says which of its places stand, and the others leave") {
  const std::array places{place_field(some_client, 7), place_field(some_client, 0)};
  CHECK(operands(fair_lock.places.stand.make(a, places)) == on_a({"publish", "u", "1000000007", "1000000000"}));
  CHECK(operands(fair_lock.places.leave(a, u1)) == on_a({"publish", "u"}));
  CHECK(by_digest(fair_lock.places.leave(a, u1))[1] == detail::lua::fair_stand.sha1);
  CHECK(by_digest(fair_lock.places.waiters.make(a)) == words{"LLEN", "redisson_lock_queue:{a}"});
}

TEST_CASE("a release of a fair mutex may take it for the next waiter of its client") {
  const detail::renewal next{&a, u2, {30s}};
  CHECK(operands(fair_lock.release.make(a, u1)) == on_a({"publish", "u:1"}));
  CHECK(operands(fair_lock.places.release.make(a, u1, next)) == on_a({"publish", "u:1", "u:2", "30000"}));
  CHECK(by_digest(fair_lock.places.release.make(a, u1, next))[1] == detail::lua::fair_release.sha1);
  CHECK(operands(fair_lock.force_release.make(a)) == on_a({"publish"}));
  CHECK(operands(fair_lock.force_release.make(tagged)) ==
        words{"3", "p:{x}a", "redisson_lock_queue:p:{x}a", "redisson_lock_timeout:p:{x}a", "auto"});
}

TEST_CASE("the other calls of a fair mutex are those of a plain lock") {
  CHECK(operands(fair_lock.set_hold_count.make(a, {1s, 2s}, u1, 2)) == words{"1", "a", "1000", "u:1", "2", "2000"});
  CHECK(by_digest(fair_lock.count.make(a, u1)) == words{"HGET", "a", "u:1"});
  CHECK(by_digest(fair_lock.holder.make(a))[1] == detail::lua::holder.sha1);
}

TEST_CASE("the keys and channels of a fair mutex are in the slot of its name") {
  for (const auto* name : {"a", "{x}a", "b{a}c{d}", "a b:c"}) {
    const detail::lock_keys keys(fair_lock, name);
    const auto slot = detail::slot_of(name);
    const auto all = operands(fair_lock.release.make(keys, u1));
    for (std::size_t i = 1; i <= 3; ++i) CHECK(detail::slot_of(all[i]) == slot);
    CHECK(detail::slot_of(fair_lock.places.channel(keys, place_field(some_client, 0))) == slot);
  }
}

TEST_CASE("a fair mutex is acquired, busy, or free for the place whose turn it is") {
  using kind = detail::acquire_answer::kind;
  const auto read = [](redis::reply reply) { return fair_lock.acquire.read(answer_of(std::move(reply))); };
  CHECK(read(replies::integers({1, 0})).value.type == kind::acquired);
  CHECK_FALSE(read(replies::integers({1, 4})).value.place);
  const auto turn = [&](const std::string& number) {
    return read(replies::array({replies::integer(1), replies::integer(2), replies::string(text_of_place(number))}));
  };
  CHECK(turn("1000000003").value.place == 3);
  CHECK(turn("1000000015").value.place == 15);
  for (const auto* number : {"1000000016", "999999999", "x", "", "1000000003x"}) {
    CHECK(turn(number).value.type == kind::acquired);
    CHECK_FALSE(turn(number).value.place);
  }
  CHECK(read(replies::integers({0, 1500})).value.holder_ttl == 1500ms);
  CHECK(read(replies::integers({0, -1})).value.type == kind::busy_without_ttl);
  const auto reserved = read(three(0, "ignored", replies::nil()));
  CHECK(reserved.failed->code == errc::protocol_error);
  const auto others = read(replies::array({replies::integer(0), replies::integer(-2), replies::string("v:7")}));
  CHECK(others.value.type == kind::busy);
  CHECK(others.value.reserved);
  CHECK(others.value.turn == "v:7");
  for (const auto& strange : {replies::nil(), replies::integer(1), replies::integers({2, 0}),
                              replies::integers({0, -2}), replies::integers({0, -3}), replies::integers({1, 0, 0}),
                              replies::array({replies::integer(0), replies::integer(5), replies::string("v:7")})})
    CHECK(read(strange).failed->code == errc::protocol_error);
}

TEST_CASE("only a primary can grant a fair mutex, and a replica may say that it is busy") {
  const auto call = fair_lock.acquire.make(a, 30s, u1);
  CHECK(call.acquires());
  CHECK(call.shows_primary(replies::integers({1, 0})));
  CHECK_FALSE(call.shows_primary(replies::integers({0, 1500})));
}

TEST_CASE("a release of a fair mutex tells whose turn it is, or that the next waiter holds it") {
  const auto read = [](redis::reply reply) { return fair_lock.places.release.read(answer_of(std::move(reply))); };
  const auto freed = read(three(1, "v:7", replies::integer(2)));
  CHECK(freed.value.told == 2U);
  CHECK(freed.value.turn == "v:7");
  CHECK_FALSE(freed.value.rides);
  const auto rides = read(three(2, text_of_place("1000000004").c_str(), replies::integer(0)));
  CHECK(rides.value.rides);
  CHECK(rides.value.told == 0U);
  CHECK(rides.value.place == 4);
  CHECK(read(three(2, "", replies::integer(0))).value.rides);
  CHECK_FALSE(read(three(2, "", replies::integer(0))).value.place);
  CHECK(read(replies::nil()).value.told == std::nullopt);
  const auto withheld = three(1, "v:7", replies::string("NOPERM no channel"));
  CHECK(read(withheld).value.told == 0U);
  CHECK(detail::withheld_message(answer_of(withheld)));
  CHECK_FALSE(detail::withheld_message(answer_of(three(1, "v:7", replies::integer(1)))));
  for (const auto& strange : {replies::integer(1), three(0, "", replies::integer(0)), three(3, "", replies::integer(0)),
                              three(1, "", replies::nil()), three(1, "", replies::integer(-1)),
                              replies::integers({1, 0, 0}), replies::integers({1, 0})})
    CHECK(read(strange).failed->code == errc::protocol_error);
}

TEST_CASE("a release without a next waiter cannot be taken over") {
  const auto read = [](redis::reply reply) { return fair_lock.release.read(answer_of(std::move(reply))); };
  CHECK(read(three(1, "", replies::integer(0))).value == 0U);
  CHECK(read(three(1, "v:7", replies::integer(1))).value == 1U);
  CHECK(read(replies::nil()).value == std::nullopt);
  CHECK(read(three(2, "", replies::integer(0))).failed->code == errc::protocol_error);
}

TEST_CASE("a client that stands learns the TTL of the lock, and how many stand") {
  const auto read = [](redis::reply reply) { return fair_lock.places.stand.read(answer_of(std::move(reply))); };
  CHECK(read(replies::integers({1500, 3})).value.ttl == 1500ms);
  CHECK(read(replies::integers({1500, 3})).value.standing == 3);
  CHECK(read(replies::integers({-2, 1})).value.ttl == std::nullopt);
  CHECK(read(replies::integers({-1, 1})).value.ttl == std::chrono::milliseconds::max());
  for (const auto& strange : {replies::nil(), replies::integers({1}), replies::integers({-3, 0}),
                              replies::integers({0, -1}), replies::integers({1, 2, 3})})
    CHECK(read(strange).failed->code == errc::protocol_error);
  CHECK(fair_lock.places.waiters.read(answer_of(replies::integer(7))).value == 7);
  CHECK(fair_lock.places.waiters.read(answer_of(replies::nil())).failed->code == errc::protocol_error);
}
