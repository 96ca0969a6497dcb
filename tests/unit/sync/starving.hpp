// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <new>

#include "support/no_memory.hpp"
#include "unit/sync/engine_fixture.hpp"

namespace holdfast::test {

/// Runs `act` once for each of its allocations, and that allocation fails. Each run has a fixture of its own: `prepare`
/// makes what `act` and `check` get beside it. Returns how many runs there were: under a sanitizer one, without a
/// failure.
template <class Fixture = engine_fixture, class Prepare, class Act, class Check>
std::size_t starve(Prepare prepare, Act act, Check check) {
  std::size_t runs = 0;
  for (bool failed = true; failed; ++runs) {
    INFO("allocation " << runs << " fails");
    const guarded_blocks guard;
    Fixture fixture;
    fixture.settings.observer.reset();  // its own memory is not in question
    auto prepared = prepare(fixture);
    {
      const failing_allocations here(runs);
      try {
        act(fixture, prepared);
      } catch (const std::bad_alloc&) {
      }
      failed = here.happened();
    }
    check(fixture, prepared);
  }
  return runs;
}

/// Where `act` needs nothing beside the fixture.
inline constexpr auto prepare_nothing = [](engine_fixture&) { return nullptr; };

/// The client ends in order.
inline void check_it_ends(engine_fixture& fixture) {
  fixture.locks->abandon();
  fixture.run();
  CHECK(fixture.locks->idle());
  fixture.locks.reset();
}

}  // namespace holdfast::test
