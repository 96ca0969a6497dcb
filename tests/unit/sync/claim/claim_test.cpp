// SPDX-License-Identifier: BSL-1.0
#include "sync/claim/claim.hpp"

#include <array>
#include <span>

#include "support/catch.hpp"
#include "unit/sync/hold/hold_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

struct claim_fixture : hold_fixture {
  detail::key_ttl ttl_to_send(milliseconds wanted, double rho) {
    return on->sole_share().ttl_to_send(wanted, clock.now(), rho);
  }
};

/// At three servers, of which two must confirm it.
struct majority_fixture {
  manual_clock clock;
  const detail::client_state_ptr client{new detail::client_state(clock, new detail::block_pool)};
  static constexpr std::array<detail::node_id, 3> nodes{4, 5, 6};
  const detail::claim_ptr c =
      detail::claim::make(client, std::make_shared<const detail::lock_keys>(detail::plain_lock, "a"),
                          detail::owner_field(client_of_claims, 1), std::span(nodes), 2);
  detail::share& at(std::size_t n) { return c->shares()[n]; }
};

}  // namespace

TEST_CASE_METHOD(claim_fixture,
                 "a TTL that is sent covers what is claimed already, on a clock that is faster by the drift") {
  extend(clock.now() + 10s);
  CHECK(ttl_to_send(1ms, 0.01).ttl == 10'100ms);
  CHECK(ttl_to_send(1ms, 0).ttl == 10s);
  clock.skip(4s + 500us);
  CHECK(ttl_to_send(1ms, 0).ttl == 6s);
  CHECK(ttl_to_send(30s, 0.01).ttl == 30s);
  clock.skip(1min);
  CHECK(ttl_to_send(1ms, 0.01).ttl == 1ms);
}

TEST_CASE_METHOD(claim_fixture, "the key may live as long as the longest TTL that was sent for it, heard of or not") {
  extend(clock.now() + 1s);
  CHECK(on->may_live(clock.now(), 0.01) == 1010ms);
  CHECK(ttl_to_send(30s, 0).ttl == 30s);
  clock.skip(10s);
  CHECK(ttl_to_send(1s, 0).ttl == 1s);
  CHECK(on->may_live(clock.now(), 0.01) == 20s);
  clock.skip(1min);
  CHECK(on->may_live(clock.now(), 0.01) == 0s);
}

TEST_CASE_METHOD(claim_fixture, "a key without TTL gets what covers all that was sent and may be claimed yet") {
  extend(clock.now() + 1s);
  CHECK(ttl_to_send(30s, 0.01).if_none == 30s);
  clock.skip(500ms);
  CHECK(ttl_to_send(1ms, 0.01).ttl == 505ms);
  CHECK(ttl_to_send(1ms, 0.01).if_none == 29'500ms);
  clock.skip(1min);
  CHECK(ttl_to_send(1s, 0.01).if_none == 1s);
}

TEST_CASE_METHOD(majority_fixture, "a claim at three servers is valid until the second latest of their ends") {
  const auto start = clock.now();
  CHECK(c->confirm(at(0), start + 3s));
  CHECK(c->left() == 0s);  // one of them is no majority
  CHECK(c->confirm(at(1), start + 1s));
  CHECK(c->confirm(at(0), start + 5s));
  CHECK(c->left() == 1s);
  CHECK(c->confirm(at(2), start + 4s));
  CHECK(c->left() == 4s);
  CHECK(c->confirm(at(1), start + 9s));
  CHECK(c->left() == 5s);
  CHECK(c->confirm(at(1), start + 2s));
  CHECK(c->left() == 5s);
}

TEST_CASE_METHOD(majority_fixture, "a majority that somebody has seen over is over for good") {
  for (std::size_t n = 0; n < 3; ++n) c->confirm(at(n), clock.now() + 1s);
  clock.skip(1s);
  CHECK(c->left() == 0s);
  CHECK_FALSE(c->confirm(at(0), clock.now() + 5s));
  CHECK_FALSE(c->confirm(at(1), clock.now() + 5s));
  CHECK(c->left() == 0s);
}

TEST_CASE_METHOD(majority_fixture, "a claim is suspended while fewer shares than needed can be confirmed") {
  CHECK_FALSE(c->doubt(at(0)));
  CHECK_FALSE(c->suspended());
  CHECK_FALSE(c->doubt(at(0)));
  CHECK(c->doubt(at(2)));
  CHECK(c->suspended());
  CHECK_FALSE(c->doubt(at(1)));
  CHECK_FALSE(c->trust(at(1)));
  CHECK(c->suspended());
  CHECK(c->trust(at(0)));
  CHECK_FALSE(c->suspended());
}

TEST_CASE_METHOD(majority_fixture, "a share that was denied keeps no claim from being suspended") {
  for (std::size_t n = 0; n < 3; ++n) c->confirm(at(n), clock.now() + 1s);
  CHECK(c->deny(at(1)));
  CHECK_FALSE(c->suspended());
  CHECK(c->doubt(at(0)));
  CHECK(c->suspended());
}

TEST_CASE_METHOD(majority_fixture, "a claim is trusted where it was confirmed, and neither doubted nor denied since") {
  CHECK(c->trusted_at() == 0);
  for (std::size_t n = 0; n < 3; ++n) c->confirm(at(n), clock.now() + 1s);
  CHECK(c->trusted_at() == (detail::only(0) | detail::only(1) | detail::only(2)));
  c->doubt(at(1));
  c->deny(at(2));
  CHECK(c->trusted_at() == detail::only(0));
}

TEST_CASE_METHOD(majority_fixture, "the keys of a claim may live as long as the longest of them") {
  at(0).ttl_to_send(1s, clock.now(), 0);
  at(2).ttl_to_send(30s, clock.now(), 0);
  clock.skip(500ms);
  CHECK(c->may_live(clock.now(), 0) == 29'500ms);
}

TEST_CASE_METHOD(majority_fixture, "what a share was valid for counts no more when its server denies it") {
  const auto start = clock.now();
  c->confirm(at(0), start + 5s);
  c->confirm(at(1), start + 3s);
  c->confirm(at(2), start + 4s);
  CHECK(c->left() == 4s);
  CHECK(c->deny(at(0)));
  CHECK(c->left() == 3s);
  CHECK(c->may_be_at() == (detail::only(1) | detail::only(2)));
  CHECK_FALSE(c->deny(at(2)));
}

TEST_CASE_METHOD(majority_fixture, "a share that was not asked for is not there until it is confirmed") {
  c->begin_without(detail::only(1));
  CHECK(c->may_be_at() == (detail::only(0) | detail::only(2)));
  c->confirm(detail::only(1) | detail::only(2), clock.now() + 1s);
  CHECK(c->may_be_at() == (detail::only(0) | detail::only(1) | detail::only(2)));
  CHECK(c->left() == 1s);
}

TEST_CASE_METHOD(claim_fixture,
                 "a confirmation that comes too late for the claim still says how long the key may live") {
  extend(clock.now() + 1s);
  clock.skip(1s);
  CHECK(on->left() == 0s);
  CHECK_FALSE(extend(clock.now() + 5s));
  CHECK(on->left() == 0s);
  CHECK(on->may_live(clock.now(), 0) == 5s);
}

TEST_CASE_METHOD(hold_fixture, "a claim knows whose it is until its hold ends") {
  CHECK(on->holder() == h.get());
  extend(clock.now() + 1s);
  release(h);
  CHECK_FALSE(on->holder());
}
