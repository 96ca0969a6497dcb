// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include <holdfast/client.hpp>
#include <holdfast/config.hpp>

namespace holdfast::cli {

/// A command line that cannot be followed. The text is for people and has no secret.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The options of every subcommand that talks to servers.
struct access_options {
  std::vector<std::string> urls;  // several: the primaries of a red_lock
  std::string user, password_file;
  bool json = false;
};

/// The settings of a client: options, then HOLDFAST_URL, HOLDFAST_USER, HOLDFAST_PASSWORD,
/// HOLDFAST_SENTINEL_PASSWORD.
///
/// Decision: a password in `--url` is refused, because everybody on the machine can read a process's arguments. Its
/// environment and a file are private.
/// Throws usage_error.
config config_of(const access_options& options);

/// The text, which shown() has made, without the secrets of the URLs in it.
std::string without_secrets(std::string text, const std::vector<std::string>& arguments);

/// One lock as the command line names it.
struct lock_options_given {
  std::string name;
  bool fenced = false, simple = false, fair = false, red = false;
  bool shared = false, exclusive = false;  // a side of a shared_mutex: reads, writes
  bool election = false;                   // found by `free` alone: no option says so
  unsigned permits = 0;                    // the size of an expirable_semaphore. 0: a lock
  unsigned take = 0;                       // permits that are taken at once. 0: not given, one
};
/// Throws usage_error if the kinds contradict each other, the URLs or the number of permits.
void check(const lock_options_given& wanted, const config& settings);
/// The lock, one permit of the semaphore, one side of the shared_mutex, or a candidate without a value. Checks first.
mutex mutex_of(const client& client, const lock_options_given& wanted, const config& settings);
/// "mutex", "fenced_mutex", "simple_mutex", "fair_mutex", "red_lock", "expirable_semaphore", "shared_mutex" or
/// "shared_mutex_reader".
const char* kind_of(const lock_options_given& wanted, const config& settings);

}  // namespace holdfast::cli
