// SPDX-License-Identifier: BSL-1.0
// Each allocation of a verb fails once.
#include "support/skip.hpp"
#include "unit/sync/starving.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

std::vector<record_ptr> kept;  // what was granted; nobody gives it back
void keep(detail::lock_answer a) {
  if (a.record) kept.push_back(std::move(a.record));
}

/// Starves `act`; then what is open is answered, and everything is closed and destroyed.
template <class Prepare, class Act>
void starve_and_end(Prepare prepare, Act act) {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto prepare_and_keep = [&](engine_fixture& f) {
    kept.clear();
    kept.reserve(10);
    return prepare(f);
  };
  const auto runs = starve(prepare_and_keep, act, [](engine_fixture& f, const auto&) {
    f.play_all();
    check_it_ends(f);
  });
  kept.clear();
  CHECK(runs > 2);
}

const auto nobody_hears = [](error_code, const std::string&) {};

detail::lock_request request_of(const config& c, owner who) {
  return {who, true, detail::resolve_terms(c, {}), detail::lock_request::patience::forever};
}

}  // namespace

TEST_CASE("no allocation that fails where a lock is asked for leaves a waiter whom nobody can cancel") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  using patience = detail::lock_request::patience;
  for (const bool others_wait : {false, true})
    for (const auto wait : {patience::forever, patience::until_deadline, patience::once}) {
      bool failed = true;
      for (std::size_t n = 0; failed; ++n) {
        INFO("allocation " << n << " fails");
        const guarded_blocks guard;
        engine_fixture f;
        f.settings.observer.reset();
        std::optional<lock_call> before;
        if (others_wait) before = f.lock("a");
        auto request = request_of(f.settings, owner());
        request.wait = wait;
        if (wait == patience::until_deadline) request.deadline = f.clock.now() + 1h;
        const auto keys = f.keys("a");
        kept.clear();
        kept.reserve(1);
        bool refused = false;
        {
          const failing_allocations here(n);
          try {
            f.locks->lock(keys, request, keep);
          } catch (const std::bad_alloc&) {
            refused = true;
          }
          failed = here.happened();
        }
        if (!refused) continue;
        f.play_all();
        if (before) f.unlock(*before);
        f.run();
        CHECK(kept.empty());
        f.node.clear();  // the fake link may have sent what it had no memory to keep
        const auto next = f.lock("a");
        f.run();
        CHECK(next.granted());
      }
    }
}

TEST_CASE("no allocation that fails where a lock is granted leaves a hold known that is gone") {
  const owner alice, bob;
  const auto play = [](const std::vector<owner>& who_wait) {
    const auto waiting = [&](engine_fixture& f) {
      for (const auto& who : who_wait) f.locks->lock(f.keys("a"), request_of(f.settings, who), keep);
      f.run();
      f.server.reply(f.server.open().front(), replies::nil());
      return 0;
    };
    starve_and_end(waiting, [](engine_fixture& f, int) { f.run(); });
  };
  play({alice, alice, alice});
  play({alice, bob});
}

TEST_CASE("no allocation that fails where a lock is freed leaves a hold known that is gone, or others waiting for it") {
  const auto held = [](engine_fixture& f) {
    auto lease = f.hold("a").value();
    f.lock("a");
    return lease;
  };
  starve_and_end(held, [](engine_fixture& f, const record_ptr& lease) { f.locks->unlock(lease, nobody_hears); });
  starve_and_end(held, [](engine_fixture& f, const record_ptr& lease) {
    if (lease->try_release()) f.locks->drop(lease);
  });
}

TEST_CASE("no allocation that fails where a nested lock begins or ends leaves a hold known that is gone") {
  const owner alice;
  const auto nested = [&](engine_fixture& f) {
    const auto outer = f.hold("a", by(alice)), inner = f.lock("a", by(alice));
    f.reenters();
    return std::pair(outer.value(), inner.value());
  };
  starve_and_end(
      nested, [&](engine_fixture& f, const auto&) { f.locks->lock(f.keys("a"), request_of(f.settings, alice), keep); });
  starve_and_end(nested, [](engine_fixture& f, const auto& leases) {
    f.locks->unlock(leases.first, nobody_hears);
    f.locks->unlock(leases.second, nobody_hears);
  });
  const auto answered = [&](engine_fixture& f) {
    auto outer = f.hold("a", by(alice)).value();
    auto longer = request_of(f.settings, alice);
    longer.asked.ttl = 1min;
    f.locks->lock(f.keys("a"), longer, keep);
    f.server.reply(f.server.open().front(), replies::integer(1));
    return outer;
  };
  starve_and_end(answered, [](engine_fixture& f, const auto&) { f.run(); });
}
