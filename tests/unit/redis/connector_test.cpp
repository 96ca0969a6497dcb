// SPDX-License-Identifier: BSL-1.0
#include "redis/connector.hpp"

#include <memory>
#include <new>

#include "integration/redis_rig.hpp"
#include "support/catch.hpp"
#include "support/manual_clock.hpp"
#include "support/no_memory.hpp"
#include "support/skip.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

TEST_CASE("an attempt to connect that finds no memory ends before its deadline") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  redis_rig rig;
  scripted_server server(rig.io, [](std::string_view, std::size_t) { return std::string(); });
  manual_clock clock;  // stands still, and so does the deadline
  manual_timers alarms(clock);
  bool failed = true;
  std::size_t n = 0, failures = 0;
  for (; failed; ++n) {
    INFO("allocation " << n << " fails");
    int ended = 0;
    const auto node = unix_endpoint(server.path());
    const auto made = std::make_shared<redis::connector>(rig.services_at(clock, alarms), node);
    made->start(clock.now() + 1h, [&](std::shared_ptr<redis::stream> wire, const redis::failure&) {
      ++ended;
      failures += wire == nullptr;
      if (wire) wire->close();
    });
    {
      const failing_allocations here(n, 1, failing_allocations::of::everybody_but_asio);
      rig.io.restart();
      try {
        rig.io.poll();
      } catch (const std::bad_alloc&) {  // the server's
      }
      failed = here.happened();
    }
    CHECK(rig.until([&] { return ended == 1; }, 10s));
  }
  CHECK(failures > 0);
}
