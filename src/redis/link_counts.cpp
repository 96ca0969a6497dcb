// SPDX-License-Identifier: BSL-1.0
#include "redis/link_counts.hpp"

#include <atomic>
#include <new>
#include <utility>

namespace holdfast::redis {
namespace {

// Of the whole process: observers may hear of several clients.
std::atomic<std::uint64_t> connections_made{0};

}  // namespace

void link_counts::connection_up(std::string_view role, const endpoint& node) noexcept try {
  ++times_up_;
  if (!metrics_) return;
  known_ = nullptr;
  node_name_ = node.to_string();
  const auto& at = node.at;
  facts_ = {.number = ++connections_made,
            .role = role,
            .node = node_name_,
            .address = at.unix_path.empty() ? at.host : at.unix_path,
            .port = at.unix_path.empty() ? at.port : std::uint16_t{}};
  known_ = &facts_;
  counted_ = true;
  metrics_->measured({.kind = measurement_kind::connection_up, .connection = &facts_, .count = times_up_});
} catch (const std::bad_alloc&) {  // then its commands are counted without it, and its end is not
}

void link_counts::report_in_flight(std::size_t commands) {
  const auto before = std::exchange(reported_in_flight_, commands);
  metrics_->measured({.kind = measurement_kind::in_flight,
                      .connection = &facts_,
                      .count = static_cast<std::int64_t>(commands) - static_cast<std::int64_t>(before)});
}

void link_counts::connection_down() noexcept {
  if (!counted_) return;
  in_flight(0);
  counted_ = false;
  metrics_->measured({.kind = measurement_kind::connection_down, .connection = &facts_, .count = times_up_});
}

}  // namespace holdfast::redis
