// SPDX-License-Identifier: BSL-1.0
// What may not throw, in a process that has no memory left.
#include "integration/world.hpp"
#include "support/no_memory.hpp"
#include "support/sanitized.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event::kind;

namespace {

struct starved_world : world {
  starved_world() {
    if (address_sanitized || thread_sanitized) skip("the sanitizer needs address space of its own");
  }
  client make_short_lived() {
    return make([](config& c) { c.ttl = 300ms; });
  }
};

}  // namespace

TEST_CASE("a lease that is dropped without memory is renewed no more and ends with its ttl") {
  starved_world w;
  auto redis = w.make_short_lived();
  auto held = w.run(redis.mutex("m").lock());
  {
    const no_memory exhausted;
    held = lease();
  }
  CHECK(held.state() == lease_state::empty);
  auto next = w.run(redis.mutex("m").lock());
  CHECK(w.heard->count(kind::lost) == 1);
  CHECK(w.heard->count(kind::released) == 0);
  w.run(next.unlock());
  w.run(redis.shutdown(1s));
  CHECK(w.keys().empty());
}

TEST_CASE("leases that are dropped without memory are forgotten with their client") {
  starved_world w;
  auto redis = w.make();
  auto first = w.run(redis.mutex("a").lock()), second = w.run(redis.mutex("b").lock());
  {
    const no_memory exhausted;
    first = lease();
    second = lease();
  }
  w.run(redis.shutdown(1s));
  CHECK(w.keys().empty());
}

TEST_CASE("a client that goes out of scope without memory ends its leases at once and its keys with their ttl") {
  starved_world w;
  std::optional<client> redis(w.make_short_lived());
  auto held = w.run(redis->mutex("m").lock());
  {
    const no_memory exhausted;
    redis.reset();
    CHECK_FALSE(held.held());
  }
  CHECK(w.code_of(held.unlock()) == errc::closed);
  auto other = w.make();
  w.run(w.run(other.mutex("m").lock()).unlock());
}

TEST_CASE("a feed that found no memory is made good by the next") {
  starved_world w;
  auto redis = w.make_short_lived();
  auto held = w.run(redis.mutex("m").lock({.max_hold = 1ms}));
  w.until([&] { return held.valid_for() < 150ms; });  // a renewal is due after 100 ms: there is none
  {
    const no_memory exhausted;
    held.feed();
  }
  held.feed();
  w.until([&] { return held.valid_for() > 200ms; });
  CHECK(held.held());
}
