// SPDX-License-Identifier: BSL-1.0
#include "protocol/vote/majority.hpp"

#include "support/catch.hpp"
#include "support/replies.hpp"
#include "unit/protocol/expected_calls.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
namespace by_majority = detail::by_majority;

namespace {

/// Answers of as many primaries; an empty one has not answered.
struct round_of {
  explicit round_of(std::vector<std::optional<redis::reply>> answers) {
    for (auto& a : answers) {
      all.where.push_back("node" + std::to_string(all.where.size()));
      all.outcomes.emplace_back();
      if (a) all.outcomes.back() = redis::outcome{.error = {}, .reply = *std::move(a)};
    }
    said.of_each = &all;
  }
  redis::votes all;
  redis::outcome said;
};

const auto granted = replies::nil();
redis::reply busy(long long ttl) { return replies::integer(ttl); }
redis::reply held_by(std::string_view field, long long ttl, const char* count = "1") {
  return replies::array({replies::string(std::string(field)), replies::string(count), replies::integer(ttl)});
}

}  // namespace

TEST_CASE("a lock of a majority is acquired when a majority has granted it") {
  const round_of three({granted, busy(100), granted, std::nullopt, granted});
  const auto got = by_majority::acquire(three.said);
  CHECK_FALSE(got.failed);
  CHECK(got.value.type == detail::acquire_answer::kind::acquired);
}

TEST_CASE("it is busy until enough of those that refuse are free, and divided where some have granted it") {
  round_of held({busy(300), busy(100), busy(200), busy(400), replies::error("LOADING")});
  const auto all = by_majority::acquire(held.said);
  CHECK(all.value.type == detail::acquire_answer::kind::busy);
  CHECK(all.value.holder_ttl == 300ms);
  CHECK_FALSE(all.value.split);
  round_of divided({busy(300), busy(100), granted, granted, std::nullopt});
  divided.all.slowest = 7ms;
  const auto some = by_majority::acquire(divided.said);
  CHECK(some.value.type == detail::acquire_answer::kind::busy);
  CHECK(some.value.holder_ttl == 100ms);
  CHECK(some.value.split == 7ms);
}

TEST_CASE("a primary that has not answered in time may be free already") {
  const auto busy_for = [](std::vector<std::optional<redis::reply>> answers) {
    return by_majority::acquire(round_of(std::move(answers)).said).value.holder_ttl;
  };
  CHECK(busy_for({busy(300), busy(100), busy(200), busy(400), std::nullopt}) == 200ms);
  CHECK(busy_for({busy(300), busy(100), busy(200), std::nullopt, std::nullopt}) == 100ms);
  CHECK(busy_for({busy(300), busy(100), granted, std::nullopt, std::nullopt}) == 100ms);
}

TEST_CASE("keys without TTL at a majority are corrupt, at fewer they are waited for") {
  CHECK(by_majority::acquire(round_of({busy(-1), busy(-1), busy(-1)}).said).value.type ==
        detail::acquire_answer::kind::busy_without_ttl);
  CHECK(by_majority::acquire(round_of({busy(-1), busy(50), busy(70)}).said).value.holder_ttl == 70ms);
  CHECK(by_majority::acquire(round_of({busy(-1), busy(-1), busy(70)}).said).value.type ==
        detail::acquire_answer::kind::busy_without_ttl);
}

TEST_CASE("a round that came to nothing is read as its failure") {
  auto none = round_of({granted, granted, replies::error("OOM")});
  none.said.error = errc::quorum_failed;
  none.said.detail = "2 of 5";
  const auto got = by_majority::acquire(none.said);
  REQUIRE(got.failed);
  CHECK(got.failed->code == errc::quorum_failed);
  CHECK(got.failed->detail == "2 of 5");
  CHECK(by_majority::exists(none.said).failed->code == errc::quorum_failed);
}

TEST_CASE("the holder of a lock is who has a majority of it") {
  const auto one = by_majority::holder(
      round_of({held_by("a:1", 500), held_by("a:1", 300), held_by("b:1", 900), held_by("a:1", 400)}).said);
  REQUIRE(one.value);
  CHECK(one.value->field == "a:1");
  CHECK(one.value->ttl == 300ms);
  const auto nobody =
      by_majority::holder(round_of({held_by("a:1", 500), held_by("b:1", 300), held_by("c:1", 900)}).said);
  CHECK_FALSE(nobody.failed);
  CHECK_FALSE(nobody.value);
  CHECK_FALSE(by_majority::holder(round_of({replies::nil(), replies::nil(), held_by("a:1", 500)}).said).value);
}

TEST_CASE("who holds a lock is not known where those that have not answered might make a majority for somebody") {
  const detail::owner_field ours(some_client, 1);
  const auto its = held_by(ours.to_text(), 500), other = held_by("b:1", 300);
  const round_of open({its, its, other, std::nullopt, std::nullopt});
  REQUIRE(by_majority::holder(open.said).failed);
  CHECK(by_majority::holder(open.said).failed->code == errc::quorum_failed);
  CHECK(by_majority::simple_count(open.said, ours).failed);
  const round_of shut({its, other, other, its, replies::nil()});
  CHECK_FALSE(by_majority::holder(shut.said).failed);
  CHECK_FALSE(by_majority::holder(shut.said).value);
}

TEST_CASE("the TTL and the count of a lock are what a majority has at least") {
  CHECK(by_majority::ttl(round_of({replies::integer(500), replies::integer(300), replies::integer(-2)}).said).value ==
        300ms);
  CHECK_FALSE(
      by_majority::ttl(round_of({replies::integer(-2), replies::integer(300), replies::integer(-2)}).said).value);
  const auto late = replies::integer(20);
  CHECK(
      by_majority::ttl(round_of({late, replies::integer(500), replies::integer(400), late, replies::integer(600)}).said)
          .value == 400ms);
  const detail::owner_field any(some_client, 1);
  const auto once = replies::string("1"), twice = replies::string("2");
  CHECK(by_majority::hash_count(round_of({once, twice, twice, once, twice}).said, any).value == 2);
  CHECK(by_majority::hash_count(round_of({once, twice, once, once, twice}).said, any).value == 1);
  const auto one = by_majority::holder(round_of({held_by("a:1", 20), held_by("a:1", 500, "2"), held_by("a:1", 400, "2"),
                                                 held_by("a:1", 20), held_by("a:1", 600, "2")})
                                           .said);
  REQUIRE(one.value);
  CHECK(one.value->count == 2);
  CHECK(one.value->ttl == 400ms);
  CHECK(
      by_majority::hash_count(round_of({replies::string("3"), replies::string("2"), replies::nil()}).said, any).value ==
      2);
  CHECK(by_majority::hash_count(round_of({replies::nil(), replies::nil(), std::nullopt}).said, any).value == 0);
}

TEST_CASE("a TTL and a count that one primary alone has lower are not what the majority has") {
  const auto ms = [](long long n) { return replies::integer(n); };
  CHECK(by_majority::ttl(round_of({ms(20), ms(500), ms(-2), ms(400), ms(300)}).said).value == 300ms);
  const auto text = [](const char* n) { return replies::string(n); };
  const detail::owner_field any(some_client, 1);
  CHECK(
      by_majority::hash_count(round_of({text("1"), text("2"), text("2"), text("2"), replies::nil()}).said, any).value ==
      2);
  const auto who = by_majority::holder(round_of({held_by("a:1", 20, "1"), held_by("a:1", 500, "2"),
                                                 held_by("a:1", 400, "2"), held_by("a:1", 300, "2"), std::nullopt})
                                           .said);
  REQUIRE(who.value);
  CHECK(who.value->ttl == 300ms);
  CHECK(who.value->count == 2);
}

TEST_CASE("one primary's answer to a renewal or a release is read as that of a server") {
  const redis::outcome renewed{.error = {}, .reply = replies::integers({1, 0})};
  using enum detail::renewal_answer;
  CHECK(by_majority::renew(renewed, 2).value == std::vector{confirmed, denied});
  const redis::outcome freed{.error = {}, .reply = replies::integer(2)};
  CHECK(by_majority::release(freed).value == 2);
}

TEST_CASE("a renewal is what a majority says of it, and shared where one of those that deny it found others") {
  using enum detail::renewal_answer;
  const auto said = [](long long one, long long two, long long three) {
    const round_of all({replies::integers({one}), replies::integers({two}), replies::integers({three})});
    const auto answer = by_majority::renew(all.said, 1);
    REQUIRE_FALSE(answer.failed);
    return answer.value.front();
  };
  CHECK(said(1, 1, -1) == confirmed);
  CHECK(said(1, 0, 0) == denied);
  CHECK(said(1, 0, -1) == shared);
  CHECK(said(-1, -1, -1) == shared);
}

TEST_CASE("a lock was broken by force if anybody had it anywhere") {
  CHECK(
      by_majority::force_release(round_of({replies::integer(0), replies::integer(1), replies::integer(0)}).said).value);
  CHECK_FALSE(
      by_majority::force_release(round_of({replies::integer(0), replies::integer(0), std::nullopt}).said).value);
}
