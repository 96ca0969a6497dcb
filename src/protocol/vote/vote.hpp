// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/call.hpp"
#include "protocol/replies.hpp"
#include "redis/outcome.hpp"

/// The vote of one of several independent primaries. It has one while the key `holdfast:redlock` names the very run of
/// the server that answers. A server that was restarted may have forgotten locks, and has no vote until the longest of
/// them must be over. What a call refers to must live until its answer.
namespace holdfast::detail {

/// "<run id> <longest TTL>": what the marker is while the server votes. `run`: empty where the server does not say.
std::string vote_text(std::string_view run, milliseconds longest);

/// The server has answered that it has no vote.
bool says_no_vote(const redis::reply& reply) noexcept;

/// A marker: a vote, or the wait for one, which has a nonce behind it.
struct marker_text {
  std::string_view run, longest, nonce;

  /// Nothing: it is no marker.
  static std::optional<marker_text> parse(std::string_view text) noexcept;
};

/// What the marker is; empty: there is none.
call look_at_marker();
answer<std::string> read_look_at_marker(const redis::outcome& outcome);
/// Changes it, if it is still `was`. True: it is `becomes`.
call change_marker(const std::string& was, const std::string& becomes);
/// Makes it, where there is none.
call make_marker(const std::string& vote);
answer<bool> read_change_marker(const redis::outcome& outcome);
answer<bool> read_make_marker(const redis::outcome& outcome);

/// Gives a server a number, for a minute; `key` is of this client alone. It answers with the first that it was given.
call tell_apart(const std::string& key, const std::string& number);
answer<std::string> read_tell_apart(const redis::outcome& outcome);

}  // namespace holdfast::detail
