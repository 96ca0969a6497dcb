// SPDX-License-Identifier: BSL-1.0
// The scripts of locks in each state of a lock.
#include <chrono>
#include <cstdint>
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

/// TTLs lie so far apart that a slow machine mixes none up.
constexpr long long short_ttl = 100'000, ttl = 300'000, if_none = 600'000, long_ttl = 1'000'000, tolerance = 90'000;

const std::vector<state> hash_states{
    {"free", {}},
    {"mine", {{"HSET", "m", "me:1", "2"}, {"PEXPIRE", "m", std::to_string(long_ttl)}}},
    {"mine with less TTL", {{"HSET", "m", "me:1", "2"}, {"PEXPIRE", "m", std::to_string(short_ttl)}}},
    {"mine without TTL", {{"HSET", "m", "me:1", "2"}}},
    {"another's", {{"HSET", "m", "other:1", "1"}, {"PEXPIRE", "m", std::to_string(long_ttl)}}},
    {"mine, its count is no number", {{"HSET", "m", "me:1", "abc"}, {"PEXPIRE", "m", std::to_string(long_ttl)}}},
    {"not a hash", {{"SET", "m", "text"}}},
    {"somebody's data", {{"HSET", "m", "id", "42", "total", "10"}}},
    {"mine among others",  // as an RReadWriteLock of the name makes it
     {{"HSET", "m", "me:1", "1", "mode", "read", "other:1", "1"}, {"PEXPIRE", "m", std::to_string(short_ttl)}}},
};

const std::string ms = std::to_string(ttl), ms_if_none = std::to_string(if_none);
const std::vector<bool> never(9, false), always(9, true), to_a_stranger{0, 0, 0, 0, 1, 0, 1, 1, 0},
    without_a_lock{0, 0, 0, 0, 0, 1, 1, 1, 1}, when_free{1, 0, 0, 0, 0, 0, 0, 0, 0};
constexpr const char *wrong = "WRONGTYPE", *corrupt = "HOLDFAST corrupt count", *no_lock = "HOLDFAST no lock";

/// Among the answers "ttl", "token", "long" and "short" stand for such numbers.
const std::vector<row> hash_rows{
    {"acquire",
     eval(lua::acquire, {"m"}, {ms, "me:1"}),
     {"(nil)", "(nil)", "(nil)", "(nil)", "-2 - ttl", "(nil)", wrong, "-1", "(nil)"},
     to_a_stranger,
     when_free},
    {"acquire_fenced",
     eval(lua::acquire_fenced, {"m", "token"}, {ms, "me:1"}),
     {"token", "token", "token", "token", "-2 - ttl", "token", wrong, "-1", "token"},
     to_a_stranger,
     when_free},
    {"acquire_any of one",
     eval(lua::acquire_any, {"m"}, {ms, "me:1"}),
     {"1", "0", "0", "0", "0", "0", "0", "0", "0"},
     {0, 1, 1, 1, 1, 1, 1, 1, 1},
     when_free},
    {"acquire_any",
     eval(lua::acquire_any, {"m", "n", "o"}, {ms, "me:1"}),
     {"1", "2", "2", "2", "2", "2", "2", "2", "2"},
     never,
     always},
    {"acquire_any_fenced of one",
     eval(lua::acquire_any_fenced, {"m", "token"}, {ms, "me:1"}),
     {"1 and a token", "0", "0", "0", "0", "0", "0", "0", "0"},
     {0, 1, 1, 1, 1, 1, 1, 1, 1},
     when_free},
    {"acquire_any_fenced",
     eval(lua::acquire_any_fenced, {"m", "n", "token", "other token"}, {ms, "me:1"}),
     {"1 and a token", "2 and a token", "2 and a token", "2 and a token", "2 and a token", "2 and a token",
      "2 and a token", "2 and a token", "2 and a token"},
     never,
     always},
    {"acquire_all of one",
     eval(lua::acquire_all, {"m"}, {ms, "me:1"}),
     {"(nil)", "(nil)", "(nil)", "(nil)", "1, ttl", "(nil)", "[1, -2]", "[1, -1]", "(nil)"},
     to_a_stranger,
     when_free},
    {"acquire_all",
     eval(lua::acquire_all, {"n", "m"}, {ms, "me:2", "me:1"}),
     {"(nil)", "(nil)", "(nil)", "(nil)", "2, ttl", "(nil)", "[2, -2]", "[2, -1]", "(nil)"},
     to_a_stranger,
     {1, 1, 1, 1, 0, 1, 0, 0, 1}},
    {"acquire_all_fenced of one",
     eval(lua::acquire_all_fenced, {"m", "token"}, {ms, "me:1"}),
     {"0 and a token", "0 and a token", "0 and a token", "0 and a token", "1, ttl", "0 and a token", "[1, -2]",
      "[1, -1]", "0 and a token"},
     to_a_stranger,
     when_free},
    {"acquire_all_fenced",
     eval(lua::acquire_all_fenced, {"n", "m", "other token", "token"}, {ms, "me:2", "me:1"}),
     {"0 and two tokens", "0 and two tokens", "0 and two tokens", "0 and two tokens", "2, ttl", "0 and two tokens",
      "[2, -2]", "[2, -1]", "0 and two tokens"},
     to_a_stranger,
     {1, 1, 1, 1, 0, 1, 0, 0, 1}},
    {"set_hold_count, the count is there",
     eval(lua::set_hold_count, {"m"}, {ms, "me:1", "2", ms_if_none}),
     {"0", "1", "1", "1", "0", corrupt, wrong, "0", "1"},
     never,
     never},
    {"set_hold_count",
     eval(lua::set_hold_count, {"m"}, {ms, "me:1", "3", ms_if_none}),
     {"0", "1", "1", "1", "0", corrupt, wrong, "0", "1"},
     never,
     never},
    {"set_hold_count, fewer",
     eval(lua::set_hold_count, {"m"}, {ms, "me:1", "1", ms_if_none}),
     {"0", "1", "1", "1", "0", corrupt, wrong, "0", "1"},
     never,
     never},
    {"renew",
     eval(lua::renew, {"m"}, {ms, "me:1", ms_if_none}),
     {"[0]", "[1]", "[1]", "[1]", "[0]", "[1]", "[0]", "[0]", "[-1]"},
     never,
     never},
    {"renew two",
     eval(lua::renew, {"m", "n"}, {ms, ms, "me:1", "me:1", ms_if_none, ms_if_none}),
     {"[0, 0]", "[1, 0]", "[1, 0]", "[1, 0]", "[0, 0]", "[1, 0]", "[0, 0]", "[0, 0]", "[-1, 0]"},
     never,
     never},
    {"release",
     eval(lua::release, {"m"}, {"publish", "channel", "me:1"}),
     {"(nil)", "0", "0", "0", "(nil)", "0", wrong, "(nil)", "0"},
     never,
     never},
    {"release, told by spublish",
     eval(lua::release, {"m"}, {"spublish", "channel", "me:1"}),
     {"(nil)", "0", "0", "0", "(nil)", "0", wrong, "(nil)", "0"},
     never,
     never},
    {"release, told by auto",
     eval(lua::release, {"m"}, {"auto", "channel", "me:1"}),
     {"(nil)", "0", "0", "0", "(nil)", "0", wrong, "(nil)", "0"},
     never,
     never},
    {"release, told by both",
     eval(lua::release, {"m"}, {"both", "channel", "me:1"}),
     {"(nil)", "0", "0", "0", "(nil)", "0", wrong, "(nil)", "0"},
     never,
     never},
    {"force_release",
     eval(lua::force_release, {"m"}, {"publish", "channel"}),
     {"0", "1", "1", "1", "1", no_lock, wrong, no_lock, no_lock},
     without_a_lock,
     never},
    {"force_release, told by spublish",
     eval(lua::force_release, {"m"}, {"spublish", "channel"}),
     {"0", "1", "1", "1", "1", no_lock, wrong, no_lock, no_lock},
     without_a_lock,
     never},
    {"force_release, told by auto",
     eval(lua::force_release, {"m"}, {"auto", "channel"}),
     {"0", "1", "1", "1", "1", no_lock, wrong, no_lock, no_lock},
     without_a_lock,
     never},
    {"force_release, told by both",
     eval(lua::force_release, {"m"}, {"both", "channel"}),
     {"0", "1", "1", "1", "1", no_lock, wrong, no_lock, no_lock},
     without_a_lock,
     never},
    {"holder",
     eval(lua::holder, {"m"}, {}),
     {"(nil)", "[me:1, 2, long]", "[me:1, 2, short]", "[me:1, 2, -1]", "[other:1, 1, long]", "[me:1, abc, long]", wrong,
      "2", "3"},
     always,
     never},
};

const std::vector<state> simple_states{
    {"free", {}},
    {"mine", {{"SET", "m", "me:1", "PX", std::to_string(long_ttl)}}},
    {"mine with less TTL", {{"SET", "m", "me:1", "PX", std::to_string(short_ttl)}}},
    {"mine without TTL", {{"SET", "m", "me:1"}}},
    {"another's", {{"SET", "m", "other:1", "PX", std::to_string(long_ttl)}}},
    {"another's without TTL", {{"SET", "m", "other:1"}}},
    {"nobody's: an empty value", {{"SET", "m", "", "PX", std::to_string(long_ttl)}}},
    {"somebody's data", {{"SET", "m", std::string(300, 'x')}}},
    {"not a string", {{"HSET", "m", "", "1"}}},
};
const std::vector<bool> to_strangers{0, 0, 0, 0, 1, 1, 1, 1, 1}, where_no_string_is{0, 0, 0, 0, 0, 0, 0, 0, 1},
    where_no_simple_lock_is{0, 0, 0, 1, 0, 1, 0, 1, 1};

const std::string data_of_256 = "[" + std::string(256, 'x') + ", 1, -1]";

const std::vector<row> simple_rows{
    {"simple_acquire",
     eval(lua::simple_acquire, {"m"}, {ms, "me:1"}),
     {"(nil)", "(nil)", "(nil)", "(nil)", "ttl", "-1", "ttl", "-1", wrong},
     to_strangers,
     {1, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"simple_acquire_any of one",
     eval(lua::simple_acquire_any, {"m"}, {ms, "me:1"}),
     {"1", "0", "0", "0", "0", "0", "0", "0", "0"},
     never,
     always},
    {"simple_acquire_any",
     eval(lua::simple_acquire_any, {"m", "n", "o"}, {ms, "me:1"}),
     {"1", "2", "2", "2", "2", "2", "2", "2", "2"},
     never,
     always},
    {"simple_acquire_all of one",
     eval(lua::simple_acquire_all, {"m"}, {ms, "me:1"}),
     {"(nil)", "(nil)", "(nil)", "(nil)", "1, ttl", "[1, -1]", "1, ttl", "[1, -1]", "[1, -2]"},
     to_strangers,
     {1, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"simple_acquire_all",
     eval(lua::simple_acquire_all, {"n", "m"}, {ms, "me:2", "me:1"}),
     {"(nil)", "(nil)", "(nil)", "(nil)", "2, ttl", "[2, -1]", "2, ttl", "[2, -1]", "[2, -2]"},
     to_strangers,
     {1, 1, 1, 1, 0, 0, 0, 0, 0}},
    {"simple_renew",
     eval(lua::simple_renew, {"m"}, {ms, "me:1", ms_if_none}),
     {"[0]", "[1]", "[1]", "[1]", "[0]", "[0]", "[0]", "[0]", "[0]"},
     never,
     never},
    {"simple_renew two",
     eval(lua::simple_renew, {"m", "n"}, {ms, ms, "me:1", "me:1", ms_if_none, ms_if_none}),
     {"[0, 0]", "[1, 0]", "[1, 0]", "[1, 0]", "[0, 0]", "[0, 0]", "[0, 0]", "[0, 0]", "[0, 0]"},
     never,
     never},
    {"simple_release",
     eval(lua::simple_release, {"m"}, {"publish", "channel", "me:1"}),
     {"(nil)", "0", "0", "0", "(nil)", "(nil)", "(nil)", "(nil)", wrong},
     where_no_string_is,
     never},
    {"simple_release, told by spublish",
     eval(lua::simple_release, {"m"}, {"spublish", "channel", "me:1"}),
     {"(nil)", "0", "0", "0", "(nil)", "(nil)", "(nil)", "(nil)", wrong},
     where_no_string_is,
     never},
    {"simple_release, told by auto",
     eval(lua::simple_release, {"m"}, {"auto", "channel", "me:1"}),
     {"(nil)", "0", "0", "0", "(nil)", "(nil)", "(nil)", "(nil)", wrong},
     where_no_string_is,
     never},
    {"simple_release, told by both",
     eval(lua::simple_release, {"m"}, {"both", "channel", "me:1"}),
     {"(nil)", "0", "0", "0", "(nil)", "(nil)", "(nil)", "(nil)", wrong},
     where_no_string_is,
     never},
    {"simple_force_release",
     eval(lua::simple_force_release, {"m"}, {"publish", "channel"}),
     {"0", "1", "1", no_lock, "1", no_lock, "1", no_lock, wrong},
     where_no_simple_lock_is,
     never},
    {"simple_force_release, told by spublish",
     eval(lua::simple_force_release, {"m"}, {"spublish", "channel"}),
     {"0", "1", "1", no_lock, "1", no_lock, "1", no_lock, wrong},
     where_no_simple_lock_is,
     never},
    {"simple_force_release, told by auto",
     eval(lua::simple_force_release, {"m"}, {"auto", "channel"}),
     {"0", "1", "1", no_lock, "1", no_lock, "1", no_lock, wrong},
     where_no_simple_lock_is,
     never},
    {"simple_force_release, told by both",
     eval(lua::simple_force_release, {"m"}, {"both", "channel"}),
     {"0", "1", "1", no_lock, "1", no_lock, "1", no_lock, wrong},
     where_no_simple_lock_is,
     never},
    {"simple_holder",
     eval(lua::simple_holder, {"m"}, {}),
     {"(nil)", "[me:1, 1, long]", "[me:1, 1, short]", "[me:1, 1, -1]", "[other:1, 1, long]", "[other:1, 1, -1]",
      "[, 1, long]", data_of_256.c_str(), wrong},
     always,
     never},
};

bool about(long long n, long long expected) { return n > expected - tolerance && n <= expected; }

bool fits(const value& v, std::string_view expected) {
  if (expected == "ttl") return v.type == value::kind::integer && about(v.number, long_ttl);
  if (expected == "-2 - ttl") return v.type == value::kind::integer && about(-2 - v.number, long_ttl);
  if (expected == "token")
    return v.type == value::kind::array && v.elements.size() == 1 && v.elements[0].number > 1'000'000'000'000'000;
  if (expected.ends_with(" and a token"))
    return v.type == value::kind::array && v.elements.size() == 2 && v.elements[1].number > 1'000'000'000'000'000 &&
           v.elements[0].to_string() == expected.substr(0, 1);
  if (expected == "0 and two tokens")
    return v.type == value::kind::array && v.elements.size() == 3 && v.elements[0].to_string() == "0" &&
           v.elements[1].number > 1'000'000'000'000'000 && v.elements[2].number > 1'000'000'000'000'000;
  if (expected.ends_with(", ttl"))
    return v.type == value::kind::array && v.elements.size() == 2 &&
           v.elements[0].to_string() == expected.substr(0, 1) && about(v.elements[1].number, long_ttl);
  if (v.is_error()) return v.text.starts_with(expected);
  if (v.type == value::kind::array && v.elements.size() == 3) {  // a holder
    const auto left = v.elements[2].number;
    const auto ttl_is = about(left, long_ttl) ? "long" : about(left, short_ttl) ? "short" : std::to_string(left);
    return expected == "[" + v.elements[0].to_string() + ", " + v.elements[1].to_string() + ", " + ttl_is + "]";
  }
  return v.to_string() == expected;
}

const table hash_table{hash_states, hash_rows, fits}, simple_table{simple_states, simple_rows, fits};
const std::vector<table> both_kinds{hash_table, simple_table};

/// What is at m after the row's call in that state.
struct outcome {
  long long count, ttl;
};
outcome after(const servers& all, std::string_view script, std::string_view found) {
  make(all, named(hash_states, found));
  all.primary(named(hash_rows, script).call);
  return {all.primary({"HGET", "m", "me:1"}).integer(), all.primary({"PTTL", "m"}).integer()};
}
/// The TTL of the key whose value is mine; of another's: 0.
long long ttl_after(const servers& all, std::string_view script, std::string_view found) {
  make(all, named(simple_states, found));
  all.primary(named(simple_rows, script).call);
  return all.primary({"GET", "m"}) == "me:1" ? all.primary({"PTTL", "m"}).integer() : 0;
}

void check_effects(const servers& all) {
  for (const auto* script : {"acquire", "acquire_fenced", "acquire_all of one", "acquire_all",
                             "acquire_all_fenced of one", "acquire_all_fenced"}) {
    CAPTURE(script);
    CHECK(about(after(all, script, "free").ttl, ttl));
    CHECK(after(all, script, "mine").count == 2);
    CHECK(about(after(all, script, "mine").ttl, long_ttl));
    CHECK(about(after(all, script, "mine with less TTL").ttl, ttl));
    CHECK(about(after(all, script, "mine without TTL").ttl, ttl));
  }
  for (const auto* script : {"acquire_any", "acquire_any_fenced"}) {
    CAPTURE(script);
    CHECK(after(all, script, "free").count == 1);
    CHECK(about(after(all, script, "free").ttl, ttl));
    CHECK(all.primary({"EXISTS", "n", "o"}) == "0");
    CHECK(after(all, script, "mine").count == 2);
    CHECK(about(after(all, script, "mine with less TTL").ttl, short_ttl));
    CHECK(all.primary({"HGET", "n", "me:1"}) == "1");
    CHECK(about(all.primary({"PTTL", "n"}).integer(), ttl));
    CHECK(all.primary({"EXISTS", "o"}) == "0");
  }
  for (const auto* script : {"acquire_all", "acquire_all_fenced"}) {
    CAPTURE(script);
    for (const auto* found : {"free", "mine", "mine without TTL"}) {
      CHECK(after(all, script, found).count == (found == std::string_view("free") ? 1 : 2));
      CHECK(all.primary({"HGET", "n", "me:2"}) == "1");
      CHECK(about(all.primary({"PTTL", "n"}).integer(), ttl));
      all.primary(named(hash_rows, script).call);  // its second copy
      CHECK(all.primary({"HGET", "n", "me:2"}) == "1");
      CHECK(all.primary({"HLEN", "n"}) == "1");
    }
    for (const auto* found : {"another's", "not a hash", "somebody's data"}) {
      make(all, named(hash_states, found));
      all.primary(named(hash_rows, script).call);
      CHECK(all.primary({"EXISTS", "n", "token", "other token"}) == "0");
    }
  }
  for (const auto& [script, count] :
       {std::pair("set_hold_count, the count is there", 2), std::pair("set_hold_count", 3),
        std::pair("set_hold_count, fewer", 1), std::pair("renew", 2), std::pair("renew two", 2)}) {
    CAPTURE(script);
    if (std::string_view(script).starts_with("renew"))
      CHECK(about(after(all, script, "mine among others").ttl, short_ttl));
    CHECK(after(all, script, "mine").count == count);
    CHECK(about(after(all, script, "mine").ttl, long_ttl));
    CHECK(about(after(all, script, "mine with less TTL").ttl, ttl));
    CHECK(about(after(all, script, "mine without TTL").ttl, if_none));
  }
}

void check_simple_effects(const servers& all) {
  CHECK(about(ttl_after(all, "simple_acquire", "free"), ttl));
  CHECK(about(ttl_after(all, "simple_acquire_any", "free"), ttl));
  CHECK(all.primary({"EXISTS", "n"}) == "0");
  CHECK(about(ttl_after(all, "simple_acquire_any", "mine with less TTL"), short_ttl));
  CHECK(all.primary({"GET", "n"}) == "me:1");
  CHECK(about(all.primary({"PTTL", "n"}).integer(), ttl));
  CHECK(about(ttl_after(all, "simple_acquire_all", "free"), ttl));
  CHECK(all.primary({"GET", "n"}) == "me:2");
  CHECK(about(all.primary({"PTTL", "n"}).integer(), ttl));
  for (const auto* found : {"another's", "nobody's: an empty value", "somebody's data", "not a string"}) {
    make(all, named(simple_states, found));
    all.primary(named(simple_rows, "simple_acquire_all").call);
    CHECK(all.primary({"EXISTS", "n"}) == "0");
  }
  for (const auto& [script, lost] : {std::pair("simple_acquire", ttl), std::pair("simple_acquire_all", ttl),
                                     std::pair("simple_renew", if_none), std::pair("simple_renew two", if_none)}) {
    CAPTURE(script);
    CHECK(about(ttl_after(all, script, "mine"), long_ttl));
    CHECK(about(ttl_after(all, script, "mine with less TTL"), ttl));
    CHECK(about(ttl_after(all, script, "mine without TTL"), lost));
  }
  for (const auto& r : simple_rows) {
    make(all, named(simple_states, "not a string"));
    all.primary(r.call);
    CHECK(all.primary({"HGET", "m", ""}) == "1");
  }
  for (const auto& r : simple_rows)
    for (const auto* found : {"another's", "another's without TTL", "nobody's: an empty value", "somebody's data"}) {
      INFO(r.name << ", " << found);
      make(all, named(simple_states, found));
      const auto before = all.primary({"GET", "m"}).to_string();
      const auto left = all.primary({"PTTL", "m"}).integer();
      const bool broken = all.primary(r.call) == "1";
      CHECK(all.primary({"EXISTS", "m"}) == (broken ? "0" : "1"));
      if (broken) continue;
      CHECK(all.primary({"GET", "m"}) == before);
      CHECK((left < 0 ? all.primary({"PTTL", "m"}).integer() == left
                      : about(all.primary({"PTTL", "m"}).integer(), left)));
    }
}

}  // namespace

TEST_CASE("each script answers in each state of a lock as its recipe says") {
  SECTION("simulated") { check_primary(simulated().all, both_kinds); }
  SECTION("real") {
    need_redis();
    check_primary(real_pair().all, both_kinds);
  }
}

TEST_CASE("each script leaves in each state of a lock the count and the TTL that its recipe says") {
  SECTION("simulated") {
    check_effects(simulated().all);
    check_simple_effects(simulated().all);
  }
  SECTION("real") {
    need_redis();
    const real_pair pair;
    check_effects(pair.all);
    check_simple_effects(pair.all);
  }
}

TEST_CASE("a replica says of no lock that it is yours or not yours or acquired") {
  SECTION("simulated") { check_replica(simulated().all, both_kinds); }
  SECTION("real") {
    need_redis();
    check_replica(real_pair().all, both_kinds);
  }
}

TEST_CASE("a primary that may not write confirms nothing and denies nothing") {
  SECTION("simulated") { check_without_writes(simulated().all, both_kinds); }
  SECTION("real") {
    need_redis();
    check_without_writes(real_pair().all, both_kinds);
  }
}

TEST_CASE("a full server refuses new locks alone") {
  SECTION("simulated") { check_full(simulated().all, both_kinds); }
  SECTION("real") {
    need_redis();
    check_full(real_pair().all, both_kinds);
  }
}

TEST_CASE("the write that only asks for a primary changes nothing and is not replicated") {
  need_redis();
  real_pair pair;
  const auto changes = [&] {
    const auto text = pair.to_first("INFO", "persistence").to_string();
    constexpr std::string_view label = "rdb_changes_since_last_save:";
    return std::stoll(text.substr(text.find(label) + label.size()));
  };
  for (const auto* script : {"acquire", "set_hold_count, the count is there", "renew", "renew two"}) {
    CAPTURE(script);
    make(pair.all, named(hash_states, "mine"));
    const auto before = changes();
    REQUIRE_FALSE(pair.all.primary(named(hash_rows, script).call).is_error());
    CHECK(changes() == before);
  }
}

TEST_CASE("a busy acquire tells by a number below -1 that the holder is no holdfast client") {
  struct holder {
    const char *field, *answer;
  };
  const auto [field, answer] =
      GENERATE(holder{"c6ae660e-4bf6-8605-ae66-59d052e0c483:1", "ttl"},       // UUID version 8: ours
               holder{"c6ae660e-4bf6-4605-ae66-59d052e0c483:1", "-2 - ttl"},  // version 4: Redisson's
               holder{"worker:8", "-2 - ttl"});
  CAPTURE(field);
  const simulated s;
  make(s.all, {"another's", {{"HSET", "m", field, "1"}, {"PEXPIRE", "m", std::to_string(long_ttl)}}});
  for (const auto* script : {"acquire", "acquire_fenced"})
    CHECK(fits(s.all.primary(named(hash_rows, script).call), answer));
  s.all.primary({"PERSIST", "m"});
  CHECK(fits(s.all.primary(named(hash_rows, "acquire").call), "-1"));
}

TEST_CASE("a repeated fenced acquire whose counter was lost gets a token") {
  simulated s;
  make(s.all, named(hash_states, "mine"));
  const auto said = s.all.primary(named(hash_rows, "acquire_fenced").call);
  REQUIRE(fits(said, "token"));
  CHECK(s.all.primary({"GET", "token"}) == std::to_string(said.elements[0].number));
}

TEST_CASE("a block of fencing tokens ends at the clock, and has none that may have been given") {
  simulated s;
  make(s.all, named(hash_states, "free"));
  const auto time = s.all.primary({"TIME"}).elements;
  const auto now = std::stoll(time.at(0).to_string()) * 1'000'000 + std::stoll(time.at(1).to_string());
  const auto counter_is = [&](long long n) { s.all.primary({"SET", "token", std::to_string(n)}); };
  const auto acquired = [&] {
    const auto said = s.all.primary(eval(lua::acquire_fenced, {"m", "token"}, {ms, "me:1", "1000"})).elements;
    return std::pair(said.at(0).number, said.at(1).number);
  };
  const auto counter = [&] { return std::stoll(s.all.primary({"GET", "token"}).to_string()); };
  // The clock goes on by a microsecond or two with each command.
  const auto is_the_clock = [&](long long n) { return n >= now && n < now + 50; };
  SECTION("all, where the last one was given long ago") {
    counter_is(now - 1'000);
    const auto first = acquired();
    const auto newest = counter();
    CHECK(first == std::pair(newest - 999, 999LL));
    CHECK(is_the_clock(newest));
    CHECK(acquired() == std::pair(newest, 0LL));  // sent again
    CHECK(counter() == newest);
  }
  SECTION("one, where the first of them was given") {
    counter_is(now - 900);
    const auto only = acquired();
    CHECK(only == std::pair(counter(), 0LL));
    CHECK(is_the_clock(counter()));
  }
  SECTION("one, where the counter is ahead of the clock") {
    counter_is(now + 500);
    CHECK(acquired() == std::pair(now + 501, 0LL));
    CHECK(counter() == now + 501);
  }
  SECTION("one, where the counter may have been lost") {
    SECTION("and there is none") {}
    SECTION("and Redisson has counted from one since") { counter_is(7); }
    const auto only = acquired();
    CHECK(only == std::pair(counter(), 0LL));
    CHECK(is_the_clock(counter()));
  }
}

TEST_CASE("of several fenced locks one whose counter is no number is passed by") {
  simulated s;
  make(s.all, named(hash_states, "free"));
  s.all.primary({"SET", "token", "abc"});
  CHECK(fits(s.all.primary(named(hash_rows, "acquire_any_fenced").call), "2 and a token"));
  CHECK(s.all.primary({"EXISTS", "m"}) == "0");
  CHECK(s.all.primary({"GET", "token"}) == "abc");
}

TEST_CASE("of several fenced locks one whose counter is no number fails all, and is named") {
  simulated s;
  make(s.all, named(hash_states, "free"));
  s.all.primary({"SET", "token", "abc"});
  CHECK(fits(s.all.primary(named(hash_rows, "acquire_all_fenced").call), "[2, -3]"));
  CHECK(s.all.primary({"EXISTS", "m", "n", "other token"}) == "0");
}

TEST_CASE("a repeated acquire of several fenced locks has the same tokens again") {
  simulated s;
  make(s.all, named(hash_states, "free"));
  const auto first = s.all.primary(named(hash_rows, "acquire_all_fenced").call);
  CHECK(s.all.primary(named(hash_rows, "acquire_all_fenced").call).to_string() == first.to_string());
}

TEST_CASE("a note has the instant by the server's clock in place of the age, and the TTL that is sent") {
  const auto check = [](const servers& all) {
    const auto now = [&] {
      const auto time = all.primary({"TIME"}).elements;
      return std::stoll(time.at(0).to_string()) * 1'000 + std::stoll(time.at(1).to_string()) / 1'000;
    };
    const auto write = [&](const arguments& args) { return all.primary(eval(lua::write_note, {"note"}, args)); };
    const auto text = [&] { return all.primary({"GET", "note"}).to_string(); };
    all.primary({"HSET", "note", "of", "another type"});
    const auto before = now();
    CHECK(write({ms, std::string("7000 me:1 a\nb \0 c", 17)}) == "1");
    const auto instant = std::stoll(text());
    CHECK((instant >= before - 7'000 && instant <= now() - 7'000));
    CHECK(text().ends_with(std::string(" me:1 a\nb \0 c", 13)));
    CHECK(about(all.primary({"PTTL", "note"}).number, ttl));
    CHECK(write({ms, "0 me:1 "}) == "1");
    CHECK(text().ends_with(" me:1 "));
    const auto kept = text();
    for (const auto* wrong : {"0", "-1", "1.5", "x", "86400001"}) CHECK(write({wrong, "0 me:1 x"}).is_error());
    for (const auto* wrong : {"", "x me:1 x", "-1 me:1 x", "7"}) CHECK(write({ms, wrong}).is_error());
    CHECK(text() == kept);
    all.replicate();
    CHECK(all.replica(eval(lua::write_note, {"note"}, {ms, "0 me:1 x"})).is_error());
  };
  SECTION("simulated") { check(simulated().all); }
  SECTION("real") {
    need_redis();
    check(real_pair().all);
  }
}

TEST_CASE("where a user may not write the TTL, or one of the keys, nothing of several is left") {
  need_redis();
  const test::real_redis server;
  test::raw_client admin(server), guest(server);
  const std::string may = "~* +eval +exists +hexists +hdel +pttl +get +getrange +del +time";
  const auto allow = [&](const std::string& more) {
    arguments a{"ACL", "SETUSER", "guest", "reset", "on", "nopass"};
    std::string word;
    for (const char c : may + ' ' + more + ' ') {
      if (c != ' ')
        word += c;
      else
        a.push_back(std::exchange(word, {}));
    }
    REQUIRE(admin.call(a) == "OK");
    REQUIRE(guest("AUTH", "guest", "x") == "OK");
  };
  allow("+hset +set");
  for (const auto* script : {"acquire_all", "acquire_all_fenced"}) {
    CAPTURE(script);
    const auto said = guest.call(named(hash_rows, script).call);
    CHECK(said.is_error());
    CHECK(admin("EXISTS", "m", "n").integer() == 0);
  }
  allow("+pexpire");
  for (const auto* script : {"acquire_all", "acquire_all_fenced"})
    CHECK(guest.call(named(hash_rows, script).call).is_error());
  CHECK(guest.call(named(simple_rows, "simple_acquire_all").call).is_error());
  CHECK(admin("EXISTS", "m", "n").integer() == 0);
}

TEST_CASE("a fenced grant gives its counters the TTL that is sent, and lets them keep theirs where none is sent") {
  struct one {
    lua::script_text text;
    arguments keys, args;
    bool with_block;
  };
  const auto each = GENERATE(values<one>({{lua::acquire_fenced, {"m", "token"}, {ms, "me:1"}, true},
                                          {lua::acquire_any_fenced, {"m", "token"}, {ms, "me:1"}, false},
                                          {lua::acquire_all_fenced, {"m", "token"}, {ms, "me:1"}, false}}));
  simulated s;
  const auto pttl = [&] { return std::stoll(s.all.primary({"PTTL", "token"}).to_string()); };
  const auto grant = [&](const arguments& more) {
    s.all.primary({"DEL", "m"});
    auto args = each.args;
    args.insert(args.end(), more.begin(), more.end());
    return s.all.primary(eval(each.text, each.keys, args));
  };
  const auto with_ttl = [&](const std::string& token_ttl) {
    return grant(each.with_block ? arguments{"1", token_ttl} : arguments{token_ttl});
  };
  REQUIRE_FALSE(grant({}).is_error());
  CHECK(pttl() == -1);
  REQUIRE_FALSE(with_ttl("60000").is_error());
  CHECK((pttl() > 50'000 && pttl() <= 60'000));
  REQUIRE_FALSE(grant({}).is_error());
  CHECK((pttl() > 50'000 && pttl() <= 60'000));
  REQUIRE_FALSE(with_ttl("315360000000").is_error());
  CHECK(pttl() > 60'000);
  for (const auto* wrong : {"-1", "1.5", "x", "315360000001"}) CHECK(with_ttl(wrong).is_error());
  CHECK(s.all.primary({"EXISTS", "m"}) == "0");
}
