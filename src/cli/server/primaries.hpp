// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <vector>

#include "cli/server/session.hpp"
#include "config/settings.hpp"

namespace holdfast::cli {

/// The servers that have locks now: one, the primary that the sentinels name, all primaries of a cluster, or all of a
/// red_lock.
/// Throws holdfast::error: unreachable if nobody tells them.
asio::awaitable<std::vector<redis::endpoint>> find_primaries(network& over, const detail::settings& settings);

/// A session with each. Those of a red_lock that do not answer are left out while a majority does.
asio::awaitable<std::vector<std::unique_ptr<session>>> open_primaries(network& over, const detail::settings& settings);

/// Time for one answer: an administrator's command may be slower than a lock's.
milliseconds answer_limit(const detail::settings& settings);

}  // namespace holdfast::cli
