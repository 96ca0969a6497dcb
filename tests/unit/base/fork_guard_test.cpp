// SPDX-License-Identifier: BSL-1.0
#include "base/fork_guard.hpp"

#include "support/catch.hpp"
#include "support/fork.hpp"

using holdfast::detail::fork_guard;
using holdfast::test::in_child;

TEST_CASE("what was made before a fork is elsewhere in the child and at home in the parent") {
  const fork_guard before;
  CHECK(in_child([&] { return before.elsewhere(); }));
  CHECK_FALSE(before.elsewhere());
}

TEST_CASE("what is made in a child is at home there and elsewhere in a child of it") {
  CHECK(in_child([] {
    const fork_guard born;
    return !born.elsewhere() && in_child([&] { return born.elsewhere(); });
  }));
}
