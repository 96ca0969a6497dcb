// SPDX-License-Identifier: BSL-1.0
// Stands in for src/redis/connector.hpp in the simulator.
#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "redis/endpoint.hpp"
#include "redis/failure.hpp"
#include "redis/services.hpp"
#include "redis/stream.hpp"

namespace holdfast::redis {

/// One attempt to get a connection over the simulated network.
class connector : public std::enable_shared_from_this<connector> {
 public:
  using handler = std::function<void(std::shared_ptr<stream>, failure)>;

  connector(const services& given, const endpoint& node) : services_(given), node_(node) {}

  void start(detail::time_point, handler done) {
    done_ = std::move(done);
    auto& context = asio::query(services_.strand, asio::execution::context);
    asio::use_service<sim::route_service>(context).way().dial(
        services_.strand, [self = shared_from_this()](error_code failed, const std::shared_ptr<sim::wire>& w) {
          const auto wire = w ? std::make_shared<stream>(w) : nullptr;
          if (self->done_)
            std::exchange(self->done_, nullptr)(
                wire, failed ? fail(self->node_, errc::unreachable, failed.message()) : failure());
        });
  }
  void cancel() { done_ = nullptr; }
  const char* phase() const noexcept { return "connecting"; }

 private:
  services services_;
  const endpoint& node_;
  handler done_;
};

}  // namespace holdfast::redis
