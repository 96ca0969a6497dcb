// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>

#include "chaos/testimony.hpp"
#include "chaos/workload.hpp"

namespace holdfast::chaos {

/// Observes the election that all workers have in common, and writes down each leader that it is given.
class observer_task {
 public:
  observer_task(workplace& place, client& redis) : place_(place), election_(redis.election(election_name)) {}

  /// Returns a second after the workplace is stopping, or earlier.
  asio::awaitable<void> run();

 private:
  using known_leader = std::optional<leader_info>;

  asio::awaitable<known_leader> see_first();
  asio::awaitable<known_leader> see_next(known_leader after);
  std::uint64_t begin();
  void end(std::uint64_t operation, const known_leader& leader);

  workplace& place_;
  const election election_;
};

}  // namespace holdfast::chaos
