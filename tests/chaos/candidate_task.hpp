// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <string>

#include "chaos/testimony.hpp"
#include "chaos/workload.hpp"

namespace holdfast::chaos {

/// Leads the election that all workers have in common, again and again, and writes down its terms and values. No two
/// values are the same. A leader proclaims at most once: so a value that is seen tells what came before.
class candidate_task {
 public:
  /// `home`: begins each value; no other process has it.
  candidate_task(workplace& place, client& redis, std::string home, std::uint64_t seed);

  /// Returns when the workplace is stopping and its last lead has ended.
  asio::awaitable<void> run();

 private:
  asio::awaitable<void> campaign();
  asio::awaitable<void> lead(std::uint64_t operation, lease leadership);
  asio::awaitable<void> proclaim(std::uint64_t operation, const lease& leadership);
  asio::awaitable<void> resign(std::uint64_t operation, lease leadership);
  std::chrono::microseconds draw_lead();

  workplace& place_;
  const election election_;
  const std::string home_;
  dice dice_;
};

}  // namespace holdfast::chaos
