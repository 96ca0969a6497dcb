// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <vector>

#include "base/lease_clock.hpp"
#include "redis/failure.hpp"
#include "redis/io_services.hpp"
#include "redis/transport.hpp"

namespace holdfast::detail {

/// The transport to a server whose address is not known at all times. Attempts to connect wait here until the gate
/// opens, and begin then. An attempt fails at its deadline, or at once if the gate is hopeless.
///
/// Outlives the connections that use it, or they are closed.
class connect_gate final : public redis::transport {
 public:
  explicit connect_gate(redis::transport& beyond) noexcept : beyond_(beyond) {}

  std::shared_ptr<attempt> connect(const redis::io_services& services, const redis::endpoint& node, time_point deadline,
                                   handler done) override;
  enum class state { closed, hopeless, open };
  /// `why`: the reason why it is not open.
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
