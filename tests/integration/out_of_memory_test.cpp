// SPDX-License-Identifier: BSL-1.0
// What may not throw, in a process that has no memory left.
#include <boost/asio/post.hpp>
#include <cstddef>
#include <optional>
#include <thread>

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

TEST_CASE("a lease that is dropped without memory is given back when its next renewal would be due") {
  starved_world w;
  auto redis = w.make_short_lived();
  auto held = w.run(redis.mutex("m").lock());
  {
    const no_memory exhausted;
    held = lease();
  }
  CHECK(held.state() == lease_state::empty);
  w.until([&] { return w.heard->count(kind::released) == 1; });
  CHECK(w.keys().empty());
  CHECK(w.heard->count(kind::lost) == 0);
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
  auto redis = w.make([](config& c) { c.ttl = 3s; });
  auto held = w.run(redis.mutex("m").lock({.max_hold = 1ms}));
  w.until([&] { return held.valid_for() < 1900ms; });  // a renewal is due after 1 s: there is none
  {
    const no_memory exhausted;
    held.feed();
  }
  held.feed();
  w.until([&] { return held.valid_for() > 2s; });
  CHECK(held.held());
}

TEST_CASE("no allocation that fails where a lease ends keeps the lock or the client from going on") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  enum class end_of_lease { outside_of_a_handler, in_a_handler, on_another_thread, with_its_client };
  world w;
  for (const auto how : {end_of_lease::outside_of_a_handler, end_of_lease::in_a_handler,
                         end_of_lease::on_another_thread, end_of_lease::with_its_client}) {
    bool failed = true;
    std::size_t n = 0;
    for (; failed; ++n) {
      INFO("end " << static_cast<int>(how) << ", allocation " << n << " fails");
      std::optional redis(w.make([](config& s) { s.ttl = 300ms; }));
      auto held = w.run(redis->mutex("m").lock());
      w.io.restart();
      w.io.poll();
      const auto end_it = [&] {
        const failing_allocations here(n);
        if (how == end_of_lease::with_its_client) redis.reset();
        held = lease();
        failed = here.happened();
      };
      switch (how) {
        case end_of_lease::in_a_handler:
          asio::post(w.io, end_it);
          w.io.poll();
          break;
        case end_of_lease::on_another_thread: std::thread(end_it).join(); break;
        default: end_it();
      }
      if (redis) w.run(w.run(redis->mutex("m").lock()).unlock());
      w.until([&] { return w.keys().empty(); });
      redis.reset();
      drain(w.io, 10s);
    }
    CHECK(n > 1);
  }
}
