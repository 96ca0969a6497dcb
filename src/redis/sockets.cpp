// SPDX-License-Identifier: BSL-1.0
#include "redis/sockets.hpp"

#include <utility>

#include "redis/connector.hpp"

namespace holdfast::redis {

std::shared_ptr<transport::attempt> sockets::connect(const io_services& services, const endpoint& node,
                                                     detail::time_point deadline, handler done) {
  const auto made = std::make_shared<connector>(services, node);
  made->start(deadline, std::move(done));
  return made;
}

}  // namespace holdfast::redis
