// SPDX-License-Identifier: BSL-1.0
#include "sync/claim/terms.hpp"

#include "support/catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using detail::nanoseconds;
using detail::time_point;

namespace {

constexpr time_point start{1h};

}  // namespace

TEST_CASE("drift is the relative rate of the TTL and 2 ms") {
  CHECK(detail::drift_of(30s, 0.01) == 302ms);
  CHECK(detail::drift_of(10ms, 0.01) == 2100us);
  CHECK(detail::drift_of(1s, 0) == 2ms);
  CHECK(detail::drift_of(24h, 0.2) == 17'280s + 2ms);
}

TEST_CASE("validity counts from the send and is shorter than the TTL by the drift") {
  CHECK(detail::valid_until(start, 30s, 0.01) == start + 30s - 302ms);
  CHECK(detail::valid_until(start, 10ms, 0.2) == start + 6ms);
}

TEST_CASE("the least validity is a twentieth of the TTL and 2 ms at least") {
  CHECK(detail::min_validity(30s) == 1500ms);
  CHECK(detail::min_validity(100ms) == 5ms);
  CHECK(detail::min_validity(40ms) == 2ms);
  CHECK(detail::min_validity(10ms) == 2ms);
}

TEST_CASE("the shortest TTL leaves a validity at every drift that is allowed") {
  const auto valid = detail::valid_until(start, detail::shortest_ttl, 0.2);
  CHECK(valid - detail::min_validity(detail::shortest_ttl) > start);
  CHECK(detail::command_budget(config{}, detail::shortest_ttl) == 2ms);
}

TEST_CASE("a command about a lease takes the command timeout at most and never more than a fifth of the TTL") {
  config c;
  c.command_timeout = 500ms;
  CHECK(detail::command_budget(c, 30s) == 500ms);
  CHECK(detail::command_budget(c, 2500ms) == 500ms);
  CHECK(detail::command_budget(c, 2499ms) == 2499ms / 5.0);
  CHECK(detail::command_budget(c, 100ms) == 20ms);
}

TEST_CASE("a failed renewal is repeated after a sixtieth of the TTL within 20 ms and a second") {
  CHECK(detail::renewal_retry_pause(30s) == 500ms);
  CHECK(detail::renewal_retry_pause(24h) == 1s);
  CHECK(detail::renewal_retry_pause(100ms) == 20ms);
}
