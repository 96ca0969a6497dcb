// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <vector>

#include "base/lease_clock.hpp"
#include "redis/failure.hpp"
#include "redis/io_services.hpp"
#include "redis/transport.hpp"

namespace holdfast::detail {

/// The way to a server whose address is not known at all times: attempts to connect wait here until it opens, and begin
/// then. One that has waited until its deadline fails, and each that waits while there is no hope fails at once.
///
/// Outlives the connections that use it, or they are closed.
class connect_gate final : public redis::transport {
 public:
  explicit connect_gate(redis::transport& beyond) noexcept : beyond_(beyond) {}

  std::shared_ptr<attempt> connect(const redis::io_services& services, const redis::endpoint& node, time_point deadline,
                                   handler done) override;
  enum class state { closed, hopeless, open };
  /// `why` it is not open.
  void set(state state, redis::failure why = {});
  bool is_open() const noexcept { return state_ == state::open; }

 private:
  class passage;

  redis::transport& beyond_;
  state state_ = state::closed;
  redis::failure why_;
  std::vector<passage*> waiting_;
};

}  // namespace holdfast::detail
