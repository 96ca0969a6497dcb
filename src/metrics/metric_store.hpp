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
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <holdfast/observer.hpp>

#include "metrics/bounded_series.hpp"
#include "metrics/histogram.hpp"
#include "metrics/label.hpp"
#include "metrics/lock_series.hpp"
#include "metrics/pointer_index.hpp"

namespace holdfast::detail {

/// Counts all events and measurements, mostly without a lock. Any thread. The exposition writes them as text.
class metric_store {
 public:
  explicit metric_store(std::size_t lock_names);

  void count(const event& event) noexcept {
    const auto n = static_cast<std::size_t>(event.kind);
    if (n >= ends) return count_moment(n);
    events_[n].add();
    auto* const series = nameless_.find(event.lock_kind);
    if (!series) return count_slowly(event);
    series->count(n, event);
  }
  void count(const measurement& measurement) noexcept {
    const auto known = measurement.connection ? seen(*measurement.connection) : std::nullopt;
    if (!known) return count_slowly(measurement);
    auto& there = *connections_[*known];
    if (measurement.kind == measurement_kind::command) {
      auto* const took = there.took.find(measurement.name);
      if (!took) return count_slowly(measurement);
      return (*took)[failure_of(measurement)].add(measurement.took.count());
    }
    if (measurement.kind == measurement_kind::in_flight) return there.in_flight.add(measurement.count);
    count_slowly(measurement);
  }
  void count_fence_rejection() noexcept { fence_rejections_.add(); }

 private:
  friend class exposition;  // reads all of it

  static constexpr std::size_t most_kinds = 15, most_commands = 63, most_connections = 256, most_servers = 32;
  static constexpr std::size_t others = 0;  // index of the connections and of the servers beyond

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
  using durations_of_command = std::array<durations, failures.size()>;
  /// By the number of the server.
  class command {
   public:
    ~command();
    /// Null: it was not sent there yet.
    durations_of_command* took(std::size_t server) noexcept { return took_[server].load(std::memory_order_acquire); }
    const durations_of_command* took(std::size_t server) const noexcept {
      return took_[server].load(std::memory_order_acquire);
    }
    durations_of_command& first_took(std::size_t server, bool script) noexcept;
    bool script() const noexcept { return script_.load(std::memory_order_relaxed); }

   private:
    std::array<std::atomic<durations_of_command*>, most_servers + 1> took_{};
    durations_of_command others_;
    std::atomic<bool> script_{false};
  };
  /// All that have one role and one server.
  struct connections {
    connections(std::string as_role, std::string at_node, std::size_t of_server)
        : role(std::move(as_role)), node(std::move(at_node)), server(of_server) {}

    const std::string role, node;  // as labels
    const std::size_t server;
    counter up, again, in_flight;
    pointer_index<durations_of_command, most_commands + 1> took;  // those of its server
  };
  struct server {
    std::string address, port;  // as labels
    bool operator==(const server&) const = default;
  };

  void count_moment(std::size_t index) noexcept {
    if (index < events_.size()) events_[index].add();
  }
  void count_slowly(const event& event) noexcept;
  void count_slowly(const measurement& measurement) noexcept;
  static failure failure_of(const measurement& measurement) noexcept {
    return measurement.failure == errc{} ? none : measurement.failure == errc::unconfirmed ? unanswered : error_reply;
  }
  lock_series& series_of(std::string_view lock_kind, std::string_view name) noexcept;
  lock_series& named(std::size_t kind, std::string_view name) noexcept;
  /// Of the workers in its state.
  counter& worker_count(const measurement& measurement) noexcept;
  durations_of_command& took_by(const measurement& measurement) noexcept;
  /// Nothing: they are to be found by the texts.
  std::optional<std::size_t> seen(const connection_facts& facts) const noexcept {
    const auto found = found_[facts.number % found_.size()].load(std::memory_order_acquire);
    if (found >> bits_of_index != facts.number) return std::nullopt;
    return found % (1 << bits_of_index);
  }
  connections& connections_of(const connection_facts& facts) noexcept;
  std::size_t find_or_add(const connection_facts& facts);

  bounded_series<lock_series, most_kinds> kinds_;        // of the names that have no series of their own
  pointer_index<lock_series, most_kinds + 1> nameless_;  // where no name has series of its own
  std::array<counter, event_kinds> events_;
  counter confirmed_renewals_, woken_, woken_in_vain_, polled_, fence_rejections_;
  ratios slack_;
  bounded_series<command, most_commands> commands_;

  const std::size_t room_;  // for names
  mutable std::shared_mutex naming_;
  bool names_full_ = false;
  std::size_t named_ = 0;
  std::array<names, most_kinds + 1> by_name_;
  std::array<named_series, most_kinds + 1> by_label_;

  // Those of a connection are found by its number, without a lock, and by its texts where another has that place.
  static constexpr int bits_of_index = 16;
  std::array<std::atomic<std::uint64_t>, 1024> found_{};  // the connection's number, and the index of the connections
  mutable std::mutex connecting_;
  std::array<std::unique_ptr<connections>, most_connections + 1> connections_;  // the first are the others
  std::size_t connections_used_ = 1;
  bool connections_full_ = false, connections_crowded_ = false;
  std::vector<server> servers_{{std::string(other), ""}};  // the first are the others
};

}  // namespace holdfast::detail
