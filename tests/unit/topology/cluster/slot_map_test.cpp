// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/slot_map.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace holdfast;
using namespace holdfast::detail;
using redis::address;
using redis::reply;

namespace {

address at(std::string host, int port) { return {std::move(host), static_cast<std::uint16_t>(port), {}}; }

const address a = at("10.0.0.1", 7000), b = at("10.0.0.2", 7001), c = at("10.0.0.3", 7002),
              stranger = at("10.9.9.9", 1);

reply number(long long n) { return {reply::kind::integer, n, {}, {}}; }
reply text(std::string t) { return {reply::kind::string, 0, std::move(t), {}}; }
reply list(std::vector<reply> of) { return {reply::kind::array, 0, {}, std::move(of)}; }
reply row(long long first, long long last, reply host, long long port) {
  return list({number(first), number(last), list({std::move(host), number(port), text("id")}),
               list({text("10.0.0.7"), number(7007), text("a replica")})});
}

std::optional<slot_view> read(std::vector<reply> rows, const reach_by& reach = {}) {
  return read_slots(list(std::move(rows)), a, reach);
}

slot_view thirds(const address& one, const address& two, const address& three) {
  return {{{0, 5460, one}, {5461, 10922, two}, {10923, 16383, three}}};
}

}  // namespace

TEST_CASE("the first server of a row of CLUSTER SLOTS is the primary") {
  const auto view = read({row(0, 100, text("10.0.0.1"), 7000), row(200, 16383, text("::1"), 7001)});
  REQUIRE(view);
  REQUIRE(view->ranges.size() == 2);
  CHECK(view->ranges[0].first == 0);
  CHECK(view->ranges[0].last == 100);
  CHECK(view->ranges[0].primary == a);
  CHECK(view->ranges[1].primary == at("::1", 7001));
}

TEST_CASE("a server without a host in CLUSTER SLOTS has that of the node that answered") {
  CHECK(read({row(0, 1, {}, 7009)})->ranges[0].primary == at("10.0.0.1", 7009));
  CHECK(read({row(0, 1, text(""), 7009)})->ranges[0].primary == at("10.0.0.1", 7009));
}

TEST_CASE("what CLUSTER SLOTS tells of addresses is translated where it enters") {
  const auto reach = [](const address& told) { return told == a ? at("localhost", 17000) : told; };
  const auto view = read({row(0, 1, text("10.0.0.1"), 7000), row(2, 3, text("10.0.0.2"), 7001)}, reach);
  CHECK(view->ranges[0].primary == at("localhost", 17000));
  CHECK(view->ranges[1].primary == b);
}

TEST_CASE("an address that cannot be used leaves who had the slots, and the others are learnt") {
  const auto host = GENERATE(as<std::string>(), "?", "a b", "a/b", "user@host", "10.0.0.1\r\n");
  slot_map map;
  REQUIRE(map.replace(thirds(a, b, c), a));
  const auto view = read({row(0, 10922, text(host), 7000), row(10923, 16383, text("10.0.0.2"), 7001)});
  REQUIRE(view);
  CHECK(map.replace(*view, a) == 16383u - 10923u + 1);
  CHECK(map.owner(0) == map.number_of(a));
  CHECK(map.owner(6000) == map.number_of(b));
  CHECK(map.owner(16383) == map.number_of(b));
  CHECK_FALSE(read({row(0, 1, text("h"), 0)})->ranges[0].primary);
  CHECK_FALSE(read({row(0, 1, text("h"), 65536)})->ranges[0].primary);
  CHECK_FALSE(read({row(0, 1, text(std::string(254, 'h')), 1)})->ranges[0].primary);
}

TEST_CASE("a broken reply to CLUSTER SLOTS is not believed at all") {
  const auto good = row(0, 100, text("h"), 1);
  CHECK_FALSE(read_slots(number(1), a, {}));
  CHECK_FALSE(read_slots({reply::kind::error, 0, "ERR This instance has cluster support disabled", {}}, a, {}));
  CHECK_FALSE(read({good, number(1)}));
  CHECK_FALSE(read({good, row(200, 16384, text("h"), 1)}));
  CHECK_FALSE(read({good, row(-1, 200, text("h"), 1)}));
  CHECK_FALSE(read({good, row(300, 200, text("h"), 1)}));
  CHECK_FALSE(read({good, list({number(200), number(300)})}));
  CHECK_FALSE(read({good, list({number(200), number(300), list({text("h")})})}));
  CHECK_FALSE(read({good, list({number(200), number(300), list({text("h"), text("1")})})}));
  CHECK_FALSE(read({good, list({number(200), number(300), list({number(1), number(1)})})}));
  CHECK_FALSE(read({good, list({text("200"), number(300), list({text("h"), number(1)})})}));
}

TEST_CASE("a map in which every slot stands alone is taken") {
  std::vector<reply> rows;
  for (int s = 0; s < slot_count; ++s)
    rows.push_back(row(s, s, text(s % 2 == 0 ? "10.0.0.1" : "10.0.0.2"), 7000 + s % 2));
  slot_map map;
  CHECK(map.replace(*read(std::move(rows)), a) == slot_count);
  CHECK(map.primaries() == std::vector<node_id>{map.number_of(a), map.number_of(b)});
  CHECK(map.owner(8000) == map.number_of(a));
  CHECK(map.owner(8001) == map.number_of(b));
}

TEST_CASE("a view tells how many slots have another owner") {
  slot_map map;
  CHECK(map.replace(thirds(a, b, c), a) == slot_count);
  CHECK(map.replace(thirds(a, b, c), b) == 0u);
  CHECK(map.replace(thirds(a, b, a), b) == 5461u);
  CHECK_FALSE(map.owns_any(map.number_of(c)));
}

TEST_CASE("a slot that occurs twice in a view breaks it, and the last good map is kept") {
  slot_map map;
  REQUIRE(map.replace(thirds(a, b, c), a));
  CHECK_FALSE(map.replace({{{0, 16383, b}, {5, 5, c}}}, a));
  CHECK(map.replace(thirds(a, b, c), a) == 0u);
}

TEST_CASE("a map shrinks only if another node says the same") {
  slot_map map;
  REQUIRE(map.replace(thirds(a, b, c), a));
  const slot_view alone{{{0, 5460, a}}};
  CHECK_FALSE(map.replace(alone, a));
  CHECK_FALSE(map.replace(alone, a));
  CHECK(map.covered() == slot_count);
  SECTION("it does") {
    CHECK(map.replace(alone, b) == slot_count - 5461u);
    CHECK(map.owner(5461) == slot_map::nobody);
    CHECK(map.covered() == 5461);
  }
  SECTION("it says another thing") {
    CHECK_FALSE(map.replace({{{0, 5460, b}}}, b));
    CHECK_FALSE(map.replace({}, c));
    CHECK(map.covered() == slot_count);
  }
  SECTION("it says that all is well") {
    CHECK(map.replace(thirds(a, b, c), b) == 0u);
    CHECK_FALSE(map.replace(alone, b));
  }
}

TEST_CASE("a slot that has moved has its new owner at once") {
  slot_map map;
  CHECK(map.owner(7) == slot_map::nobody);
  CHECK(map.moved(7, b));
  CHECK_FALSE(map.moved(7, b));
  CHECK(map.owner(7) == map.number_of(b));
  CHECK(map.covered() == 1);
  REQUIRE(map.replace(thirds(a, b, c), a));
  CHECK(map.owner(7) == map.number_of(a));
  CHECK(map.moved(7, stranger));
  CHECK(map.covered() == slot_count);
  CHECK(map.primaries().size() == 4);
}

TEST_CASE("a number never names another server, however many there are") {
  slot_map map;
  REQUIRE(map.replace(thirds(a, b, c), a));
  const auto number_of_a = map.number_of(a);
  std::vector<node_id> seen{number_of_a, map.number_of(b), map.number_of(c)};
  for (std::uint16_t port = 1; port <= 5000; ++port) {
    const auto given = map.number_of(at("h", port));
    REQUIRE(given > seen.back());
    seen.push_back(given);
  }
  CHECK(map.number_of(a) == number_of_a);
  slot_view many;
  for (slot_number s = 0; s < slot_count; ++s) many.ranges.push_back({s, s, at("x", s + 1)});
  CHECK(map.replace(many, a) == slot_count);
  CHECK(map.primaries().size() == slot_count);
  CHECK(map.owner(0) > seen.back());
}
