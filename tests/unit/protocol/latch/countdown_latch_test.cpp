// SPDX-License-Identifier: BSL-1.0
// The names and calls of a latch, and the readers of its answers.
#include <chrono>
#include <memory>
#include <string>

#include "api/arguments.hpp"
#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "protocol/latch/countdown_latch.hpp"
#include "unit/protocol/expected_calls.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::countdown_latch;
using detail::latch_call_keys;
using detail::lock_keys;
using detail::name_fault;

namespace {

const lock_keys a(countdown_latch, "a"), tagged(countdown_latch, "{x}a", {.prefix = "p:"});
const latch_call_keys of_a(a, 3, 61s, u1), of_tagged(tagged, 4'294'967'295U, 1min, u2);

std::string mark_of(const std::string& before, const char* number) {
  return before + std::string(some_client.text()) + ':' + number;
}
redis::outcome answer_of(redis::reply reply) { return {{}, std::move(reply)}; }

}  // namespace

TEST_CASE("a latch has Redisson's key, and Redisson's channel, which has braces around any name") {
  CHECK(detail::channel_of(a) == "redisson_countdownlatch__channel__{a}");
  CHECK(detail::channel_of(tagged) == "redisson_countdownlatch__channel__{p:{x}a}");
  CHECK(by_digest(detail::latch_steps::count(tagged)) == words{"GET", "p:{x}a"});
}

TEST_CASE("the calls of a latch have the operands of their scripts") {
  CHECK(by_digest(countdown_latch.release.make(of_a, u1)) ==
        words{"EVALSHA", std::string(detail::lua::count_down.sha1), "2", "a", mark_of("holdfast_done:{a}:", "1"), "3",
              "61000", "publish", "redisson_countdownlatch__channel__{a}"});
  CHECK(operands(countdown_latch.release.make(of_tagged, u2)) ==
        words{"2", "p:{x}a", mark_of("holdfast_done:p:{x}a:", "2"), "4294967295", "60000", "publish",
              "redisson_countdownlatch__channel__{p:{x}a}"});
  CHECK(by_digest(detail::latch_steps::try_set(of_a)) == words{"EVALSHA", std::string(detail::lua::latch_set.sha1), "2",
                                                               "a", mark_of("holdfast_done:{a}:", "1"), "3", "61000",
                                                               "publish", "redisson_countdownlatch__channel__{a}"});
}

TEST_CASE("in a cluster the name of a latch has no brace") {
  const auto in_cluster = [](const char* name, const char* prefix) {
    return detail::latch_keys(name, {.prefix = prefix, .in_slots = true});
  };
  CHECK(in_cluster("a", "p:")->fault == name_fault::none);
  for (const auto* const name : {"{x}a", "a{", "a}", "a{}"})
    CHECK(in_cluster(name, "")->fault == name_fault::has_a_brace);
  CHECK(in_cluster("a", "{p}:")->fault == name_fault::has_a_brace);
  CHECK(in_cluster("", "{p}:")->fault == name_fault::empty);
  CHECK(detail::latch_keys("{x}a")->fault == name_fault::none);
  CHECK_THROWS_WITH(detail::check_name(*in_cluster("{x}a", "")),
                    Catch::Contains("the name of a latch may have no brace"));
}

TEST_CASE("a count-down tells how many clients its message has reached, and why none if it was refused") {
  const auto read = [](redis::reply reply) { return countdown_latch.release.read(answer_of(std::move(reply))); };
  CHECK(read(replies::integers({2, 0})).value == 0U);
  CHECK(read(replies::integers({0, 4})).value == 4U);
  const auto withheld = replies::array({replies::integer(0), replies::string("NOPERM no channel")});
  CHECK(read(withheld).value == 0U);
  CHECK(detail::withheld_message(answer_of(withheld)));
  CHECK(read(replies::error("HOLDFAST no lock: a string")).failed->code == errc::corrupt_lock);
  for (const auto& strange :
       {replies::integers({-1, 0}), replies::integers({0, -1}), replies::integers({0}),
        replies::array({replies::integer(0), replies::nil()}), replies::integer(1), replies::nil()})
    CHECK(read(strange).failed->code == errc::protocol_error);
}

TEST_CASE("a set tells whether it has set the count") {
  const auto read = [](redis::reply reply) { return detail::latch_steps::read_set(answer_of(std::move(reply))); };
  CHECK(read(replies::integers({1, 4})).value);
  CHECK_FALSE(read(replies::integers({0, 0})).value);
  CHECK(read(replies::array({replies::integer(1), replies::string("NOPERM no channel")})).value);
  for (const auto& strange : {replies::integers({2, 0}), replies::integers({1}), replies::integer(1), replies::nil(),
                              replies::array({replies::integer(1), replies::nil()})})
    CHECK(read(strange).failed->code == errc::protocol_error);
}

TEST_CASE("a count is a number, and a latch without one is open") {
  const auto read = [](redis::reply reply) { return detail::latch_steps::read_count(answer_of(std::move(reply))); };
  CHECK(read(replies::nil()).value == 0);
  CHECK(read(replies::string("7")).value == 7);
  CHECK(read(replies::string("9000000000000000000")).value == 4'294'967'295U);
  CHECK(read(replies::string("-7")).value == 0);
  for (const auto* const text : {"", "-", "text", "1.5", "99999999999999999999"})
    CHECK(read(replies::string(text)).failed->code == errc::corrupt_lock);
  CHECK(read(replies::integer(1)).failed->code == errc::protocol_error);
  CHECK(read(replies::error("WRONGTYPE x")).failed->code == errc::corrupt_lock);
}
