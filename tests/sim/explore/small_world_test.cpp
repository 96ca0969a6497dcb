// SPDX-License-Identifier: BSL-1.0
#include "sim/explore/small_world.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "sim/explore/plan.hpp"
#include "sim/explore/worlds.hpp"
#include "support/catch.hpp"

using namespace holdfast::sim::explore;

namespace {

setting world_named(std::string_view name) { return *std::ranges::find(all_worlds(), name, &setting::name); }

std::string told(const setting& of, const plan& path) {
  std::ostringstream text;
  replay([&](chooser& decides) { return live(of, decides, &text); }, path);
  return text.str();
}

search_result search(const setting& of) {
  return explore([&](chooser& decides) { return live(of, decides); }, of.within);
}

}  // namespace

TEST_CASE("a path of a small world is lived again by its plan, to the last line") {
  const auto of = world_named("two_reply_lost");
  const auto first = told(of, {0, 1, 4});
  CHECK(first == told(of, {0, 1, 4}));
  CHECK(first != told(of, {0, 1}));
  CHECK_THAT(first, holdfast::test::contains_text("search   cut client"));
}

TEST_CASE("each order of two clients that lock and unlock is lived") {
  auto of = world_named("two");
  const auto found = search(of);
  CHECK(found.exhausted);
  CHECK(found.found.empty());
  of.callers.pop_back();
  const auto alone = search(of);
  CHECK(alone.exhausted);
  CHECK(alone.paths == 2);  // its caller unlocks at once, or after a delay
  CHECK(found.paths > 50 * alone.paths);
}

TEST_CASE("a search without sleep sets finds the same, and lives more paths for it") {
  auto of = world_named("two");
  of.within.delays = 0;
  of.within.depth = 8;
  const auto reduced = search(of);
  of.within.reduces = false;
  const auto all = search(of);
  CHECK(all.found.empty());
  CHECK(all.exhausted);
  CHECK(all.paths > reduced.paths);
}

TEST_CASE("a fault strikes at each point of a path, and at none beyond the bound") {
  auto of = world_named("two_server_pause");
  of.callers.pop_back();
  of.symmetric = false;
  const auto one = search(of);
  CHECK(one.exhausted);
  CHECK(one.found.empty());
  of.within.faults = 0;
  CHECK(search(of).paths < one.paths);
}

TEST_CASE("a fresh world begins without a PING") {
  auto of = world_named("two");
  const auto searched = [&] {
    const auto text = told(of, {});
    return text.substr(text.find("search"));
  };
  CHECK_THAT(searched(), holdfast::test::contains_text("runs PING"));
  of.fresh = true;
  CHECK_FALSE(searched().find("runs PING") < searched().find("acquired orders"));
}

TEST_CASE("nobody expects an answer while a timer comes before what is on its way") {
  auto of = world_named("reentry_cancel");
  of.faults = late;
  const auto text = told(of, *plan_of("0*4.2.0*4.2"));
  CHECK_THAT(text, holdfast::test::contains_text("search   the timer comes first"));
  CHECK(text.find("VIOLATION") == text.npos);
}

TEST_CASE("a call is told of the loss of a lease that another call of its owner has") {
  auto of = world_named("same_owner");
  of.faults = client_pause;
  const auto text = told(of, *plan_of("0*4.1.0*2.4"));
  CHECK_THAT(text, holdfast::test::contains_text("search   pause client0"));
  CHECK(text.find("VIOLATION") == text.npos);
}

TEST_CASE("no two worlds have one name, and each says what it is about") {
  std::set<std::string_view> names;
  for (const auto& each : all_worlds()) {
    CHECK(names.insert(each.name).second);
    CHECK_FALSE(each.about.empty());
  }
}
