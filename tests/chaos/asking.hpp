// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>

#include "chaos/history.hpp"
#include "chaos/workload.hpp"

namespace holdfast::chaos {

namespace asio = boost::asio;

lock_options terms_of(const section& s);

/// Asks for a lock as the section has it: once, for a while, or until it comes; cancelled on the way where the section
/// says so, and that is written down.
asio::awaitable<result<std::optional<lease>>> ask(mutex m, const section& s, history& log, std::uint64_t operation);

}  // namespace holdfast::chaos
