// SPDX-License-Identifier: BSL-1.0
#include "cli/web/read_budget.hpp"

#include <algorithm>

namespace holdfast::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int share = 100;  // one of so many
constexpr milliseconds shortest{1'000}, longest{60'000};
constexpr microseconds most_read_ahead{10'000};  // messages of one second may cost this much
constexpr microseconds most_debt = longest / share;

}  // namespace

void read_budget::spend(microseconds work, clock::time_point now) {
  debt_ = std::min(debt(now) + work, most_debt);
  at_ = now;
}

milliseconds read_budget::pause(clock::time_point now) const {
  return std::clamp(std::chrono::ceil<milliseconds>(debt(now) * share), shortest, longest);
}

bool read_budget::may_read(clock::time_point now) const { return debt(now) < most_read_ahead; }

microseconds read_budget::debt(clock::time_point now) const {
  const auto paid = std::chrono::duration_cast<microseconds>(now - at_) / share;
  return std::max(debt_ - paid, microseconds{});
}

}  // namespace holdfast::cli
