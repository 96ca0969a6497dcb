// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "base/timers.hpp"

namespace holdfast::test {

/// A timer that keeps itself until it has fired or its timers end.
inline void run_at(detail::timers& timers, detail::time_point when, std::function<void()> act) {
  const auto own = std::make_shared<detail::timer>(timers);
  own->start(when, [own, act = std::move(act)] { act(); });
}

}  // namespace holdfast::test
