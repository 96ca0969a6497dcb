// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <deque>
#include <functional>
#include <string>

#include "support/raw_client.hpp"
#include "support/real_redis.hpp"

namespace holdfast::test {

/// Asks again and again until `condition` holds; an exception of it, such as that of a server which is away, means no.
/// Throws std::runtime_error with `what` was awaited, its last exception and the end of each log when it does not.
void wait_for_servers(const std::string& what, const std::deque<real_redis>& servers,
                      const std::function<bool()>& condition);

/// Whether it answers: neither dead nor stopped.
inline bool lives(const real_redis& server) { return server.running() && !server.stopped(); }

/// A connection for a question that is asked again: a server that does not answer within a second is away for now.
inline raw_client briefly(const real_redis& server) {
  raw_client connection(server);
  connection.patience = std::chrono::seconds{1};
  return connection;
}

/// A connection for what is said once: a server that writes to a slow disk may need longer.
inline raw_client patiently(const real_redis& server) { return raw_client(server); }

}  // namespace holdfast::test
