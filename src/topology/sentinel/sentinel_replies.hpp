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

/// The primary's address by one sentinel, and the failover that made it the primary.
struct sentinel_word {
  redis::address primary;
  std::optional<std::uint64_t> epoch;  // config-epoch; nothing: an ACL withholds it
};

/// The answer of one sentinel about the primary: its word, or the reason why there is none.
struct sentinel_answer {
  std::optional<sentinel_word> word;
  /// invalid_config: it does not know the name; no_permission, server_refused …: its refusal; protocol_error: the
  /// answer cannot be used. The detail is the cause, without the sentinel.
  redis::failure why;
  /// down-after-milliseconds, if the answer has it.
  std::optional<std::chrono::milliseconds> down_after;
};

/// Reads the answers to `SENTINEL MASTER name` and `SENTINEL GET-MASTER-ADDR-BY-NAME name`, asked in this order.
/// The address is the second's. During a failover the first answer of its leader has the new epoch beside the old
/// address.
sentinel_answer read_answer(std::string_view name, const redis::reply& master, const redis::reply& address);

/// Another sentinel, as one sentinel has named it.
struct listed_sentinel {
  std::string run;
  redis::address at;
};
/// Reads the answer to `SENTINEL SENTINELS name`: the first `most` entries, without those that cannot be used.
std::vector<listed_sentinel> read_sentinels(const redis::reply& reply, std::size_t most);

/// Reads the answer to `SENTINEL MYID`; empty: a refusal.
std::string read_run(const redis::reply& reply);

}  // namespace holdfast::detail
