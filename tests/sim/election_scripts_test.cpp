// SPDX-License-Identifier: BSL-1.0
// The scripts of an election in each state of their keys: one leads, its value and term go with it, and nothing else is
// changed.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "sim/script_rig.hpp"
#include "support/catch.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"

namespace {

using namespace holdfast;
using namespace test::scripts;
using test::value;
namespace lua = detail::lua;

const std::string lock = "m", token = "token", ms = "300000";
constexpr const char *mine = "me:1", *other = "you:1";

arguments leads(const std::string& owner) { return {"HSET", lock, owner, "1", "leader", "v", "term", "50"}; }
const arguments expires{"PEXPIRE", lock, ms}, counted{"SET", token, "50"};

const std::vector<state> states{
    {"free", {}},
    {"free, and counted", {counted}},
    {"mine", {leads(mine), expires, counted}},
    {"another's", {leads(other), expires, counted}},
    {"another's without TTL", {leads(other), counted}},
    {"an RFencedLock's", {{"HSET", lock, other, "1"}, expires, counted}},
    {"data of three fields", {{"HSET", lock, "leader", "a", "term", "b", "id", "c"}}},
    {"data of four fields", {{"HSET", lock, "leader", "a", "term", "b", "x:1", "1", "y:1", "1"}}},
    {"a string", {{"SET", lock, "text"}}},
    {"free, and the counter is text", {{"SET", token, "text"}}},
};
constexpr const char *wrong = "WRONGTYPE", *no_lock = "HOLDFAST no lock", *no_token = "HOLDFAST invalid token";

arguments campaign(const std::string& word = "publish") {
  return eval(lua::campaign, {lock, token}, {ms, mine, "v", word, "news"});
}
arguments proclaim(const std::string& word) { return eval(lua::proclaim, {lock}, {mine, "w", word, "news"}); }
arguments resign(const std::string& word) { return eval(lua::resign, {lock}, {word, "c", "news", mine}); }
arguments force(const std::string& word) { return eval(lua::election_force, {lock}, {word, "c", "news"}); }

const std::vector<row> rows{
    {"campaign",
     campaign(),
     {"term", "term", "[50]", "ttl", "-1", "ttl", "-1", "-1", wrong, no_token},
     {0, 0, 0, 1, 1, 1, 1, 1, 1, 1},
     {1, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"proclaim",
     proclaim("publish"),
     {"nil", "nil", "0", "nil", "nil", "nil", "nil", "nil", wrong, "nil"},
     {0, 0, 0, 0, 0, 0, 0, 0, 1, 0},
     {0, 0, 1, 0, 0, 0, 0, 0, 0, 0}},
    {"resign",
     resign("publish"),
     {"nil", "nil", "0", "nil", "nil", "nil", "nil", "nil", wrong, "nil"},
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"election_force",
     force("publish"),
     {"0", "0", "1", "1", "1", no_lock, no_lock, no_lock, wrong, "0"},
     {0, 0, 0, 0, 0, 1, 1, 1, 1, 0},
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"observe",
     eval(lua::observe, {lock, token}, {}),
     {"nil", "nil", "ttl, 50, me:1, v", "ttl, 50, you:1, v", "-1, 50, you:1, v", "ttl, 50, you:1", no_lock, no_lock,
      wrong, "nil"},
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
};

bool is_ttl(long long left) { return left > 270'000 && left <= 300'000; }

std::string text_of(const value& answer) {
  if (answer.type != value::kind::array) return is_ttl(answer.number) ? "ttl" : answer.to_string();
  std::string text = is_ttl(answer.elements.at(0).number) ? "ttl" : answer.elements.at(0).to_string();
  for (std::size_t i = 1; i < answer.elements.size(); ++i) text += ", " + answer.elements[i].to_string();
  return text;
}

bool fits(const value& answer, std::string_view expected) {
  if (answer.is_error()) return answer.text.starts_with(expected);
  if (answer.is_nil()) return expected == "nil";
  if (expected == "term") return answer.elements.size() == 1 && answer.elements[0].number > 1'000'000'000'000'000;
  return text_of(answer) == expected || answer.to_string() == expected;
}

const std::vector<table> election_table{{states, rows, fits}};

const state& state_named(std::string_view name) { return named(states, name); }

std::string contents(const servers& all) {
  return all.primary({"TYPE", lock}).to_string() + all.primary({"GET", lock}).to_string() +
         all.primary({"HGETALL", lock}).to_string() + all.primary({"GET", token}).to_string();
}

void check_campaign(const servers& all) {
  for (const auto* const found : {"free", "free, and counted"}) {
    make(all, state_named(found));
    const auto term = all.primary(campaign()).elements.at(0).number;
    CHECK(all.primary({"HGET", lock, mine}) == "1");
    CHECK(all.primary({"HGET", lock, "leader"}) == "v");
    CHECK(all.primary({"HGET", lock, "term"}) == std::to_string(term));
    CHECK(all.primary({"GET", token}) == std::to_string(term));
    CHECK(is_ttl(all.primary({"PTTL", lock}).number));
    CHECK(all.primary({"PTTL", token}).number == -1);
  }
}

void check_second_copy(const servers& all) {
  make(all, state_named("free"));
  const auto term = all.primary(campaign()).elements.at(0).number;
  all.primary(proclaim("publish"));
  all.primary({"PEXPIRE", lock, "1000"});
  all.primary({"DEL", token});
  CHECK(all.primary(campaign()).elements.at(0).number == term);
  CHECK(all.primary({"HGET", lock, "leader"}) == "w");
  CHECK(all.primary({"EXISTS", token}).number == 0);
  CHECK(is_ttl(all.primary({"PTTL", lock}).number));
}

void check_term_grows(const servers& all) {
  make(all, state_named("free"));
  all.primary({"SET", token, "9007199254740000", "PX", "100000"});
  CHECK(all.primary(campaign()).elements.at(0).number == 9'007'199'254'740'001);
  CHECK(all.primary({"PTTL", token}).number > 0);
  all.primary({"DEL", lock});
  auto with_ttl = campaign();
  with_ttl.emplace_back("300000");
  CHECK(all.primary(with_ttl).elements.at(0).number == 9'007'199'254'740'002);
  CHECK(is_ttl(all.primary({"PTTL", token}).number));
}

void check_end(const servers& all) {
  for (const auto& end : {resign("both"), force("both"), resign("auto"), force("auto"), resign("spublish")}) {
    make(all, state_named("mine"));
    CHECK_FALSE(all.primary(end).is_error());
    CHECK(all.primary({"EXISTS", lock}).number == 0);
    CHECK(all.primary({"GET", token}) == "50");
  }
}

void check_foreign_keys(const servers& all) {
  for (const auto* const found : {"data of three fields", "data of four fields", "a string"})
    for (const auto& r : rows) {
      INFO(r.name << ", " << found);
      make(all, state_named(found));
      const auto before = contents(all);
      all.primary(r.call);
      CHECK(contents(all) == before);
    }
}

void check_renewal(const servers& all) {
  const auto renewed = [&](const std::string& found) {
    make(all, state_named(found));
    all.primary({"PEXPIRE", lock, "1000"});
    return all.primary(eval(lua::renew, {lock}, {ms, mine})).to_string();
  };
  CHECK(renewed("mine") == "[1]");
  CHECK(is_ttl(all.primary({"PTTL", lock}).number));
  CHECK(renewed("another's") == "[0]");
  make(all, state_named("mine"));
  all.primary({"HSET", lock, "x", "y"});
  CHECK(all.primary(eval(lua::renew, {lock}, {ms, mine})).to_string() == "[-1]");
  all.primary({"HDEL", lock, "x", "term"});
  all.primary({"HSET", lock, "z", "y"});
  CHECK(all.primary(eval(lua::renew, {lock}, {ms, mine})).to_string() == "[-1]");
}

/// On both kinds of servers.
void on_both(void (*check)(const servers&)) {
  SECTION("simulated") { check(simulated().all); }
  SECTION("real") {
    need_redis();
    check(real_pair().all);
  }
}

}  // namespace

TEST_CASE("each script of an election answers in each state of its keys as its recipe says") {
  on_both([](const servers& all) { check_primary(all, election_table); });
}

TEST_CASE("a replica says of no candidate that it leads") {
  on_both([](const servers& all) { check_replica(all, election_table); });
}

TEST_CASE("a primary that may not write elects nobody") {
  on_both([](const servers& all) { check_without_writes(all, election_table); });
}

TEST_CASE("a full server elects nobody, and ends a lead") {
  on_both([](const servers& all) { check_full(all, election_table); });
}

TEST_CASE("a campaign writes owner, value and term together") { on_both(check_campaign); }

TEST_CASE("a second copy of a campaign has the same term, and leaves a newer value") { on_both(check_second_copy); }

TEST_CASE("a term is larger than the last one, also if the server's clock is behind") { on_both(check_term_grows); }

TEST_CASE("the end of a lead takes value and term along, and leaves the counter") { on_both(check_end); }

TEST_CASE("what is no lock of an election is left alone by its scripts") { on_both(check_foreign_keys); }

TEST_CASE("a renewal knows the fields of a leader, and no others") { on_both(check_renewal); }

TEST_CASE("observers are told each change once, and candidates each end") {
  simulated s;
  std::vector<std::string> told;
  s.node.on_publish = [&](std::string_view channel, std::string_view payload) {
    told.push_back(std::string(channel) + " " + std::string(payload));
  };
  const auto after = [&](const char* found, const arguments& command) {
    make(s.all, state_named(found));
    told.clear();
    s.all.primary(command);
    return std::exchange(told, {});
  };
  using all = std::vector<std::string>;
  const auto elected = after("free", campaign("both"));
  const auto term = s.all.primary({"GET", token}).to_string();
  CHECK(elected == all{"news " + term, "news " + term});  // on both kinds of channels
  CHECK(after("free", campaign("auto")).size() == 1);
  CHECK(after("mine", campaign()).empty());
  CHECK(after("another's", campaign()).empty());
  CHECK(after("mine", proclaim("publish")) == all{"news 50"});
  CHECK(after("mine", proclaim("both")) == all{"news 50", "news 50"});
  CHECK(after("another's", proclaim("publish")).empty());
  CHECK(after("mine", resign("publish")) == all{"c 0", "news 0"});
  CHECK(after("mine", resign("both")) == all{"c 00", "c 0", "news 00", "news 0"});
  CHECK(after("another's", resign("publish")).empty());
  CHECK(after("another's", force("publish")) == all{"c 0", "news 0"});
  CHECK(after("another's", force("both")) == all{"c 00", "c 0", "news 00", "news 0"});
  CHECK(after("free", force("publish")).empty());
}

TEST_CASE("a TTL out of its range is refused before anything is written") {
  const simulated s;
  make(s.all, state_named("free"));
  for (const auto* const bad : {"", "0", "-1", "1.5", "x", "nan", "inf", "86400001"}) {
    INFO(bad);
    CHECK(s.all.primary(eval(lua::campaign, {lock, token}, {bad, mine, "v", "publish", "news"}))
              .text.starts_with("HOLDFAST invalid ttl"));
    CHECK(s.all.primary({"EXISTS", lock, token}).number == 0);
  }
  CHECK(s.all.primary(eval(lua::campaign, {lock, token}, {ms, mine, "v", "publish", "news", "-1"}))
            .text.starts_with("HOLDFAST invalid token_ttl"));
  CHECK(s.all.primary({"EXISTS", lock, token}).number == 0);
}
