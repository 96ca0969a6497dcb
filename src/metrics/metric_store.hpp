// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <holdfast/observer.hpp>

#include "metrics/histogram.hpp"
#include "metrics/lock_series.hpp"
#include "metrics/slots.hpp"
#include "metrics/text_format.hpp"

namespace holdfast::detail {

/// All that is counted. Any thread.
class metric_store {
 public:
  explicit metric_store(std::size_t lock_names);

  void count(const event& e) noexcept;
  void count(const measurement& m) noexcept;
  void count_fence_rejection() noexcept { fence_rejections_.add(); }
  /// In Prometheus' text format.
  std::string text() const;

 private:
  static constexpr std::size_t most_kinds = 15, most_commands = 47, most_connections = 256;

  /// Of one name, as it is in the label.
  using named_series = std::map<std::string, lock_series, std::less<>>;
  struct hash_of_text {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  /// By the names' own bytes: only the first event of a name makes a label.
  using names = std::unordered_map<std::string, lock_series*, hash_of_text, std::equal_to<>>;

  enum failure : std::size_t { none, error_reply, unanswered };
  static constexpr std::array<std::string_view, 3> failures{"", "error_reply", "unconfirmed"};
  struct command {
    std::array<durations, failures.size()> took;
    std::atomic<bool> script{false};
  };
  struct connection {
    std::int64_t up = 0, again = 0;
  };
  using connection_key = std::pair<std::string, std::string>;  // role, node

  lock_series& series_of(std::string_view lock_kind, std::string_view name) noexcept;
  lock_series& named(std::size_t kind, std::string_view name) noexcept;
  void count_connection(const measurement& m) noexcept;
  template <class Visit>
  void each_series(Visit visit) const;

  void write_locks(text_format& to) const;
  void write_renewals(text_format& to) const;
  void write_commands(text_format& to) const;
  void write_connections(text_format& to) const;
  void write_events(text_format& to) const;

  slots<lock_series, most_kinds> kinds_;  // of the names that have no series of their own
  std::array<counter, event_kinds> events_;
  counter confirmed_renewals_, woken_, woken_in_vain_, polled_, fence_rejections_;
  ratios slack_;
  slots<command, most_commands> commands_;

  const std::size_t room_;  // for names
  mutable std::shared_mutex naming_;
  bool names_full_ = false;
  std::size_t named_ = 0;
  std::array<names, most_kinds + 1> by_name_;
  std::array<named_series, most_kinds + 1> by_label_;

  mutable std::mutex connecting_;
  std::map<connection_key, connection> connections_;
};

}  // namespace holdfast::detail
