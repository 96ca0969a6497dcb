// SPDX-License-Identifier: BSL-1.0
#include "topology/failover_time.hpp"

#include <array>
#include <charconv>

namespace holdfast::detail {
namespace {

constexpr auto question = std::array<std::string_view, 3>{"CONFIG", "GET", cluster_failover.setting};

// The name and the value.
std::optional<std::chrono::milliseconds> milliseconds_of(const redis::reply& reply) {
  using kind = redis::reply::kind;
  if (reply.type != kind::array || reply.elements.size() != 2 || reply.elements[1].type != kind::string)
    return std::nullopt;
  const auto& text = reply.elements[1].text;
  int value = 0;  // as Redis has it
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return std::chrono::milliseconds(value);
}

}  // namespace

std::optional<std::string> shorter_than(const failover_time& takes, std::chrono::milliseconds value,
                                        std::chrono::milliseconds ttl) {
  const auto least = (value + takes.beside) * 16 / 10;
  if (ttl >= least) return std::nullopt;
  return "a TTL of " + std::to_string(ttl.count()) + " ms may end during a failover: 1.6 * (" +
         std::string(takes.setting) + ' ' + std::to_string(value.count()) + " + " +
         std::to_string(takes.beside.count()) + ") = " + std::to_string(least.count()) + " ms";
}

void node_timeout_question::append_to(std::string& out) const { redis::append_command(out, question); }

void node_timeout_question::answered(const redis::outcome& outcome) {
  if (outcome.error) return;
  if (const auto value = milliseconds_of(outcome.reply)) answer_(*value);
}

}  // namespace holdfast::detail
