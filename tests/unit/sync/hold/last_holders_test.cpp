// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/last_holders.hpp"

#include <holdfast/owner.hpp>

#include "support/catch.hpp"

using namespace holdfast;
using lines = std::set<std::string>;

TEST_CASE("an owner is among the last holders until the last of its holds is over") {
  detail::last_holders left;
  const owner alice, bob;
  CHECK(left.empty());
  left.add(alice);
  left.add(bob);
  left.add(alice);
  CHECK(left.contains(alice));
  left.remove(alice);
  CHECK(left.contains(alice));
  left.remove(alice);
  CHECK_FALSE(left.contains(alice));
  CHECK(left.contains(bob));
  CHECK_FALSE(left.empty());
  left.remove(bob);
  CHECK(left.empty());
}

TEST_CASE("the lines in which an owner waits are told with the end of its last hold, each once") {
  detail::last_holders left;
  const owner alice, bob;
  for (const auto& who : {alice, alice, bob}) left.add(who);
  for (const auto* name : {"a", "b", "a"}) left.waits(alice, name);
  left.waits(bob, "c");
  CHECK(left.remove(alice).empty());
  CHECK(left.remove(alice) == lines{"a", "b"});
  CHECK(left.remove(bob) == lines{"c"});
  left.add(alice);
  CHECK(left.remove(alice).empty());
}
