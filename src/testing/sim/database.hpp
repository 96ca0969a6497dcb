// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/resp.hpp"
#include "testing/sim/keyspace.hpp"

namespace holdfast::sim {

using redis::reply;
using arguments = std::vector<std::string>;

/// Why a server will not do everything at present.
enum class refusal { none, out_of_memory, disk_failed, no_replicas, replica, loading, busy };

/// The data, the clock and the refusals that commands work on.
struct database {
  keyspace keys;
  std::int64_t time_us = 0;  // TIME; keys.now() in microseconds
  refusal refuses = refusal::none;
  bool stayed = false;  // a write that Redis does not count as a change of its key
  bool wrote = false;   // the command or script that runs: a full server refuses nothing after its first write
  std::function<long long(std::string_view channel, std::string_view payload, bool sharded)> publish;
  std::function<long long(std::string_view channel, bool sharded)> subscribers;
  std::function<void(std::string_view error)> on_refused;
  // Once `tracked`: what a command does to a key, before it looks, after it has read, after it has changed it; and to
  // all keys.
  bool tracked = false;
  std::function<void(const std::string& key)> on_access = [](const auto&) {};
  std::function<void(const std::string& key)> on_read = [](const auto&) {};
  std::function<void(const std::string& key)> on_change = [](const auto&) {};
  std::function<void()> on_flush = [] {};
};

/// Redis' answer to a command that such a server does not do.
std::string_view text_of(refusal);

std::string lower(std::string_view);
reply error_reply(std::string text);
reply wrong_type();
reply not_an_integer();
reply syntax_error();
reply wrong_number_of_arguments(std::string_view lower_case_name);
reply integer_reply(long long);
reply string_reply(std::string);
reply status_reply(std::string);
/// Redis' string2ll: no sign but '-', no blanks, no leading zeros.
bool to_integer(std::string_view text, long long& out);

}  // namespace holdfast::sim
