// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/endpoint.hpp"
#include "redis/failure.hpp"
#include "redis/resp.hpp"

namespace holdfast::detail {

/// Where one sentinel says that the primary is, and since which failover.
struct sentinel_word {
  redis::address primary;
  std::optional<std::uint64_t> epoch;  // config-epoch; nothing: an ACL withholds it
};

/// What one sentinel has answered about the primary: its word, or why there is none.
struct sentinel_answer {
  std::optional<sentinel_word> word;
  /// invalid_config: it does not know the name; no_permission, server_refused …: its refusal; protocol_error: what it
  /// says cannot be used. The detail is the cause, without the sentinel.
  redis::failure why;
  /// down-after-milliseconds, where it is told.
  std::optional<std::chrono::milliseconds> down_after;
};

/// Of the answers to `SENTINEL MASTER name` and `SENTINEL GET-MASTER-ADDR-BY-NAME name`, asked in this order.
/// The address is the second's: during a failover its leader tells in the first the new epoch beside the old address.
sentinel_answer read_answer(std::string_view name, const redis::reply& master, const redis::reply& address);

/// Another sentinel that one has named.
struct listed_sentinel {
  std::string run;
  redis::address at;
};
/// Of the answer to `SENTINEL SENTINELS name`; what cannot be used is left out, and all that comes after the first
/// `most`.
std::vector<listed_sentinel> read_sentinels(const redis::reply& reply, std::size_t most);

/// Of the answer to `SENTINEL MYID`; empty: it does not say.
std::string read_run(const redis::reply& reply);

}  // namespace holdfast::detail
