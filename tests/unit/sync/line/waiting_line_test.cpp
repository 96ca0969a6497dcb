// SPDX-License-Identifier: BSL-1.0
// The seats of a line. Its rules have tests of their own, and so have the acts of its name.
#include "sync/line/waiting_line.hpp"

#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// A line without a name: nothing acts.
struct seats : engine_fixture {
  detail::environment env{clock, timers, server, random, settings};
  detail::waiting_line* const line = new (*env.blocks) detail::waiting_line(env, detail::plain_lock);
  const owner bob;

  ~seats() { delete line; }
  static detail::lock_request wish(owner_id of, bool bound) {
    return {.owner = of, .bound = bound, .asked = {.ttl = 30s, .renew = true, .max_hold = {}}};
  }
  std::shared_ptr<detail::acquisition> sits_down(const detail::lock_request& request = wish(owner(), false)) {
    auto waiter = std::make_shared<detail::acquisition>(env, keys("a"), request, [](detail::lock_answer&&) {});
    line->add(waiter);
    return waiter;
  }
};

}  // namespace

TEST_CASE_METHOD(seats, "waiters keep the order of their coming, and know the number before them") {
  CHECK(line->empty());
  const auto first = sits_down(), second = sits_down(), third = sits_down();
  CHECK(line->size() == 3);
  CHECK(line->is_first(*first));
  CHECK(third->seat.ahead == 2);
  CHECK(line->take_out(*first) == first);
  CHECK(line->is_first(*second));
  CHECK(line->take_out(*third) == third);
  CHECK(&line->first() == second.get());
}

TEST_CASE_METHOD(seats, "an owner's waiters are taken out in their order, except the first and parts of lock_any()") {
  const auto of_bob = wish(bob, true);
  auto any = of_bob;
  any.one_of_several = true;
  const auto first = sits_down(of_bob), stranger = sits_down(), part = sits_down(any), second = sits_down(of_bob),
             third = sits_down(of_bob);
  CHECK(line->take_out_of(bob) == second);
  CHECK(line->take_out_of(bob) == third);
  CHECK(line->take_out_of(bob) == nullptr);
  CHECK(line->size() == 3);
}

TEST_CASE_METHOD(seats, "waiters are found from the last to the first, so that the first leaves last") {
  const auto of_bob = wish(bob, true);
  const auto first = sits_down(of_bob), stranger = sits_down(), last = sits_down(of_bob);
  using waiters = std::vector<std::shared_ptr<detail::acquisition>>;
  CHECK(line->matching([](const detail::acquisition&) { return true; }) == waiters{last, stranger, first});
  CHECK(line->all_of(bob) == waiters{last, first});
  CHECK(line->all_of(owner()).empty());
}

TEST_CASE_METHOD(seats, "only a first waiter without an attempt takes a claim over, unless it asks once") {
  CHECK(line->successor() == nullptr);
  auto try_once = wish(owner(), false);
  try_once.wait = detail::lock_request::wait_mode::once;
  const auto once = sits_down(try_once), next = sits_down();
  CHECK(line->successor() == nullptr);
  line->take_out(*once);
  CHECK(line->successor() == next.get());
}

TEST_CASE_METHOD(seats, "a line that ends forgets its waiters' callers, and answers nobody") {
  bool answered = false;
  const auto waiter = std::make_shared<detail::acquisition>(env, keys("a"), wish(bob, true),
                                                            [&](detail::lock_answer&&) { answered = true; });
  auto* const ending = new (*env.blocks) detail::waiting_line(env, detail::plain_lock);
  ending->add(waiter);
  delete ending;
  CHECK_FALSE(waiter->open());
  CHECK_FALSE(answered);
}
