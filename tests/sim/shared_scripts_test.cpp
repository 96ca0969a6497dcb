// SPDX-License-Identifier: BSL-1.0
// The scripts of a shared mutex in each state of its keys.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lua_scripts.hpp"
#include "sim/script_rig.hpp"
#include "sim/shared_rig.hpp"
#include "support/catch.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"

namespace {

using namespace holdfast;
using namespace test::scripts;
using namespace test::shared_rig;
using test::value;
namespace lua = detail::lua;

arguments hash(const arguments& fields) {
  arguments all{"HSET", lock};
  all.insert(all.end(), fields.begin(), fields.end());
  return all;
}
const arguments lives{"PEXPIRE", lock, long_ms};
arguments deadline_lives(const std::string& owner) { return {"SET", deadline(owner), "1", "PX", long_ms}; }
arguments turn_of(const std::string& client) { return {"SET", turn, client, "PX", long_ms}; }
arguments waits(const std::string& set, const std::string& client, const std::string& arrival) {
  return {"ZADD", set, arrival, client};
}

const std::vector<arguments> other_reads{hash({"mode", "read", other1, "1"}), lives, deadline_lives(other1)};
std::vector<arguments> and_also(std::vector<arguments> all, const std::vector<arguments>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

const std::vector<arguments> readers_turn{turn_of("r"), waits(readers, other, "0"), waits(queue, waiter, "5")};

const std::vector<state> states{
    {"free", {}},
    {"I read", {hash({"mode", "read", my1, "1"}), lives, deadline_lives(my1)}},
    {"another reads", other_reads},
    {"both read", {hash({"mode", "read", my1, "1", other1, "1"}), lives, deadline_lives(my1), deadline_lives(other1)}},
    {"a dead client reads", {hash({"mode", "read", other1, "1"}), lives}},
    {"I write", {hash({"mode", "write", my1 + ":write", "1"}), lives}},
    {"another writes", {hash({"mode", "write", other1 + ":write", "1"}), lives}},
    {"another reads, and a client waits to write", and_also(other_reads, {waits(queue, waiter, "5")})},
    {"another reads, and a dead client waits to write", and_also(other_reads, {waits(queue, dead, "5")})},
    {"a writer's turn", {turn_of(waiter)}},
    {"the readers' turn", readers_turn},
    {"the readers' turn, and I was asked", and_also(readers_turn, {waits(readers, me, "0")})},
    {"my turn to write", {turn_of(me)}},
    {"a plain lock", {hash({other1, "1"}), lives}},
    {"without a TTL", {hash({"mode", "write", other1 + ":write", "1"})}},
    {"read, without a TTL", {hash({"mode", "read", other1, "1"}), deadline_lives(other1)}},
    {"not a hash", {{"SET", lock, "text"}}},
};
constexpr const char *wrong = "WRONGTYPE", *no_lock = "HOLDFAST no lock", *nil = "(nil)";

const std::vector<bool> never(17, false), always(17, true);

const std::vector<row> rows{
    {"read",
     read_acquire(my1, "0"),
     {"[1, 0, 0]", "[1, 0, 0]", "[1, 0, 0]", "[1, 0, 0]", "[1, 0, 0]", "[0, long]", "[0, long]", "[0, long]",
      "[1, 0, 0]", "[0, -2]", "[0, -2]", "[1, 1, 0]", "[0, -2]", "[0, long]", "[0, -1]", "[0, -1]", wrong},
     {0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1},
     {1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}},
    {"read, or join the readers",
     read_acquire(my1, "1"),
     {"[1, 0, 0]", "[1, 0, 0]", "[1, 0, 0]", "[1, 0, 0]", "[1, 0, 0]", "[0, long]", "[0, long]", "[0, long]",
      "[1, 0, 0]", "[0, -2]", "[0, -2]", "[1, 1, 0]", "[0, -2]", "[0, long]", "[0, -1]", "[0, -1]", wrong},
     {0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1},
     {1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}},
    {"write",
     write_acquire(my1, "0"),
     {"[1]", "[0, long, -1]", "[0, long, -1]", "[0, long, -1]", "[1]", "[1]", "[0, long, -1]", "[0, long, -1]",
      "[0, long, -1]", "[0, -2, -1]", "[0, -2, -1]", "[0, -2, -1]", "[1]", "[0, long, -1]", "[0, -1, -1]",
      "[0, -1, -1]", wrong},
     {0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1},
     {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}},
    {"end of a read hold",
     read_release("publish", my1, "0"),
     {nil, "[1, 0]", nil, "[0, 0]", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, wrong},
     never,
     never},
    {"end of a read hold, told by both",
     read_release("both", my1, "0"),
     {nil, "[1, 0]", nil, "[0, 0]", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, wrong},
     never,
     never},
    {"end of a read hold, and of the place",
     read_release("auto", my1, "1"),
     {nil, "[1, 0]", nil, "[0, 0]", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, wrong},
     never,
     never},
    {"end of a write hold",
     write_release("publish", my1, "0"),
     {nil, nil, nil, nil, nil, "[0, 0, 0]", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, wrong},
     never,
     never},
    {"end of a write hold, and of the place",
     write_release("spublish", my1, "1"),
     {nil, nil, nil, nil, nil, "[0, 0, 0]", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, wrong},
     never,
     never},
    {"end of a write hold, and another follows",
     write_release("both", my1, "2"),
     {nil, nil, nil, nil, nil, "[0, 0, 0]", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, wrong},
     never,
     never},
    {"renewal of a read hold",
     eval(lua::shared_renew, {lock, deadline(my1)}, {ms, my1}),
     {"[0]", "[1]", "[0]", "[1]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]",
      "[0]"},
     never,
     never},
    {"renewal of a write hold",
     eval(lua::shared_renew, {lock, lock}, {ms, my1 + ":write"}),
     {"[0]", "[0]", "[0]", "[0]", "[0]", "[1]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]", "[0]",
      "[0]"},
     never,
     never},
    {"downgrade",
     downgrade("publish", my1),
     {"0", "1", "0", "1", "0", "1", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", wrong},
     never,
     never},
    {"force",
     eval(lua::shared_force, {lock}, {"publish", channel}),
     {"0", "1", "1", "1", "1", "1", "1", "1", "1", "0", "0", "0", "0", no_lock, "1", "1", wrong},
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1},
     never},
    {"force, told by both",
     eval(lua::shared_force, {lock}, {"both", channel}),
     {"0", "1", "1", "1", "1", "1", "1", "1", "1", "0", "0", "0", "0", no_lock, "1", "1", wrong},
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1},
     never},
    {"holder",
     eval(lua::shared_holder, {lock}, {}),
     {nil, "[read, me:1, 1, long, 1]", "[read, other:1, 1, long, 1]", "[read, other:1, 1, long, 2]",
      "[read, other:1, 1, long, 1]", "[write, me:1, 1, long, 0]", "[write, other:1, 1, long, 0]",
      "[read, other:1, 1, long, 1]", "[read, other:1, 1, long, 1]", nil, nil, nil, nil, "1",
      "[write, other:1, 1, -1, 0]", "[read, other:1, 1, -1, 1]", wrong},
     always,
     never},
};
/// A client takes a place in the queue, which a replica has not: only a primary is asked.
const std::vector<row> queue_rows{
    {"write, or join the queue",
     write_acquire(my1, "1"),
     {"[1]", "[0, long, 0]", "[0, long, 0]", "[0, long, 0]", "[1]", "[1]", "[0, long, 0]", "[0, long, 1]",
      "[0, long, 1]", "[0, -2, 0]", "[0, -2, 1]", "[0, -2, 1]", "[1]", "[0, long, 0]", "[0, -1, 0]", "[0, -1, 0]",
      wrong},
     never,
     never},
    {"write, or join the front of the queue",
     write_acquire(my1, "2"),
     {"[1]", "[0, long, 0]", "[0, long, 0]", "[0, long, 0]", "[1]", "[1]", "[0, long, 0]", "[0, long, 0]",
      "[0, long, 0]", "[0, -2, 0]", "[0, -2, 0]", "[0, -2, 0]", "[1]", "[0, long, 0]", "[0, -1, 0]", "[0, -1, 0]",
      wrong},
     never,
     never},
};

bool fits(const value& v, std::string_view expected) {
  return v.is_error() ? v.text.starts_with(expected) : text_of(v) == expected;
}

const std::vector<table> all_rows{{states, rows, fits}}, queue_table{{states, queue_rows, fits}};

/// All that a foreign value could lose.
std::string contents(const asked& ask) {
  return ask({"TYPE", lock}).to_string() + ask({"GET", lock}).to_string() + ask({"HGETALL", lock}).to_string();
}

void check_foreign_values(const servers& all) {
  const std::vector<state> foreign{named(states, "a plain lock"),
                                   named(states, "not a hash"),
                                   {"data with a mode", {hash({"mode", "read", "name", "text", "n", "5"})}},
                                   {"data of a reader's form", {hash({"mode", "read", "a:b", "text"})}},
                                   {"data that are written", {hash({"mode", "write", "a:b", "text"})}}};
  for (const auto& found : foreign)
    for (const auto& r : rows) {
      INFO(r.name << ", " << found.name);
      make(all, found);
      const auto before = contents(all.primary);
      all.primary(r.call);
      CHECK(contents(all.primary) == before);
    }
}

void check_second_copies(const servers& all) {
  for (const auto* of : {&rows, &queue_rows})
    for (const auto& r : *of)
      for (std::size_t s = 0; s + 1 < states.size(); ++s) {
        INFO(r.name << ", " << states[s].name);
        make(all, states[s]);
        const auto first = text_of(all.primary(r.call));
        const auto kept = contents(all.primary);
        const auto second = text_of(all.primary(r.call));
        CHECK(contents(all.primary) == kept);
        const std::string_view name = r.name;
        if (name.starts_with("end")) CHECK(second == nil);
        if (name.starts_with("force") && first != no_lock) CHECK((second == "0" || second.starts_with("HOLDFAST")));
        if (name.starts_with("re") || name.starts_with("write") || name == "downgrade") CHECK(second == first);
      }
}

}  // namespace

TEST_CASE("each script of a shared mutex answers in each state of its keys as its recipe says") {
  SECTION("simulated") {
    const listening_simulation s;
    check_primary(s.servers.all, all_rows);
    check_primary(s.servers.all, queue_table);
  }
  SECTION("real") {
    need_redis();
    const listening_pair pair;
    check_primary(pair.servers.all, all_rows);
    check_primary(pair.servers.all, queue_table);
  }
}

TEST_CASE("a replica says of no shared mutex that it is yours or not yours or acquired") {
  SECTION("simulated") { check_replica(listening_simulation().servers.all, all_rows); }
  SECTION("real") {
    need_redis();
    check_replica(listening_pair().servers.all, all_rows);
  }
}

TEST_CASE("a primary that may not write confirms no side of a shared mutex and denies none") {
  SECTION("simulated") { check_without_writes(listening_simulation().servers.all, all_rows); }
  SECTION("real") {
    need_redis();
    check_without_writes(listening_pair().servers.all, all_rows);
  }
}

TEST_CASE("a full server refuses new holds of a shared mutex alone") {
  SECTION("simulated") { check_full(listening_simulation().servers.all, all_rows); }
  SECTION("real") {
    need_redis();
    check_full(listening_pair().servers.all, all_rows);
  }
}

TEST_CASE("a second copy of a shared mutex's script changes nothing more") {
  SECTION("simulated") { check_second_copies(listening_simulation().servers.all); }
  SECTION("real") {
    need_redis();
    check_second_copies(listening_pair().servers.all);
  }
}

TEST_CASE("scripts of a shared mutex leave the values of others alone") {
  SECTION("simulated") { check_foreign_values(listening_simulation().servers.all); }
  SECTION("real") {
    need_redis();
    check_foreign_values(listening_pair().servers.all);
  }
}

TEST_CASE("numbers of a shared mutex that are out of range are refused before anything is written") {
  simulated s;
  const auto& found = named(states, "I write");
  const auto refused = [&](arguments command, std::size_t at, const char* bad) {
    make(s.all, found);
    command.at(3 + static_cast<std::size_t>(std::stoi(command.at(2))) + at) = bad;
    const auto before = contents(s.all.primary);
    const auto said = s.all.primary(command);
    INFO(said);
    CHECK(said.text.starts_with("HOLDFAST invalid ttl"));
    CHECK(contents(s.all.primary) == before);
    CHECK(s.node.tamper().all().size() == 1);
  };
  for (const auto* bad : {"", "0", "-1", "1.5", "x", "nan", "inf", "86400001"}) {
    CAPTURE(bad);
    refused(read_acquire(other1, "1"), 0, bad);
    refused(write_acquire(other1, "1"), 0, bad);
    refused(eval(lua::shared_renew, {lock, lock}, {ms, my1 + ":write"}), 0, bad);
    refused(eval(lua::shared_renew, {lock, lock}, {ms, my1 + ":write", ms}), 2, bad);
    refused(downgrade("publish", my1), 0, bad);
    refused(downgrade("publish", my1), 4, bad);
    refused(read_release("publish", my1, "1"), 3, bad);
    refused(write_release("publish", my1, "2"), 3, bad);
  }
}
