// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sim/coverage.hpp"
#include "sim/judge/call_book.hpp"
#include "sim/judge/client_book.hpp"
#include "sim/judge/excuses.hpp"
#include "sim/judge/field_book.hpp"
#include "sim/judge/findings.hpp"
#include "sim/judge/hold_book.hpp"
#include "sim/judge/storage.hpp"

namespace holdfast::sim {

/// What all judges know together. A fact that one judge alone needs is that judge's.
struct evidence {
  evidence(scheduler& time, deployment& all, coverage& counts) : plan(time), servers(all), met(counts) {}

  scheduler& plan;
  deployment& servers;
  coverage& met;
  findings found{};
  storage stored{plan, servers};
  client_book clients{plan, servers};
  call_book calls{plan};
  hold_book holds{plan};
  field_book fields{plan};
  excuses excused{plan};

  time_point now() const noexcept { return plan.now(); }
  void accuse(const sim_client& client, const std::string& deed) { found.accuse(client.name(), deed); }
  /// The slowest of several nodes may delay a change of the hold, and with it the command that gives the field back.
  bool delayed(const hold_record& each) const { return stored.votes() && each.hold->changing(); }
};

}  // namespace holdfast::sim
