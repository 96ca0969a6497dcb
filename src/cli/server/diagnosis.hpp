// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "cli/server/lock_facts.hpp"
#include "config/settings.hpp"
#include "redis/resp.hpp"

/// Pure: what the answers of a server mean for locks.
namespace holdfast::cli {

using std::chrono::microseconds;
using std::chrono::milliseconds;

enum class verdict { ok, warn, fail };
std::string_view to_string(verdict verdict) noexcept;

struct finding {
  verdict is = verdict::ok;
  std::string_view check;
  std::string text;
  std::string fix{};  // the command that mends it; empty: none is needed
};
using findings = std::vector<finding>;

/// The fields of INFO.
class info_text {
 public:
  explicit info_text(std::string_view text) : text_(text) {}

  std::string_view find(std::string_view field) const noexcept;  // empty: there is none
  long long number(std::string_view field) const noexcept;       // 0: there is none

 private:
  std::string_view text_;
};

findings judge_server(const info_text& info, const detail::settings& settings);
/// The time since the slowest replica confirmed data. 0: there is no replica.
std::chrono::seconds replica_lag(const info_text& info);
findings judge_replicas(const info_text& info, const detail::settings& settings);
/// `setting`: the value of client-output-buffer-limit.
finding judge_buffers(std::string_view setting);
/// `ahead`: the server's clock before ours.
finding judge_clock(milliseconds ahead);
/// `slowest`, `middle`: of several round trips.
finding judge_round_trips(microseconds slowest, microseconds middle, const detail::settings& settings);
finding judge_cluster(std::string_view cluster_info);
finding judge_node_timeout(milliseconds timeout, const detail::settings& settings);
/// `primary`: a sentinel's answer to SENTINEL MASTER.
findings judge_sentinels(const redis::reply& primary, const detail::settings& settings);
/// Empty: the lock is in order.
findings judge_lock(const lock_facts& lock, const detail::settings& settings);

}  // namespace holdfast::cli
