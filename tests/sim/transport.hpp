// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>

#include "redis/transport.hpp"
#include "sim/network.hpp"

namespace holdfast::sim {

/// The library's transport over a simulated route.
class transport final : public redis::transport {
 public:
  explicit transport(route& way) noexcept : way_(way) {}
  std::shared_ptr<attempt> connect(const redis::services& given, const redis::endpoint& node, time_point deadline,
                                   handler done) override;

 private:
  route& way_;
};

}  // namespace holdfast::sim
