// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <memory>

#include "redis/connection.hpp"
#include "redis/endpoint.hpp"
#include "redis/services.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// Whoever uses the servers knows none of their kinds. `answer_timeout`: for acknowledgements of subscriptions.
/// `events`: outage, connected, fencing_degraded.
/// Throws holdfast::error(invalid_config) when a file for TLS cannot be used.
std::unique_ptr<topology> make_topology(const redis::services& given, const redis::endpoint& server,
                                        std::chrono::milliseconds answer_timeout, redis::connection::event_sink events);

}  // namespace holdfast::detail
