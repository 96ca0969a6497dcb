// SPDX-License-Identifier: BSL-1.0
// The scripts of a latch in each state of their keys: each call is counted once, and the last one opens the latch.
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

const std::string count = "n", mark = "holdfast_done:{n}:mine:1", mark_ms = "300000";
const arguments keys{count, mark};

const std::vector<state> states{
    {"open", {}},
    {"1 is left", {{"SET", count, "1"}}},
    {"3 are left", {{"SET", count, "3"}}},
    {"mine was counted", {{"SET", count, "3"}, {"SET", mark, "3", "PX", mark_ms}}},
    {"mine has opened it", {{"SET", mark, "0", "PX", mark_ms}}},
    {"somebody's string", {{"SET", count, "text"}}},
    {"not a string", {{"HSET", count, "f", "v"}}},
};
constexpr const char *wrong = "WRONGTYPE", *no_lock = "HOLDFAST no lock";

arguments count_down(const std::string& n, const std::string& word = "publish") {
  return eval(lua::count_down, keys, {n, mark_ms, word, "channel"});
}
arguments set(const std::string& n, const std::string& word = "publish") {
  return eval(lua::latch_set, keys, {n, mark_ms, word, "channel"});
}

const std::vector<bool> of_foreign_keys{0, 0, 0, 0, 0, 1, 1};

const std::vector<row> rows{
    {"count one down",
     count_down("1"),
     {"[0, 0]", "[0, 0]", "[2, 0]", "[3, 0]", "[0, 0]", no_lock, wrong},
     of_foreign_keys,
     {1, 1, 1, 0, 0, 0, 0}},
    {"count more down than are left",
     count_down("4", "both"),
     {"[0, 0]", "[0, 0]", "[0, 0]", "[3, 0]", "[0, 0]", no_lock, wrong},
     of_foreign_keys,
     {1, 1, 1, 0, 0, 0, 0}},
    {"count one down, told by auto",
     count_down("1", "auto"),
     {"[0, 0]", "[0, 0]", "[2, 0]", "[3, 0]", "[0, 0]", no_lock, wrong},
     of_foreign_keys,
     {1, 1, 1, 0, 0, 0, 0}},
    {"count one down, told by spublish",
     count_down("1", "spublish"),
     {"[0, 0]", "[0, 0]", "[2, 0]", "[3, 0]", "[0, 0]", no_lock, wrong},
     of_foreign_keys,
     {1, 1, 1, 0, 0, 0, 0}},
    {"set",
     set("5"),
     {"[1, 0]", "[0, 0]", "[0, 0]", "[1, 0]", "[1, 0]", no_lock, wrong},
     {0, 1, 1, 0, 0, 1, 1},
     {1, 0, 0, 0, 0, 0, 0}},
    {"set, told by both",
     set("5", "both"),
     {"[1, 0]", "[0, 0]", "[0, 0]", "[1, 0]", "[1, 0]", no_lock, wrong},
     {0, 1, 1, 0, 0, 1, 1},
     {1, 0, 0, 0, 0, 0, 0}},
};

bool fits(const value& answer, std::string_view expected) {
  return answer.is_error() ? answer.text.starts_with(expected) : answer.to_string() == expected;
}

const std::vector<table> latch_table{{states, rows, fits}};

const state& state_named(std::string_view name) { return named(states, name); }

void check_second_copies(const servers& all) {
  for (const auto& r : rows)
    for (const auto* const found : {"open", "1 is left", "3 are left"}) {
      INFO(r.name << ", " << found);
      make(all, state_named(found));
      const auto first = all.primary(r.call).array().at(0);
      const auto left = all.primary({"GET", count}).to_string();
      CHECK(all.primary(r.call).array().at(0).number == first.number);
      CHECK(all.primary({"GET", count}).to_string() == left);
      CHECK(all.primary({"PTTL", count}).number < 0);  // the key has no TTL, or is gone
    }
}

void check_foreign_values(const servers& all) {
  const auto contents = [&] {
    return all.primary({"TYPE", count}).to_string() + all.primary({"GET", count}).to_string() +
           all.primary({"HGETALL", count}).to_string() + all.primary({"EXISTS", mark}).to_string();
  };
  for (const auto* const found : {"somebody's string", "not a string"})
    for (const auto& r : rows) {
      INFO(r.name << ", " << found);
      make(all, state_named(found));
      const auto before = contents();
      all.primary(r.call);
      CHECK(contents() == before);
    }
}

void check_mark(const servers& all) {
  make(all, state_named("3 are left"));
  all.primary(count_down("1"));
  CHECK(all.primary({"PTTL", mark}).integer() > 200'000);
  all.primary({"PEXPIRE", mark, "100000"});
  all.primary(count_down("1"));
  CHECK(all.primary({"PTTL", mark}).integer() > 200'000);
  CHECK(all.primary({"GET", count}) == "2");
}

}  // namespace

TEST_CASE("each script of a latch answers in each state of its keys as its recipe says") {
  SECTION("simulated") { check_primary(simulated().all, latch_table); }
  SECTION("real") {
    need_redis();
    check_primary(real_pair().all, latch_table);
  }
}

TEST_CASE("a replica says of no call that it was counted, or that it has set a latch") {
  SECTION("simulated") { check_replica(simulated().all, latch_table); }
  SECTION("real") {
    need_redis();
    check_replica(real_pair().all, latch_table);
  }
}

TEST_CASE("a primary that may not write counts nothing and sets nothing") {
  SECTION("simulated") { check_without_writes(simulated().all, latch_table); }
  SECTION("real") {
    need_redis();
    check_without_writes(real_pair().all, latch_table);
  }
}

TEST_CASE("a full server counts nothing, and knows a second copy") {
  SECTION("simulated") { check_full(simulated().all, latch_table); }
  SECTION("real") {
    need_redis();
    check_full(real_pair().all, latch_table);
  }
}

TEST_CASE("a second copy of a latch's script changes nothing more") {
  SECTION("simulated") { check_second_copies(simulated().all); }
  SECTION("real") {
    need_redis();
    check_second_copies(real_pair().all);
  }
}

TEST_CASE("scripts of a latch leave the values of others alone") {
  SECTION("simulated") { check_foreign_values(simulated().all); }
  SECTION("real") {
    need_redis();
    check_foreign_values(real_pair().all);
  }
}

TEST_CASE("each copy of a count-down makes its mark live longer") {
  SECTION("simulated") { check_mark(simulated().all); }
  SECTION("real") {
    need_redis();
    check_mark(real_pair().all);
  }
}

TEST_CASE("a channel is told that a latch was set, and that it opened, once") {
  simulated s;
  std::vector<std::string> told;
  s.node.on_publish = [&](std::string_view channel, std::string_view payload) {
    told.push_back(std::string(channel) + " " + std::string(payload));
  };
  const auto after = [&](const char* found, const arguments& command) {
    make(s.all, state_named(found));
    told.clear();
    s.all.primary(command);
    s.all.primary(command);
    return std::exchange(told, {});
  };
  using all = std::vector<std::string>;
  CHECK(after("open", set("2")) == all{"channel 1"});
  CHECK(after("1 is left", set("2")).empty());
  CHECK(after("1 is left", count_down("1")) == all{"channel 0"});
  CHECK(after("3 are left", count_down("7")) == all{"channel 0"});
  CHECK(after("3 are left", count_down("1")).empty());
  CHECK(after("open", count_down("1")).empty());
  CHECK(after("1 is left", count_down("1", "both")) == all{"channel 00", "channel 0"});
}

TEST_CASE("numbers of a latch that are out of range are refused before anything is written") {
  const simulated s;
  make(s.all, state_named("3 are left"));
  for (const auto* const bad : {"", "0", "-1", "1.5", "x", "nan", "inf", "4294967296"}) {
    INFO(bad);
    for (const auto& command : {count_down(bad), set(bad)})
      CHECK(s.all.primary(command).text.starts_with("HOLDFAST invalid count"));
    CHECK(s.all.primary({"GET", count}) == "3");
    CHECK(s.all.primary({"EXISTS", mark}) == 0);
  }
}
