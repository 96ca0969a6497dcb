// SPDX-License-Identifier: BSL-1.0
// One caller who waits until something is so: when it looks, and how its wait ends.
#include <chrono>

#include "support/catch.hpp"
#include "support/seeded_random.hpp"
#include "sync/lookout/lookout_rules.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using act = detail::lookout_action::act;
using detail::sight;

namespace {

struct no_jitter final : detail::random_source {
  std::uint64_t next() override { return 0; }
};

/// Each event comes at `now`. No clock runs here.
struct rules_fixture {
  config settings;
  no_jitter random;
  detail::time_point now{1h};

  detail::lookout_rules wait(detail::time_point deadline = detail::time_point::max()) {
    return {settings, random, deadline};
  }
  static sight failure(errc why) { return {.failed = redis::failure{why, "cause"}}; }
};

}  // namespace

TEST_CASE_METHOD(rules_fixture, "a caller looks at once, and the first sight may be enough") {
  auto rules = wait();
  CHECK(rules.begin().then == act::look);
  CHECK_FALSE(rules.listens());
  const auto end = rules.answered({.is_so = true}, now);
  CHECK(end.then == act::answer);
  CHECK(end.is_so);
  CHECK_FALSE(end.failed);
}

TEST_CASE_METHOD(rules_fixture, "a caller that saw too little listens, and looks again after each news") {
  auto rules = wait();
  rules.begin();
  const auto parked = rules.answered({}, now);
  CHECK(parked.then == act::park);
  CHECK(parked.until == now + settings.poll_cap);
  CHECK(rules.listens());
  CHECK(rules.news().then == act::look);  // the subscription was acknowledged
  CHECK(rules.answered({}, now).then == act::park);
  CHECK(rules.news().then == act::look);
}

TEST_CASE_METHOD(rules_fixture, "news during a look is followed by one more look") {
  auto rules = wait();
  rules.begin();
  CHECK(rules.news().then == act::wait);
  CHECK(rules.news().then == act::wait);
  CHECK(rules.answered({}, now).then == act::look);
  CHECK(rules.answered({}, now).then == act::park);
}

TEST_CASE_METHOD(rules_fixture, "a sight that changes by itself is looked at again then") {
  auto rules = wait();
  rules.begin();
  CHECK(rules.answered({.look_again_by = now + 1s}, now).until == now + 1s);
  CHECK(rules.alarm(now + 1s).then == act::look);
  CHECK(rules.answered({.look_again_by = now + 1h}, now).until == now + settings.poll_cap);
}

TEST_CASE_METHOD(rules_fixture, "a caller whose time is over gets what Redis has said") {
  auto rules = wait(now + 2s);
  CHECK(rules.begin().until == now + 2s);
  CHECK(rules.answered({}, now).until == now + 2s);  // before the poll cap
  const auto end = rules.alarm(now + 2s);
  CHECK(end.then == act::answer);
  CHECK_FALSE(end.is_so);
  CHECK_FALSE(end.failed);
}

TEST_CASE_METHOD(rules_fixture,
                 "a caller whose time is over without a sight is told why, or the server's silence decides") {
  auto silent = wait(now + 2s);
  silent.begin();
  CHECK(silent.alarm(now + 2s).then == act::silent);
  auto unreachable = wait(now + 2s);
  unreachable.begin();
  unreachable.answered(failure(errc::unreachable), now);
  CHECK(unreachable.alarm(now + 2s).then == act::silent);
  auto refused = wait(now + 2s);
  refused.begin();
  refused.answered(failure(errc::server_refused), now);
  const auto end = refused.alarm(now + 2s);
  CHECK(end.then == act::answer);
  CHECK(end.failed->code == errc::server_refused);
}

TEST_CASE_METHOD(rules_fixture, "a failure that ends by itself is waited out, longer each time") {
  auto rules = wait();
  rules.begin();
  for (const auto why : {errc::unreachable, errc::server_refused, errc::unconfirmed, errc::overloaded}) {
    const auto parked = rules.answered(failure(why), now);
    CHECK(parked.then == act::park);
    CHECK(parked.until > now);
    CHECK(parked.until <= now + settings.poll_cap);
    now = parked.until;
    CHECK(rules.alarm(now).then == act::look);
  }
  CHECK(rules.answered({}, now).until == now + settings.poll_cap);
}

TEST_CASE_METHOD(rules_fixture, "after a long outage the next look comes within a second") {
  settings.poll_cap = 1min;
  test::seeded_random jitter(1);
  detail::lookout_rules rules(settings, jitter, detail::time_point::max());
  rules.begin();
  for (int failures = 0; failures < 30; ++failures) {
    const auto parked = rules.answered(failure(errc::unreachable), now);
    CHECK(parked.until <= now + 1s);
    now = parked.until;
    rules.alarm(now);
  }
}

TEST_CASE_METHOD(rules_fixture, "a failure that stays, and a refused subscription, end the wait") {
  auto rules = wait();
  rules.begin();
  const auto end = rules.answered(failure(errc::corrupt_lock), now);
  CHECK(end.then == act::answer);
  CHECK(end.failed->code == errc::corrupt_lock);
  auto deaf = wait();
  deaf.begin();
  deaf.answered({}, now);
  const auto refused = deaf.unsubscribed({errc::no_permission, "NOPERM"});
  CHECK(refused.then == act::answer);
  CHECK(refused.failed->code == errc::no_permission);
}

TEST_CASE_METHOD(rules_fixture, "an alarm during a look waits for its answer") {
  auto rules = wait(now + 2s);
  rules.begin();
  CHECK(rules.alarm(now + 1s).then == act::wait);
}
