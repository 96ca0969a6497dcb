// SPDX-License-Identifier: BSL-1.0
#include "sync/line/discipline.hpp"

#include <holdfast/owner.hpp>

#include <memory>

#include "support/catch.hpp"
#include "support/replies.hpp"

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::detail::attempts;
using holdfast::detail::first_asks;
using holdfast::detail::lock_keys;

namespace {

holdfast::redis::outcome reply(holdfast::redis::reply of) { return {.error = {}, .reply = std::move(of)}; }

const lock_keys simple(holdfast::detail::simple_lock, "a"), plain(holdfast::detail::plain_lock, "a");

}  // namespace

TEST_CASE("only the first waiter of a line asks, and for itself alone") {
  CHECK(first_asks().asks(0));
  CHECK_FALSE(first_asks().asks(1));
  CHECK(first_asks().served_at_once(3) == 1);
  CHECK(first_asks().channel(plain) == "redisson_lock__channel:{a}");
}

TEST_CASE("a first try is the kind's cheaper command, and each other attempt is the script") {
  const attempts script, first{.field = {}, .first_try = true};
  const holdfast::detail::lock_request request{.owner = holdfast::owner(),
                                               .asked = {.ttl = 30s, .renew = true, .max_hold = {}}};
  const auto bytes = [&](const attempts& tries) {
    std::string text;
    first_asks().attempt_of(simple, request, tries).append_to(text, false);
    return text;
  };
  CHECK_THAT(bytes(first), contains_text("NX"));
  CHECK_THAT(bytes(script), contains_text("EVALSHA"));
  // A first try learns no TTL.
  CHECK_FALSE(first_asks().read(simple.of, first, reply(replies::nil())).value.holder_ttl);
  CHECK(first_asks().read(simple.of, script, reply(replies::integer(700))).value.holder_ttl == 700ms);
}

TEST_CASE("an error reply refuses a first try and says nothing about the lock") {
  const attempts script, first{.field = {}, .first_try = true};
  CHECK(first_asks().refuses_first_try(first, reply(replies::error("READONLY"))));
  CHECK_FALSE(first_asks().refuses_first_try(script, reply(replies::error("READONLY"))));
  CHECK_FALSE(first_asks().refuses_first_try(first, reply(replies::nil())));
  CHECK_FALSE(first_asks().refuses_first_try(first, {.error = holdfast::errc::unconfirmed, .reply = {}}));
}

TEST_CASE("a waiter that leaves with an unanswered attempt needs a release everywhere") {
  CHECK(first_asks().may_have_granted({.field = {}, .unanswered = 1}) == holdfast::detail::everywhere);
  CHECK(first_asks().may_have_granted({}) == holdfast::detail::nowhere);
}
