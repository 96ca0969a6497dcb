// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>

#include "redis/transport.hpp"

namespace holdfast::redis {

/// Our transport: TCP, unix sockets, and TLS over TCP.
class sockets final : public transport {
 public:
  std::shared_ptr<attempt> connect(const io_services& services, const endpoint& node, detail::time_point deadline,
                                   handler done) override;
};

}  // namespace holdfast::redis
