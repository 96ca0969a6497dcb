// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "chaos/testimony.hpp"
#include "chaos/workload.hpp"

namespace holdfast::chaos {

/// Counts latches down together with the other workers, a new latch each second, and writes down its calls and their
/// answers.
///
/// One task sets the latch of a second, by one call. The others call when they have seen it closed. So each count-down
/// comes after the set.
class latch_task {
 public:
  /// `number`: of this task among all tasks of all workers.
  latch_task(workplace& place, client& redis, std::size_t number, std::size_t tasks, std::uint64_t seed);

  /// Returns when the workplace is stopping and its last call has ended.
  asio::awaitable<void> run();

 private:
  asio::awaitable<void> take_part(std::uint64_t round);
  asio::awaitable<bool> see_closed(const latch& common, std::uint64_t round);
  asio::awaitable<void> set(const latch& common);
  asio::awaitable<void> count_down(const latch& common);
  asio::awaitable<bool> is_open(const latch& common);
  asio::awaitable<void> wait(const latch& common);
  std::uint64_t begin(const latch& common, std::string_view verb, std::uint64_t number);
  void end(std::uint64_t operation, const error_code& failed, std::uint64_t value = 0);
  bool over(std::uint64_t round) const;

  workplace& place_;
  client& redis_;
  const std::size_t number_, tasks_;
  dice dice_;
};

}  // namespace holdfast::chaos
