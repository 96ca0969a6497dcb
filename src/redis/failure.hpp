// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>
#include <holdfast/export.hpp>

#include "base/if_memory.hpp"
#include "redis/endpoint.hpp"

namespace holdfast::redis {

/// The reason why there is no connection, or why a command has no answer about its effect.
struct failure {
  error_code code = errc::unreachable;  // of a cancelled call: operation_aborted
  std::string detail;                   // the cause, and the node where there is one; safe to print
  bool may_have_run = false;            // of a command: it may have done its work, or may still do it

  /// An outage ends by itself, and the same command may succeed later. A wrong password does not end by itself.
  bool mends_itself() const noexcept {
    return code == errc::unreachable || code == errc::server_refused || code == errc::quorum_failed ||
           code == errc::not_replicated;
  }
  /// A server has said so: commands that wait for the connection get it at once.
  bool is_answer() const noexcept { return code != errc::unreachable; }
};

/// A failure whose text stays empty if there is no memory for it.
inline failure failure_with(error_code code, std::string_view detail) noexcept {
  failure why{code, {}};
  detail::if_memory([&] { why.detail = detail; });
  return why;
}

/// No failure: no error.
inline error_code error_of(const std::optional<failure>& failed) noexcept {
  return failed ? failed->code : error_code();
}

/// A failure for lack of memory. Its text is short enough to need none.
inline failure without_memory() { return {errc::unreachable, "no memory"}; }

/// "node: cause".
HOLDFAST_EXPORT failure fail(const endpoint& node, error_code code, std::string_view cause);

/// Words of a server for a text: escaped, cut, and without the node's password in case the server quotes it.
std::string quoted(const endpoint& node, std::string_view words);

}  // namespace holdfast::redis
