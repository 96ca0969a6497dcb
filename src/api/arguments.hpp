// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstdint>
#include <string_view>

#include <holdfast/config.hpp>
#include <holdfast/lock_options.hpp>

#include "sync/claim/terms.hpp"

/// Checks of the callers' arguments, made before anything is done.
namespace holdfast::detail {

class engine;
struct lock_keys;

/// Throws error: invalid_ttl.
terms resolve_terms(const config&, const lock_options&);
/// Throws error: invalid_ttl. 0 is allowed: the TTL of the grant.
void check_renew_ttl(const config&, milliseconds ttl);
/// Throws error: invalid_name.
void check_name(const lock_keys& keys);
/// Throws error: invalid_argument. `text`: the noun of the number.
void check_number(const char* text, std::uint64_t given, std::uint64_t most);
/// The most permits of a semaphore.
inline constexpr std::uint32_t most_permits = 2'147'483'647;
/// The largest count of a latch.
inline constexpr std::uint32_t most_counted = 2'147'483'647;
/// Throws error: invalid_argument. Of an election.
void check_value(std::string_view value);
/// Throws error: invalid_name, invalid_argument for a semaphore without permits or a value that is too long, or
/// invalid_config if these servers do not have this kind of lock.
void check_lock(const engine&, const lock_keys& keys);
/// Throws error: invalid_name.
void check_note(std::string_view note);
/// Throws error: invalid_wait.
void check_wait(milliseconds wait);
/// Throws error: invalid_wait.
void check_grace(milliseconds grace);

}  // namespace holdfast::detail
