// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <deque>
#include <memory>
#include <utility>

#include "redis/transport.hpp"
#include "testing/sim/network.hpp"

namespace holdfast::sim {

/// The library's transport over simulated routes.
class transport final : public redis::transport {
 public:
  /// The address of an endpoint says by which of them; to any other there is none.
  transport(std::deque<route>& ways, home_ptr client) noexcept : ways_(ways), client_(std::move(client)) {}
  std::shared_ptr<attempt> connect(const redis::io_services& services, const redis::endpoint& node, time_point deadline,
                                   handler done) override;

 private:
  std::deque<route>& ways_;
  const home_ptr client_;
};

}  // namespace holdfast::sim
