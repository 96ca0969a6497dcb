// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "chaos/testimony.hpp"
#include "chaos/workload.hpp"

namespace holdfast::chaos {

/// One logical task, one owner: takes one lock after the other, works under it, and writes down what it was told.
class task {
 public:
  using next_section = std::function<section(dice&)>;

  task(workplace& place, client& redis, std::size_t client_number, std::uint64_t seed, next_section draw);

  /// Returns when the workplace is stopping and its last section has ended.
  asio::awaitable<void> run();

 private:
  struct hold;  // what it has in hand

  asio::awaitable<void> do_section(const section& s);
  asio::awaitable<void> break_lock(const section& s);
  asio::awaitable<void> work_under(const section& s);
  asio::awaitable<void> work_inside(const section& s);
  asio::awaitable<void> work_as_body(std::uint64_t operation, lease& l, const section& s);
  asio::awaitable<result<std::optional<lease>>> ask_for(const section& s, std::function<void()> cancelling);
  asio::awaitable<std::optional<lease>> acquire(const section& s, std::uint64_t operation);
  asio::awaitable<void> reenter(hold& h, const section& s);
  asio::awaitable<void> check_count(hold& h);
  asio::awaitable<void> linger(hold& h, const section& s);
  asio::awaitable<void> renew(hold& h);
  void feed(hold& h);
  asio::awaitable<void> release(std::shared_ptr<hold> h, const section& s);
  void drop(hold& h);
  asio::awaitable<bool> unlock(hold& h, lease& l, std::size_t left);
  std::optional<long long> counter_of(const lease& l, const section& s);

  workplace& place_;
  client& redis_;
  dice dice_;
  const next_section draw_;
  owner self_;
  testimony told_;
  std::vector<std::shared_ptr<hold>> abandoned_;
};

}  // namespace holdfast::chaos
