// SPDX-License-Identifier: BSL-1.0
#include "protocol/call.hpp"

#include "unit/protocol/expected_calls.hpp"

using namespace holdfast::detail;
using namespace holdfast::test;
using holdfast::detail::call;

namespace {

const lock_keys a(plain_lock, "a");

const call::recipe script{"*2\r\n", "the text", [](call::writer& to, const call::operands& o) {
                            to.begin(1, 3);
                            to.add(o.at->lock);
                            to.add(*o.field);
                            to.add(o.ttl.ttl);
                            to.add(std::int64_t{o.count});
                          }};

}  // namespace

TEST_CASE("a script goes out by its text with the number of its keys") {
  const call c(script, {.at = &a, .field = &u1, .ttl = {milliseconds(7)}, .count = 3});
  CHECK(by_text(c) == words{"EVAL", "the text", "1", "a", "u:1", "7", "3"});
  CHECK(c.key() == "a");
}

TEST_CASE("a command of redis goes out as it is, however it is asked for") {
  const call::recipe plain{{}, "HGET", script.write};
  const call c(plain, {.at = &a, .field = &u1, .ttl = {milliseconds(7)}, .count = 3});
  CHECK(by_text(c) == words{"HGET", "a", "u:1", "7", "3"});
  CHECK(by_digest(c) == by_text(c));
}

TEST_CASE("an answer shows a primary where a replica cannot give it") {
  using namespace holdfast::detail;
  const auto shows = [](call::effect does, const holdfast::redis::reply& answer) {
    const call::recipe how{"*2\r\n", "the text", script.write, nullptr, does};
    return call(how, {.at = &a, .field = &u1}).shows_primary(answer);
  };
  using effect = call::effect;
  const auto refused = replies::error("NOPERM"), busy = replies::integer(7), granted = replies::nil(),
             token = replies::array({replies::integer(7)});
  CHECK(shows(effect::takes, granted));
  CHECK(shows(effect::takes, token));
  CHECK_FALSE(shows(effect::takes, busy));
  CHECK(shows(effect::writes, granted));
  CHECK(shows(effect::writes, busy));
  for (const auto does : {effect::asks, effect::other}) CHECK_FALSE(shows(does, granted));
  for (const auto does : {effect::takes, effect::writes}) CHECK_FALSE(shows(does, refused));
}

TEST_CASE("a call of many holds goes to the server of the first") {
  const lock_keys b(plain_lock, "b"), c(plain_lock, "c");
  const renewal both[] = {{&b, u1, {milliseconds(1)}}, {&c, u2, {milliseconds(1)}}};
  CHECK(call(script, {.holds = both}).key() == "b");
}
