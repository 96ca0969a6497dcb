// SPDX-License-Identifier: BSL-1.0
#include "base/birthplace.hpp"

#include "support/catch.hpp"
#include "support/fork.hpp"

using holdfast::detail::birthplace;
using holdfast::test::in_child;

TEST_CASE("what was made before a fork is elsewhere in the child and at home in the parent") {
  const birthplace before;
  CHECK(in_child([&] { return before.elsewhere(); }));
  CHECK_FALSE(before.elsewhere());
}

TEST_CASE("what is made in a child is at home there and elsewhere in a child of it") {
  CHECK(in_child([] {
    const birthplace born;
    return !born.elsewhere() && in_child([&] { return born.elsewhere(); });
  }));
}
