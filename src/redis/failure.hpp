// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <string_view>

#include <holdfast/error.hpp>

#include "redis/endpoint.hpp"
#include "redis/resp.hpp"

namespace holdfast::redis {

/// Why there is no connection, or none any more.
struct failure {
  errc code = errc::unreachable;
  std::string detail;  // node and cause, safe to print

  /// An outage ends by itself; a wrong password does not.
  bool mends_itself() const noexcept { return code == errc::unreachable || code == errc::server_refused; }
  /// Somebody there said so: commands that waited for the connection hear it at once.
  bool is_answer() const noexcept { return code != errc::unreachable; }
};

/// What a node of a cluster is refused with.
inline constexpr std::string_view cluster_node = "a cluster node; holdfast needs a single primary";

/// "node: cause".
failure fail(const endpoint& node, errc code, std::string_view cause);

/// Code of an error reply that came while a connection was introduced.
errc classify(std::string_view error_reply);

/// Whether a reply shows a server at work. A refusal that mends itself does not: Redis is there, and does nothing yet.
bool shows_work(const reply& r);

/// Words of a server for a text: escaped, cut, and without the node's password should the server quote it.
std::string quoted(const endpoint& node, std::string_view words);

}  // namespace holdfast::redis
