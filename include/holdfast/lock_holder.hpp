// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <string>

namespace holdfast {
using std::chrono::milliseconds;

/// The holder of a lock, as Redis had it when it was asked.
struct lock_holder {
  /// The owner field: lease::id() of the holder up to a '/', Redisson's `<uuid>:<thread>`, or, of a simple_mutex,
  /// whatever another program has written; its first 256 bytes. The part before the last ':' of ours is in the name of
  /// the holder's connections (config::client_name); Redisson's have none.
  std::string id;
  unsigned count = 0;  ///< how often it is held: 1 and its re-entries
  milliseconds ttl{};  ///< how long Redis will keep it without renewal; milliseconds::max(): a lock without TTL
};

}  // namespace holdfast
