// SPDX-License-Identifier: BSL-1.0
#include "base/on_its_way.hpp"

#include <optional>
#include <utility>

#include "support/catch.hpp"

namespace holdfast::test {

using detail::on_its_way;

TEST_CASE("a flag is set while its handler is on its way, whether that runs or is destroyed") {
  std::atomic<bool> flag{false};
  std::optional<on_its_way> made(flag);
  CHECK(flag);
  std::optional<on_its_way> moved(std::move(*made));
  made.reset();
  CHECK(flag);
  SECTION("it runs") {
    moved->arrived();
    CHECK_FALSE(flag);
    flag = true;  // another one is on its way
    moved.reset();
    CHECK(flag);
  }
  SECTION("it is destroyed unrun") {
    moved.reset();
    CHECK_FALSE(flag);
  }
}

}  // namespace holdfast::test
