// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/call.hpp"
#include "protocol/replies.hpp"
#include "redis/outcome.hpp"

/// The marker of one of several independent primaries. A server votes while the key `holdfast:redlock` names its
/// present run. A restarted server may have forgotten locks, so it has no vote until the longest TTL is over. The
/// operands of a call must live until its answer.
namespace holdfast::detail {

/// "<run id> <longest TTL>", the marker of a server that votes. `run` is empty if the server does not tell its run.
std::string vote_text(std::string_view run, milliseconds longest);

/// True: the server has answered that it has no vote.
bool says_no_vote(const redis::reply& reply) noexcept;

/// A marker: a vote, or the wait for one. A wait ends with a nonce.
struct marker_text {
  std::string_view run, longest, nonce;

  /// Empty: the text is no marker.
  static std::optional<marker_text> parse(std::string_view text) noexcept;
};

/// Reads the marker. Empty: there is none.
call look_at_marker();
answer<std::string> read_look_at_marker(const redis::outcome& outcome);
/// Changes the marker if it is still `was`. True: it is `becomes` now.
call change_marker(const std::string& was, const std::string& becomes);
/// Makes the marker if there is none.
call make_marker(const std::string& vote);
answer<bool> read_change_marker(const redis::outcome& outcome);
answer<bool> read_make_marker(const redis::outcome& outcome);

/// Gives a server a number for a minute, under a key of this client. The server answers with the first number that it
/// got.
call tell_apart(const std::string& key, const std::string& number);
answer<std::string> read_tell_apart(const redis::outcome& outcome);

}  // namespace holdfast::detail
