// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <cstddef>

#include "chaos/testimony.hpp"
#include "chaos/workload.hpp"

namespace holdfast::chaos {

/// Holds a lock that nobody else asks for, and writes down when it knows of a loss. Then it takes the lock again.
///
/// The kinds of lock whose changes a server pushes to their holder take turns.
class kept_task {
 public:
  /// `ttl`: the client's. `number`: of this task among all tasks of all workers.
  kept_task(workplace& place, client& redis, milliseconds ttl, std::size_t number);

  /// Returns when the workplace is stopping, and the lock is released.
  asio::awaitable<void> run();

 private:
  asio::awaitable<void> hold(std::size_t round);

  workplace& place_;
  client& redis_;
  const milliseconds ttl_;
  const std::size_t number_;
};

}  // namespace holdfast::chaos
