// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/shard_route.hpp"

#include <chrono>

#include "support/catch.hpp"

using namespace holdfast::detail;
using namespace std::chrono_literals;
using kind = shard_route::step::kind;

namespace {

constexpr node_id nobody = shard_route::nobody, a = 1, b = 2;
constexpr time_point start = time_point{} + 1h;

/// It is subscribed at A.
shard_route at_a() {
  shard_route r;
  r.look(a, start);
  r.acknowledged();
  return r;
}

}  // namespace

TEST_CASE("a channel is subscribed at the owner of its slot") {
  shard_route r;
  CHECK(r.look(nobody, start).type == kind::leave);
  const auto asked = r.look(a, start);
  CHECK(asked.type == kind::ask);
  CHECK(asked.node == a);
  CHECK(r.node() == a);
  CHECK_FALSE(r.live());
  CHECK(r.look(a, start).type == kind::stay);
  r.acknowledged();
  CHECK(r.live());
  CHECK(r.look(a, start).type == kind::stay);
}

TEST_CASE("a channel follows its slot") {
  auto r = at_a();
  SECTION("to another owner") {
    CHECK(r.look(b, start).type == kind::ask);
    CHECK(r.node() == b);
  }
  SECTION("to nobody, and back") {
    CHECK(r.look(nobody, start).type == kind::leave);
    CHECK(r.node() == nobody);
    CHECK(r.look(a, start).type == kind::ask);
  }
  SECTION("away from a node that says so") {
    r.moved(start);
    CHECK(r.look(b, start).type == kind::ask);
  }
  SECTION("when the node is gone") {
    r.gone();
    CHECK(r.look(a, start).type == kind::ask);
  }
  CHECK_FALSE(r.live());
}

TEST_CASE("a node that has sent the channel away is asked again after a pause, unless the map changes") {
  auto r = at_a();
  r.moved(start);
  const auto pause = r.look(a, start);
  CHECK(pause.type == kind::wait);
  CHECK(pause.until == start + 20ms);
  SECTION("again") { CHECK(r.look(a, pause.until).node == a); }
  SECTION("another") { CHECK(r.look(b, start + 1ms).node == b); }
}

TEST_CASE("from the second time in a row that it is sent away the channel pauses before any node, longer and longer") {
  auto r = at_a();
  auto now = start;
  r.moved(now);
  r.look(b, now);
  for (const auto expected : {40ms, 80ms, 160ms, 320ms, 320ms}) {
    r.moved(now);
    const auto pause = r.look(a, now);
    REQUIRE(pause.type == kind::wait);
    CHECK(pause.until == now + expected);
    now = pause.until;
    REQUIRE(r.look(a, now).type == kind::ask);
  }
  r.acknowledged();
  r.moved(now);
  CHECK(r.look(b, now).type == kind::ask);
}

TEST_CASE("a refused channel stays refused until it is given up or acknowledged after all") {
  shard_route r;
  r.look(a, start);
  r.refused();
  CHECK(r.is_refused());
  CHECK(r.look(a, start).type == kind::stay);
  SECTION("someone new wants it") {
    r.gone();
    CHECK(r.look(a, start).type == kind::ask);
  }
  SECTION("on a new connection") { r.acknowledged(); }
  SECTION("elsewhere") { CHECK(r.look(b, start).type == kind::ask); }
  CHECK_FALSE(r.is_refused());
}
