// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/owner.hpp>

#include <list>
#include <optional>

#include "protocol/kind.hpp"
#include "support/seeded_random.hpp"
#include "sync/line/line_rules.hpp"

namespace holdfast::test {

/// One waiter, as a name keeps it.
struct rules_waiter {
  detail::lock_request request;
  detail::time_point since;
  detail::time_point answer_by = detail::time_point::max();
  detail::attempts tries{};
  detail::retry_backoff backoff{std::chrono::milliseconds(20), std::chrono::seconds(1)};
};

/// The rules of a line, its waiters as plain data, and the conditions that a name would see. No clock runs here.
struct rules_fixture {
  using act = detail::line_action::act;
  using wait_mode = detail::lock_request::wait_mode;

  rules_fixture(const detail::kind& of, detail::random_source& random) : row(of), rules(row, settings, random) {}

  detail::line_waiter seen(rules_waiter& waiter) const {
    return {waiter.request, row, waiter.since, waiter.answer_by, waiter.tries, waiter.backoff};
  }
  detail::line_conditions at() {
    auto conditions = around;
    conditions.now = now;
    if (!line.empty()) conditions.first.emplace(seen(line.front()));
    return conditions;
  }
  detail::lock_request request(wait_mode wait = wait_mode::forever) const {
    return {.owner = owner(),
            .wait = wait,
            .asked = {.ttl = detail::terms::duration(30'000), .renew = true, .max_hold = {}}};
  }
  rules_waiter& add(const detail::lock_request& wanted) {
    return line.emplace_back(
        rules_waiter{wanted, now, wanted.asks_once() ? now + settings.command_timeout : detail::time_point::max()});
  }
  /// A name gives the first waiter a field with its first attempt.
  detail::line_action sent(detail::line_action action) {
    if (action.then == act::send && line.front().tries.field.empty()) line.front().tries.field = fields.next();
    return action;
  }

  const detail::kind row;
  config settings;
  detail::time_point now{std::chrono::hours(1)};
  std::list<rules_waiter> line;
  detail::line_conditions around{.now = {}, .first = {}, .held_here = false, .cool_down_until = {}};
  detail::owner_fields fields{detail::uuid{1, 2}};
  detail::line_rules rules;
};

}  // namespace holdfast::test
