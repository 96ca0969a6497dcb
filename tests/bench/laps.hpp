// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>
#include <map>
#include <string>
#include <vector>

#include "bench/meter.hpp"
#include "bench/report.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"

namespace holdfast::bench {

template <class Lock>
asio::awaitable<void> lock_and_unlock(Lock lock, long pairs, laps& all) {
  auto begun = clock::now();
  for (long i = 0; i < pairs; ++i) {
    auto held = co_await lock.lock();
    co_await held.unlock();
    all.push_back(lap_us(begun));
  }
}

/// All rounds of one way to do it.
struct ways : std::map<std::string, std::vector<double>> {
  finding compare(const std::string& ours, const std::string& theirs) const {
    const auto a = median(at(ours)), b = median(at(theirs));
    return {a / b, {{ours, a}, {theirs, b}, {"rounds", at(ours).size()}}};
  }
};

}  // namespace holdfast::bench
