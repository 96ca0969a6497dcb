// SPDX-License-Identifier: BSL-1.0
// Each allocation of a verb fails once.
#include "support/skip.hpp"
#include "unit/sync/starving.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

std::vector<record_ptr> kept;  // the leases that were granted; nobody gives them back
void keep(detail::lock_answer answer) {
  if (answer.value) kept.push_back(std::move(answer.value));
}

/// Starves `act`; then what is open is answered, and everything is closed and destroyed.
template <class Prepare, class Act>
void starve_and_end(Prepare prepare, Act act) {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto prepare_and_keep = [&](engine_fixture& fixture) {
    kept.clear();
    kept.reserve(10);
    return prepare(fixture);
  };
  const auto runs = starve(prepare_and_keep, act, [](engine_fixture& fixture, const auto&) {
    fixture.play_all();
    check_it_ends(fixture);
  });
  kept.clear();
  CHECK(runs > 2);
}

const auto nobody_hears = [](const std::optional<detail::failure>&) {};

detail::lock_request request_of(const config& settings, owner waiter) {
  return {.owner = waiter, .bound = true, .asked = detail::resolve_terms(settings, {})};
}

}  // namespace

TEST_CASE("no allocation that fails where a lock is asked for leaves a waiter whom nobody can cancel") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  using patience = detail::lock_request::wait_mode;
  for (const bool others_wait : {false, true})
    for (const auto wait : {patience::forever, patience::until_deadline, patience::once}) {
      bool failed = true;
      for (std::size_t allocation = 0; failed; ++allocation) {
        INFO("allocation " << allocation << " fails");
        const guarded_blocks guard;
        engine_fixture fixture;
        fixture.settings.observer.reset();
        std::optional<lock_call> before;
        if (others_wait) before = fixture.lock("a");
        auto request = request_of(fixture.settings, owner());
        request.wait = wait;
        if (wait == patience::until_deadline) request.deadline = fixture.clock.now() + 1h;
        const auto keys = fixture.keys("a");
        kept.clear();
        kept.reserve(1);
        bool refused = false;
        {
          const failing_allocations here(allocation);
          try {
            fixture.locks->lock(keys, request, keep);
          } catch (const std::bad_alloc&) {
            refused = true;
          }
          failed = here.happened();
        }
        if (!refused) continue;
        fixture.play_all();
        if (before) fixture.unlock(*before);
        fixture.run();
        CHECK(kept.empty());
        fixture.node.clear();  // the fake link may have sent what it had no memory to keep
        const auto next = fixture.lock("a");
        fixture.run();
        CHECK(next.granted());
      }
    }
}

TEST_CASE("no allocation that fails where a lock is granted leaves a hold known that is gone") {
  const owner alice, bob;
  const auto play = [](const std::vector<owner>& waiters) {
    const auto waiting = [&](engine_fixture& fixture) {
      for (const auto& waiter : waiters)
        fixture.locks->lock(fixture.keys("a"), request_of(fixture.settings, waiter), keep);
      fixture.run();
      fixture.server.reply(fixture.server.open().front(), replies::nil());
      return 0;
    };
    starve_and_end(waiting, [](engine_fixture& fixture, int) { fixture.run(); });
  };
  play({alice, alice, alice});
  play({alice, bob});
}

TEST_CASE("no allocation that fails where a lock is freed leaves a hold known that is gone, or others waiting for it") {
  const auto held = [](engine_fixture& fixture) {
    auto lease = fixture.hold("a").value();
    fixture.lock("a");
    return lease;
  };
  starve_and_end(held,
                 [](engine_fixture& fixture, const record_ptr& lease) { fixture.locks->unlock(lease, nobody_hears); });
  starve_and_end(held, [](engine_fixture& fixture, const record_ptr& lease) {
    if (lease->try_release()) fixture.locks->drop(lease);
  });
}

TEST_CASE("no allocation that fails where a nested lock begins or ends leaves a hold known that is gone") {
  const owner alice;
  const auto nested = [&](engine_fixture& fixture) {
    const auto outer = fixture.hold("a", by(alice)), inner = fixture.lock("a", by(alice));
    fixture.reenters();
    return std::pair(outer.value(), inner.value());
  };
  starve_and_end(nested, [&](engine_fixture& fixture, const auto&) {
    fixture.locks->lock(fixture.keys("a"), request_of(fixture.settings, alice), keep);
  });
  starve_and_end(nested, [](engine_fixture& fixture, const auto& leases) {
    fixture.locks->unlock(leases.first, nobody_hears);
    fixture.locks->unlock(leases.second, nobody_hears);
  });
  const auto answered = [&](engine_fixture& fixture) {
    auto outer = fixture.hold("a", by(alice)).value();
    auto longer = request_of(fixture.settings, alice);
    longer.asked.ttl = 1min;
    fixture.locks->lock(fixture.keys("a"), longer, keep);
    fixture.server.reply(fixture.server.open().front(), replies::integer(1));
    return outer;
  };
  starve_and_end(answered, [](engine_fixture& fixture, const auto&) { fixture.run(); });
}
