// SPDX-License-Identifier: BSL-1.0
#include "cli/web/event_log.hpp"

#include <boost/json/parse.hpp>

#include "support/catch.hpp"

using holdfast::cli::event_log;
using namespace std::chrono_literals;
namespace json = boost::json;

namespace {

constexpr event_log::instant start{1h};

}  // namespace

TEST_CASE("the last events are kept, with their numbers and ages") {
  event_log log;
  CHECK(log.snapshot(start) == "[]");
  for (std::size_t i = 0; i < event_log::most_events + 5; ++i) log.add({{"event", "held"}}, start);
  const auto events = json::parse(log.snapshot(start + 2s)).as_array();
  REQUIRE(events.size() == event_log::most_events);
  CHECK(events.front().at("event").at("number") == 6);
  CHECK(events.back().at("age_ms") == 2'000);
}
