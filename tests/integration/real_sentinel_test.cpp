// SPDX-License-Identifier: BSL-1.0
// The rig of the tests of Sentinel: that it fails over when it should, and is whole again afterwards.
#include "support/real_sentinel.hpp"
#include "support/catch.hpp"
#include "support/raw_client.hpp"
#include "support/skip.hpp"

using namespace holdfast::test;

TEST_CASE("a rig of sentinels fails over from a primary that is dead, stopped or relieved, and is whole again") {
  if (!real_redis::available()) skip("no redis-server found");
  real_sentinel rig;
  const auto holds_role = [&](const std::string& role, real_redis& server) {
    return raw_client(server)("ROLE").array().at(0) == role;
  };
  const auto check = [&](const auto& fault) {
    raw_client(rig.primary())("SET", "k", "v");
    rig.replicate();
    const auto before = rig.primary_number();
    fault();
    CHECK(rig.primary_number() != before);
    CHECK(holds_role("master", rig.primary()));
    CHECK(raw_client(rig.primary())("GET", "k") == "v");
    for (std::size_t n = 0; n < rig.sentinels; ++n) CHECK(rig.announced_by(n) == rig.primary_number());
  };
  check([&] { rig.primary().kill(), rig.wait_for_failover(); });
  rig.reset();
  check([&] { rig.primary().stop(), rig.wait_for_failover(); });
  rig.reset();
  check([&] { rig.fail_over(); });
  rig.reset();
  CHECK(holds_role("master", rig.primary()));
  CHECK(raw_client(rig.primary())("KEYS", "*").array().empty());
  for (const std::size_t n : {0, 1}) CHECK(holds_role("slave", rig.replica(n)));
}
