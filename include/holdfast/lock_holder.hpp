// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <optional>
#include <string>

namespace holdfast {
using std::chrono::milliseconds;

/// The holder of a lock when Redis answered; it may have changed since.
struct lock_holder {
  /// The owner field, its first 256 bytes. Of a holdfast lock: lease::id() up to a '/'. Of Redisson: `<uuid>:<thread>`.
  /// Of a simple_mutex: any text that another program wrote. Of a holdfast lock the part before the last ':' is in the
  /// name of the holder's connections (config::client_name). Redisson's connections have no such name. Of an
  /// expirable_semaphore: the id of the permit that ends next, in hex.
  std::string id;
  unsigned count = 0;  ///< number of holds: the first and its re-entries
  milliseconds ttl{};  ///< how long Redis keeps the lock without renewal; milliseconds::max(): a lock without TTL
  /// When this hold began, by the server's clock. Empty: not known. This time and the note need config::notes in both
  /// clients, the holder's and the asking one. The holder's client writes them soon after the grant.
  std::optional<std::chrono::sys_time<milliseconds>> since{};
  std::string note{};  ///< lock_options::note of the holder: any bytes, at most 200. Empty: none, or not known
};

}  // namespace holdfast
