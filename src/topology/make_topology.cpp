// SPDX-License-Identifier: BSL-1.0
#include "topology/make_topology.hpp"

#include <utility>

#include "topology/standalone.hpp"

namespace holdfast::detail {

std::unique_ptr<topology> make_topology(const redis::services& given, const redis::endpoint& server,
                                        std::chrono::milliseconds answer_timeout,
                                        redis::connection::event_sink events) {
  return std::make_unique<standalone>(given, server, answer_timeout, std::move(events));
}

}  // namespace holdfast::detail
