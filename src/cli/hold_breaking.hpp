// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/awaitable.hpp>

#include <string>

#include <holdfast/client.hpp>
#include <holdfast/config.hpp>

#include "cli/access.hpp"
#include "cli/server/lock_facts.hpp"

namespace holdfast::cli {

/// The reason why the key is left alone; empty: it may be freed.
std::string refusal_of(const key_facts& key, const lock_options_given& wanted);

/// Breaks the hold of any owner. The kind is the key's, where `wanted` does not say it. True: there was a hold.
/// Throws holdfast::error and usage_error.
boost::asio::awaitable<bool> break_hold(client& redis, config settings, lock_options_given wanted,
                                        const key_facts& key);

}  // namespace holdfast::cli
