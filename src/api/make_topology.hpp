// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>

#include <holdfast/config.hpp>

#include "redis/connection.hpp"
#include "redis/io_services.hpp"
#include "topology/server_list.hpp"
#include "topology/topology.hpp"

namespace holdfast::detail {

/// Makes the topology of these servers; its users know no kind of deployment. `behaviour`: the settings that belong to
/// no server. Throws holdfast::error(invalid_config) if a file for TLS cannot be used.
std::unique_ptr<topology> make_topology(const redis::io_services& services, const server_list& servers,
                                        const config& behaviour, redis::connection::event_sink events);

}  // namespace holdfast::detail
