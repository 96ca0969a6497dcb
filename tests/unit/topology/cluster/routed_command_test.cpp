// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/routed_command.hpp"

#include <chrono>
#include <memory>
#include <string>

#include "support/catch.hpp"
#include "support/manual_clock.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

struct counted_command final : redis::command {
  void append_to(std::string& out) const override { out += "EVALSHA"; }
  void answered(const redis::outcome&) override {}
  const redis::command_name* counted_as() const noexcept override { return &name; }

  redis::command_name name{"acquire", true};
};

struct deaf_router final : detail::routed_command::router {
  void heard(detail::routed_command&, const redis::outcome&) override {}
};

}  // namespace

TEST_CASE("a command that looks for its node is counted as what it is") {
  manual_clock clock;
  manual_timers timers(clock);
  deaf_router router;
  const auto inner = std::make_shared<counted_command>();
  const detail::routed_command c(router, timers, {}, {inner, {.timeout = 1s}}, clock.now());
  CHECK(c.counted_as() == &inner->name);
}

}  // namespace holdfast::test
