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
///   numbers->write(response);  // to whoever asks for /metrics
///
/// Any number of clients, on any threads, may have the same one: then it has the sum of what they do, and no label says
/// which client did it. Who wants to tell them apart gives each one of its own and serves each under its own address.
/// It must not be told of what a client does by two ways: a hold would count twice. Give the child of a fork
/// one of its own: a thread that the child does not have may have locked that of the parent.
class HOLDFAST_EXPORT metrics final : public observer {
 public:
  struct options {
    /// So many lock names, the first that are heard of, have series of their own, with the label `lock`; all others
    /// share the value "other", and so do calls that got none of several. A name that locks of two kinds have counts
    /// twice. 0: there is no such label. Up to 100 000; more counts as that. A name costs about 2 kB, and at most 220
    /// lines of write().
    std::size_t lock_names = 0;
  };

  /// Throws std::bad_alloc.
  metrics() : metrics(options{}) {}
  explicit metrics(options options);
  ~metrics() override;

  /// Writes all of it in Prometheus' text format 0.0.4 (Content-Type: text/plain; version=0.0.4). Any thread, at any
  /// time; it asks Redis nothing, and holds up no client, but where names have series: then the first event of a new
  /// name waits until the text is made. What happens meanwhile may be in it or not; a histogram agrees with itself, and
  /// nothing is counted as ended before it began. Neither the stream's locale nor its flags matter. Throws what the
  /// stream throws, and std::bad_alloc.
  void write(std::ostream& to) const;

  /// The guarded resource has refused a task for its fencing token: only the program knows. Any thread.
  void fence_rejected() noexcept;

  /// Called by clients. Any thread. Where no lock has its own series, they allocate or block at the first event of a
  /// kind of lock, of a command at a node, or of a connection, and hardly at any other: two connections that live at
  /// the same time, with a multiple of 1024 between their numbers, block each time. event::lock_kind and the name of a
  /// command must be constants: they are known by their addresses.
  void on(const event& event) noexcept override;
  void measured(const measurement& measurement) noexcept override;
  bool wants_ids() const noexcept override { return false; }

 private:
  const std::unique_ptr<detail::metric_store> store_;
};

}  // namespace holdfast
