// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "redis/request.hpp"

namespace holdfast::detail {

/// The duration of a failover: the value of a server setting, and at most `beside` in addition.
struct failover_time {
  std::string_view setting;
  std::chrono::milliseconds beside;
};
inline constexpr failover_time sentinel_failover{"down-after-milliseconds", std::chrono::milliseconds(2'300)};
inline constexpr failover_time cluster_failover{"cluster-node-timeout", std::chrono::milliseconds(3'700)};

/// A lease outlives a failover if its TTL is at least 1.6 * (value + beside). For a shorter TTL it returns that
/// arithmetic as a text.
std::optional<std::string> shorter_than(const failover_time& takes, std::chrono::milliseconds value,
                                        std::chrono::milliseconds ttl);

/// Asks a node of a cluster for its cluster-node-timeout. Many servers let no client read that: then `answer` is not
/// called.
class node_timeout_question final : public redis::command {
 public:
  explicit node_timeout_question(std::function<void(std::chrono::milliseconds)> answer) : answer_(std::move(answer)) {}

  void append_to(std::string& out) const override;
  void answered(const redis::outcome& outcome) override;

 private:
  const std::function<void(std::chrono::milliseconds)> answer_;
};

}  // namespace holdfast::detail
