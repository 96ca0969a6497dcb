// SPDX-License-Identifier: BSL-1.0
// The rig of the tests of Cluster: that it fails over when it should, moves slots, and is whole again afterwards.
#include "support/real_cluster.hpp"
#include "support/catch.hpp"
#include "support/raw_client.hpp"
#include "support/skip.hpp"

using namespace holdfast::test;

TEST_CASE("a rig of a cluster moves slots step by step, fails over, and is whole again") {
  if (!real_redis::available()) skip("no redis-server found");
  real_cluster rig;
  REQUIRE(rig.primaries() == std::vector<std::size_t>{0, 1, 2});
  const auto answer = [&](std::size_t node, const std::string& command, const std::string& key) {
    return raw_client(rig.node(node)).call({command, key}).to_string();
  };
  const auto address = [&](std::size_t node) { return "127.0.0.1:" + std::to_string(rig.node(node).port()); };

  const auto m = rig.name_on(0);
  const auto slot = rig.slot_of(m);
  raw_client(rig.node(0))("SET", m, "v");
  rig.begin_move(slot, 1);
  CHECK(answer(0, "GET", m) == "v");
  CHECK(answer(1, "GET", m) == "MOVED " + std::to_string(slot) + " " + address(0));
  rig.move_keys(slot, 1);
  CHECK(answer(0, "GET", m) == "ASK " + std::to_string(slot) + " " + address(1));
  rig.end_move(slot, 1);
  CHECK(answer(0, "GET", m) == "MOVED " + std::to_string(slot) + " " + address(1));
  CHECK(answer(1, "GET", m) == "v");
  CHECK(rig.owner_of(m) == 1);

  CHECK(rig.fail_over(1) == 4);
  CHECK(answer(4, "GET", m) == "v");
  rig.replicate();
  rig.node(4).kill();
  CHECK(rig.wait_for_promotion(4) == 1);
  CHECK(answer(1, "GET", m) == "v");
  rig.begin_move(slot, 0);
  rig.reset();
  CHECK(answer(1, "GET", m) == "(nil)");
  CHECK(rig.primaries() == std::vector<std::size_t>{0, 1, 2});
}
