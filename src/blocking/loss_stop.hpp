// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>
#include <stop_token>

#include <holdfast/error.hpp>

#include "blocking/io_thread.hpp"

namespace holdfast::blocking::detail {

/// Requests the stop when `lost`, the answer of lease::lost(), comes, or when its client ends; not when the lease was
/// released. At once if the client has ended already.
void stop_on_loss(io_thread& client, asio::awaitable<error_code> lost, std::stop_source stop);

}  // namespace holdfast::blocking::detail
