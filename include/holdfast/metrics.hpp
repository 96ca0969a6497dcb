// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/export.hpp>
#include <holdfast/observer.hpp>

#include <cstddef>
#include <iosfwd>
#include <memory>

namespace holdfast {

namespace detail {
class metric_store;
}

/// Numbers for Prometheus: how long callers wait and hold, what is held now, losses, renewals, commands and
/// connections. docs/guide/metrics.md lists each.
///
///   auto numbers = std::make_shared<holdfast::metrics>();
///   holdfast::client redis{executor, {.url = url, .observer = numbers}};
///   numbers->write(response);  // the answer to a request for /metrics
///
/// Any number of clients, on any threads, may share one object. It then has the sum, and no label names the client. To
/// tell clients apart, give each one its own object and serve each at its own address. Connect a client by one way
/// only: by two ways a hold would count twice. Give the child of a fork its own object. A thread that the child does
/// not have may have locked the parent's.
class HOLDFAST_EXPORT metrics final : public observer {
 public:
  struct options {
    /// Number of lock names with series of their own, with the label `lock`; the first names seen get them. All others
    /// share the value "other", and so do calls that got none of several locks. A name counts twice if locks of two
    /// kinds have it. 0: no such label. At most 100 000; more counts as 100 000. A name costs about 2 kB, and at most
    /// 230 lines of write().
    std::size_t lock_names = 0;
  };

  /// Throws std::bad_alloc.
  metrics() : metrics(options{}) {}
  explicit metrics(options options);
  ~metrics() override;

  /// Writes all numbers in Prometheus' text format 0.0.4 (Content-Type: text/plain; version=0.0.4). Any thread, at any
  /// time; sends nothing to Redis. It delays no client, unless names have series. Then the first event of a new name
  /// waits until the text is made. An event during the call may be in the text or not. A histogram agrees with itself,
  /// and no event is counted as ended before it began. The stream's locale and flags have no effect. Throws what the
  /// stream throws, and std::bad_alloc.
  void write(std::ostream& to) const;

  /// Counts a task that the guarded resource refused because of its fencing token; only the program knows that. Any
  /// thread.
  void fence_rejected() noexcept;

  /// Called by clients, on any thread. If no lock has its own series, they allocate or block at a few first events, and
  /// hardly at others. These are the first event of a kind of lock, of a command at a node, and of a connection. One
  /// case blocks each time: two connections that live at the same time, with a multiple of 1024 between their numbers.
  /// A constant must stand in event::lock_kind and in the name of a command: both are known by their addresses.
  void on(const event& event) noexcept override;
  void measured(const measurement& measurement) noexcept override;
  bool wants_ids() const noexcept override { return false; }

 private:
  const std::unique_ptr<detail::metric_store> store_;
};

}  // namespace holdfast
