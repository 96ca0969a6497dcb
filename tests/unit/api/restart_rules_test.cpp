// SPDX-License-Identifier: BSL-1.0
#include "api/restart_rules.hpp"

#include <string>

#include "support/catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using detail::may_mend;
using detail::restart_rules;
using act = restart_rules::act;
using ns = std::chrono::nanoseconds;

namespace {

constexpr auto policies = {restart_policy::always, restart_policy::on_failure, restart_policy::never};

restart_rules rules(restart_policy policy = restart_policy::always) {
  return restart_rules({.restart = policy, .pause = 5ms, .first_backoff = 100ms, .backoff_cap = 30s});
}

/// The longest backoff after this failure of a run.
ns backoff_after(restart_rules& rules, ns ran = 0s, run_outcome outcome = run_outcome::threw) {
  const auto next = rules.run_ended(outcome, ran);
  CHECK(next.then == act::take_lock);
  CHECK(next.next == worker_state::backing_off);
  CHECK(next.shortest == next.longest / 2);
  return next.longest;
}

bool accepted(const keep_options& options) {
  try {
    const restart_rules made(options);
    return true;
  } catch (const error& refused) {
    CHECK(refused.code() == errc::invalid_argument);
    return false;
  }
}

}  // namespace

TEST_CASE("a worker goes on, finishes or fails after each outcome as its policy says") {
  struct row {
    run_outcome outcome;
    act always, on_failure, never;
  };
  const auto row = GENERATE(values<struct row>({
      {run_outcome::returned, act::take_lock, act::finish, act::finish},
      {run_outcome::threw, act::take_lock, act::take_lock, act::fail},
      {run_outcome::lost, act::take_lock, act::take_lock, act::fail},
  }));
  INFO(to_string(row.outcome));
  CHECK(rules(restart_policy::always).run_ended(row.outcome, 1s).then == row.always);
  CHECK(rules(restart_policy::on_failure).run_ended(row.outcome, 1s).then == row.on_failure);
  CHECK(rules(restart_policy::never).run_ended(row.outcome, 1s).then == row.never);
}

TEST_CASE("the end of the client finishes a worker that always runs again and fails the others") {
  CHECK(rules(restart_policy::always).wait_failed(errc::shutting_down).then == act::finish);
  CHECK(rules(restart_policy::on_failure).wait_failed(errc::shutting_down).then == act::fail);
  CHECK(rules(restart_policy::never).wait_failed(errc::shutting_down).then == act::fail);
}

TEST_CASE("an error of the lock that may mend is retried under every policy and any other ends the worker") {
  using enum errc;
  const auto mending = {unreachable,   server_refused, overloaded,     quorum_failed, not_replicated, auth_failed,
                        no_permission, not_primary,    protocol_error, tls_failed,    corrupt_lock,   lost};
  const auto final = {invalid_name, invalid_ttl,  invalid_wait,       invalid_config, invalid_argument,
                      not_held,     already_held, too_many_reentries, closed,         unconfirmed};
  for (const auto policy : policies) {
    for (const auto code : mending) {
      INFO(make_error_code(code).message());
      CHECK(rules(policy).wait_failed(code).then == act::take_lock);
      CHECK(rules(policy).wait_failed(code).next == worker_state::backing_off);
    }
    for (const auto code : final) {
      INFO(make_error_code(code).message());
      CHECK(rules(policy).wait_failed(code).then == act::fail);
    }
  }
  CHECK(may_mend(make_error_code(boost::system::errc::not_enough_memory)));
  CHECK_FALSE(may_mend(error_code{}));
}

TEST_CASE("a backoff doubles with each failure up to its cap and is drawn from its upper half") {
  auto worker = rules();
  for (const auto expected :
       {100ms, 200ms, 400ms, 800ms, 1'600ms, 3'200ms, 6'400ms, 12'800ms, 25'600ms, 30'000ms, 30'000ms})
    CHECK(backoff_after(worker) == expected);
  CHECK(worker.failures_in_row() == 11);
  for (int n = 0; n < 200; ++n) CHECK(backoff_after(worker) == 30s);
}

TEST_CASE("failures of the lock and of runs count together") {
  auto worker = rules();
  CHECK(backoff_after(worker) == 100ms);
  CHECK(worker.wait_failed(errc::corrupt_lock).longest == 200ms);
  CHECK(backoff_after(worker, 1s, run_outcome::lost) == 400ms);
}

TEST_CASE("a run that returned or that lasted for the cap begins the backoff anew") {
  auto worker = rules();
  for (int n = 0; n < 9; ++n) backoff_after(worker);
  SECTION("returned") {
    const auto next = worker.run_ended(run_outcome::returned, 1ms);
    CHECK(next == restart_rules::decision{act::take_lock, worker_state::pausing, 5ms, 5ms});
    CHECK(worker.failures_in_row() == 0);
    CHECK(backoff_after(worker) == 100ms);
  }
  SECTION("lasted") { CHECK(backoff_after(worker, 30s) == 100ms); }
  SECTION("shorter") { CHECK(backoff_after(worker, 30s - 1ns) == 30s); }
}

TEST_CASE("with any options that are accepted the tenth failure backs off for a second or longer") {
  const auto options = GENERATE(values<keep_options>({
      {.first_backoff = 10ms, .backoff_cap = 2s},
      {.first_backoff = 10ms, .backoff_cap = 24h},
      {.first_backoff = 24h, .backoff_cap = 24h},
      {},
  }));
  restart_rules worker(options);
  for (int n = 0; n < 9; ++n) backoff_after(worker);
  for (int n = 0; n < 100; ++n) {
    const auto longest = backoff_after(worker);
    CHECK(longest / 2 >= 1s);
    CHECK(longest <= options.backoff_cap);
  }
}

TEST_CASE("options outside their ranges are refused") {
  CHECK(accepted({}));
  CHECK(accepted({.pause = 0ms}));
  CHECK(accepted({.pause = 24h}));
  CHECK_FALSE(accepted({.pause = -1ms}));
  CHECK_FALSE(accepted({.pause = 24h + 1ms}));
  CHECK_FALSE(accepted({.first_backoff = 9ms}));
  CHECK_FALSE(accepted({.first_backoff = 3s, .backoff_cap = 2s}));
  CHECK_FALSE(accepted({.backoff_cap = 2s - 1ms}));
  CHECK_FALSE(accepted({.backoff_cap = 24h + 1ms}));
}
