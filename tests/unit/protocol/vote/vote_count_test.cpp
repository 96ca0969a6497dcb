// SPDX-License-Identifier: BSL-1.0
#include "protocol/vote/vote_count.hpp"

#include "protocol/vote_of.hpp"
#include "support/catch.hpp"
#include "support/replies.hpp"

using namespace holdfast;
using namespace holdfast::test;
using detail::vote;
using detail::vote_count;
using detail::vote_of::flag;

namespace {

/// y: yes, n: no, e: an error reply, u: unconfirmed, x: never written, ?: not answered yet.
redis::votes votes(std::string_view answers) {
  redis::votes all;
  for (const char a : answers) {
    all.where.push_back("node" + std::to_string(all.where.size()));
    auto& said = all.outcomes.emplace_back();
    if (a == 'y') said = {.error = {}, .reply = replies::integer(1)};
    if (a == 'n') said = {.error = {}, .reply = replies::integer(0)};
    if (a == 'e') said = {.error = {}, .reply = replies::error("OOM command not allowed")};
    if (a == 'u') said = {.error = errc::unconfirmed, .reply = {}, .detail = "cut"};
    if (a == 'x') said = {.error = errc::unreachable, .reply = {}, .detail = "refused"};
  }
  return all;
}

std::string state(std::string_view answers) {
  const auto all = votes(answers);
  const vote_count t(all, flag);
  std::string text = t.decided() ? "decided" : "open";
  if (t.carried()) text += " yes";
  if (t.rejected()) text += " no";
  if (t.answered()) text += " answered";
  return text;
}

}  // namespace

TEST_CASE("a majority of the primaries that are configured decides, whether they answer or not") {
  CHECK(state("yyy??") == "decided yes answered");
  CHECK(state("nnn??") == "decided no answered");
  CHECK(state("yy???") == "open");
  CHECK(state("yyxx?") == "open");
  CHECK(state("yyxxx") == "decided");
  CHECK(state("yyxxy") == "decided yes answered");
  CHECK(state("yynn?") == "open answered");
  CHECK(state("yynnx") == "decided answered");
  CHECK(state("yy") == "decided yes answered");
  CHECK(state("yxx") == "decided");
  CHECK(state("ynee?") == "decided");
  CHECK(state("y?x") == "open");
  CHECK(state("yyyyynnnn") == "decided yes answered");
  CHECK(state("yyyynnnn?") == "open answered");
}

TEST_CASE("where a command may have run is where it was granted, cut off or not answered yet") {
  const auto all = votes("ynux?e");
  const vote_count t(all, flag);
  CHECK(t.in_favour() == detail::only(0));
  CHECK(t.may_have_run_at() == (detail::only(0) | detail::only(2) | detail::only(4)));
}

TEST_CASE("a failed vote says of each primary why, and what a majority will never do by its own code") {
  const auto some = votes("yneux");
  const auto why = vote_count(some, flag).why();
  CHECK(why.code == errc::quorum_failed);
  CHECK(why.mends_itself());
  CHECK(why.may_have_run);
  CHECK(why.detail ==
        "1 of 5 primaries, and 3 are needed; node1: no; node2: OOM command not allowed; node3: cut; node4: refused");
  auto forbidden = votes("xxyyx");
  for (auto& said : forbidden.outcomes)
    if (said->error) said->error = errc::auth_failed;
  CHECK(vote_count(forbidden, flag).why().code == errc::auth_failed);
  for (const auto passes : {errc::overloaded, errc::protocol_error}) {
    auto passing = forbidden;
    for (auto& said : passing.outcomes)
      if (said->error) said->error = passes;
    CHECK(vote_count(passing, flag).why().code == errc::quorum_failed);
  }
  forbidden.outcomes[4]->error = errc::unreachable;
  CHECK(vote_count(forbidden, flag).why().code == errc::quorum_failed);
}
