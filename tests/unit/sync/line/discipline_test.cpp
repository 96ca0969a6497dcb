// SPDX-License-Identifier: BSL-1.0
#include "sync/line/discipline.hpp"

#include <holdfast/owner.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "support/catch.hpp"
#include "support/replies.hpp"
#include "sync/line/acquisition.hpp"

using namespace std::chrono_literals;
using namespace holdfast::test;
using holdfast::detail::attempts;
using holdfast::detail::first_asks;
using holdfast::detail::lock_keys;
using holdfast::detail::lock_request;

namespace {

lock_request wants(std::chrono::milliseconds ttl) {
  return {.owner = holdfast::owner(),
          .asked = {.ttl = holdfast::detail::terms::duration(ttl), .renew = true, .max_hold = {}}};
}
struct a_call_for_several final : holdfast::detail::all_or_none_part {
  void part_is_first(std::size_t) override {}
  bool nothing_asked(std::size_t) const override { return false; }
  std::optional<holdfast::redis::failure> silence_of_all() const override { return {}; }
  holdfast::detail::time_point since() const noexcept override { return {}; }
} several;
const holdfast::detail::owner_field no_field;
const std::span<const holdfast::detail::owner_field> alone{&no_field, 1};

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
  const auto request = wants(30s);
  const auto bytes = [&](const attempts& tries) {
    std::string text;
    first_asks().attempt_of(simple, request, tries, alone).append_to(text, false);
    return text;
  };
  CHECK_THAT(bytes(first), contains_text("NX"));
  CHECK_THAT(bytes(script), contains_text("EVALSHA"));
  // A first try learns no TTL.
  CHECK_FALSE(first_asks().read(simple.of, first, reply(replies::nil()), 1).value.holder_ttl);
  CHECK(first_asks().read(simple.of, script, reply(replies::integer(700)), 1).value.holder_ttl == 700ms);
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

TEST_CASE("a waiter that stands needs a release everywhere") {
  CHECK(first_asks().may_have_granted({.field = {}, .stands = true}) == holdfast::detail::everywhere);
}

TEST_CASE("a party has waiters of the same terms, and a hundred permits at most") {
  lock_request first = wants(30s), next = wants(30s);
  attempts tries_of_first{}, tries{};
  std::size_t amount = 99;
  CHECK(first_asks().goes_along(first, tries_of_first, next, tries, amount));
  SECTION("another TTL") { next.asked.ttl = 20s; }
  SECTION("replicas") { first.asked.min_replicas = next.asked.min_replicas = 1; }
  SECTION("replicas for the next alone") { next.asked.min_replicas = 1; }
  SECTION("a part of several locks") { next.whole = &several; }
  SECTION("an attempt without an answer behind a new field") { tries.unanswered = 1; }
  SECTION("a trace in Redis") { tries.stands = true; }
  SECTION("more than fit into a command") { next.amount = 2; }
  CHECK_FALSE(first_asks().goes_along(first, tries_of_first, next, tries, amount));
}

TEST_CASE("waiters whose attempt has no answer go along behind a first waiter of the same") {
  const attempts unanswered{.field = {}, .unanswered = 1};
  CHECK(first_asks().goes_along(wants(30s), unanswered, wants(30s), unanswered, 1));
  CHECK(first_asks().goes_along(wants(30s), unanswered, wants(30s), {}, 1));
}
