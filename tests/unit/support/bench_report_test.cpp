// SPDX-License-Identifier: BSL-1.0
#include "bench/report.hpp"

#include <limits>
#include <stdexcept>

#include "bench/scenario.hpp"
#include "support/catch.hpp"

using namespace holdfast;
using namespace holdfast::bench;

TEST_CASE("the median is the value in the middle, of an even number the upper one") {
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 2}) == 3);
  CHECK(median({2, 2, 100}) == 2);
  CHECK_THROWS_AS(median({}), std::out_of_range);
}

TEST_CASE("of a hundred values one is at or above the 99th percentile") {
  std::vector<double> values;
  for (int i = 100; i > 0; --i) values.push_back(i);
  CHECK(quantile(0.99, values) == 100);
  CHECK(quantile(0.5, values) == 51);
  CHECK(quantile(0, values) == 1);
}

TEST_CASE("a bound is kept up to its limit, from the side that it names") {
  CHECK(bound{.target = "a", .keeps = at_most(1.05), .value = 1.05}.ok());
  CHECK_FALSE(bound{.target = "a", .keeps = at_most(1.05), .value = 1.06}.ok());
  CHECK(bound{.target = "a", .keeps = at_least(0.95), .value = 0.95}.ok());
  CHECK_FALSE(bound{.target = "a", .keeps = at_least(0.95), .value = 0.94}.ok());
}

TEST_CASE("what is only reported is ok once it is measured; what was not measured never is") {
  CHECK(bound{.target = "a", .value = 7.0}.ok());
  CHECK_FALSE(bound{.target = "a"}.ok());
  CHECK_FALSE(bound{.target = "a", .keeps = at_most(1)}.ok());
  CHECK_FALSE(bound{.target = "a", .value = std::numeric_limits<double>::quiet_NaN()}.ok());
  CHECK_FALSE(bound{.target = "a", .keeps = at_least(1), .value = std::numeric_limits<double>::infinity()}.ok());
}

TEST_CASE("a JSON line begins with target, value, limit and ok; figures follow") {
  const bound b{.target = "pair-c1",
                .what = "p50",
                .keeps = at_most(1.05),
                .value = 1.03,
                .made_of = {{"holdfast", 116.5}, {"n", 200'000}}};
  CHECK(json_line(b) == R"({"target":"pair-c1","value":1.03,"limit":1.05,"ok":true,"bound":"<=","what":"p50",)"
                        R"("holdfast":116.5,"n":200000})");
}

TEST_CASE("a JSON line says null for what there is not, and why") {
  CHECK(json_line({.target = "a", .what = "w", .keeps = at_least(2), .why = "not \"finished\"\\\n"}) ==
        R"({"target":"a","value":null,"limit":2,"ok":false,"bound":">=","what":"w","why":"not \"finished\"\\\u000a"})");
  CHECK(json_line({.target = "a", .what = "w", .value = 3}) ==
        R"({"target":"a","value":3,"limit":null,"ok":true,"bound":null,"what":"w"})");
  CHECK(json_line({.target = "a", .what = "w", .value = std::numeric_limits<double>::infinity()}) ==
        R"({"target":"a","value":null,"limit":null,"ok":false,"bound":null,"what":"w"})");
}

TEST_CASE("a table row has the target, the value, the bound, the verdict, and what it was made of") {
  const bound kept{.target = "a", .what = "w", .keeps = at_most(2), .value = 1.0, .made_of = {{"n", 5}, {"s", 0.25}}};
  CHECK_THAT(table_row(kept),
             test::contains_text("<= 2") && test::contains_text(" ok ") && test::contains_text("w: n 5, s 0.25"));
  CHECK_THAT(table_row({.target = "a", .keeps = at_most(2), .value = 3.0}), test::contains_text("MISSED"));
  CHECK_THAT(table_row({.target = "a", .what = "w", .keeps = at_most(2), .why = "not finished"}),
             test::contains_text(" - ") && test::contains_text("w; not finished"));
}

TEST_CASE("calls of a command are read from INFO commandstats, of that command alone") {
  const char* info =
      "# Commandstats\r\ncmdstat_eval:calls=3,usec=9\r\ncmdstat_evalsha:calls=60000,usec=1,usec_per_call=1\r\n";
  CHECK(calls_of(info, "eval") == 3);
  CHECK(calls_of(info, "evalsha") == 60'000);
  CHECK(calls_of(info, "get") == 0);
}

TEST_CASE("a number is read from INFO by its whole name") {
  const char* info = "# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\nused_cpu_sys_children:7\r\n";
  CHECK(number_in(info, "used_cpu_sys") == 1.5);
  CHECK(number_in(info, "used_cpu_user") == 2.25);
  CHECK_THROWS_AS(number_in(info, "cpu_user"), std::runtime_error);
}

namespace {

const plan whole(false);
const std::vector<bound> two_bounds{{"a/x", "", at_most(1)}, {"a/y", "", at_most(1)}};

}  // namespace

TEST_CASE("a scenario that was measured gives each of its bounds a value") {
  const auto rows = run({"a", two_bounds,
                         [](const plan&) {
                           return std::vector<finding>{{0.5, {{"n", 3}}}, {2}};
                         }},
                        whole);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].ok());
  CHECK(rows[0].made_of == figures{{"n", 3}});
  CHECK_FALSE(rows[1].ok());
  CHECK(rows[1].value == 2.0);
}

TEST_CASE("a scenario that does not finish gives all of its bounds the reason, what was seen, and no value") {
  const auto rows = run({"a", two_bounds,
                         [](const plan&) -> std::vector<finding> {
                           throw not_finished("3 of 4 held", {{"seconds", 90}});
                         }},
                        whole);
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) {
    CHECK_FALSE(row.value);
    CHECK_FALSE(row.ok());
    CHECK(row.why == "not finished: 3 of 4 held");
    CHECK(row.made_of == figures{{"seconds", 90}});
  }
}

TEST_CASE("a scenario that finds less than it is held to has failed") {
  const auto rows = run({"a", two_bounds, [](const plan&) { return std::vector<finding>{{0.5}}; }}, whole);
  CHECK_FALSE(rows[0].ok());
  CHECK_FALSE(rows[1].ok());
}

TEST_CASE("a scenario is found by the beginning of its name, or of a target") {
  const scenario s{"pair-server", {{"pair-server", ""}, {"pair-server/plain", ""}}};
  CHECK(matches(s, ""));
  CHECK(matches(s, "pair"));
  CHECK(matches(s, "pair-server/plain"));
  CHECK_FALSE(matches(s, "server"));
  CHECK_FALSE(matches(s, "pair-server/plainer"));
}

TEST_CASE("a quick run has one round of a hundredth, and at least of one") {
  CHECK(whole.scaled(60'000) == 60'000);
  const plan quick(true);
  CHECK(quick.scaled(60'000) == 600);
  CHECK(quick.scaled(5) == 1);
  CHECK(quick.scaled(0) == 0);
}

TEST_CASE("a sweep has as many rounds as it asks for, a quick one has one") {
  int rounds = 0;
  whole.rounds("a sweep", 3, [&] { ++rounds; });
  CHECK(rounds == 3);
  plan(true).rounds("a quick sweep", 3, [&] { ++rounds; });
  CHECK(rounds == 4);
}
