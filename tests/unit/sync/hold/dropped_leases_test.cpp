// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/dropped_leases.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "unit/sync/hold/hold_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::lease_record;
using detail::terms;

TEST_CASE_METHOD(hold_fixture, "dropped leases live until they are taken, the oldest first") {
  detail::dropped_leases dropped;
  CHECK_FALSE(dropped.pop());
  std::vector<std::weak_ptr<lease_record>> seen;
  for (int i = 0; i < 4; ++i) {
    auto one = std::make_shared<lease_record>(h, h->owner, terms{}, clock.now(), nullptr);
    seen.push_back(one);
    dropped.push(std::move(one));
    if (i == 1) CHECK(dropped.pop() == seen[0].lock());
  }
  CHECK(seen[0].expired());
  for (int i = 1; i < 4; ++i) CHECK(dropped.pop() == seen[static_cast<std::size_t>(i)].lock());
  CHECK_FALSE(dropped.pop());
  CHECK(seen[3].expired());
}

TEST_CASE_METHOD(hold_fixture, "a lease that is dropped when no hold refers to it any more is gone at once") {
  const auto make = [&] { return std::make_shared<lease_record>(h, h->owner, terms{}, clock.now(), nullptr); };
  detail::dropped_leases dropped;
  auto before = make(), taken_over = make(), after = make();
  const std::weak_ptr<lease_record> a = before, b = taken_over, c = after;
  dropped.push(make());
  dropped.push(std::move(taken_over));
  dropped.pop();
  dropped.push(std::move(before));
  dropped.close();
  CHECK(a.expired());
  CHECK(b.expired());
  dropped.push(std::move(after));
  CHECK(c.expired());
  CHECK_FALSE(dropped.pop());
}
