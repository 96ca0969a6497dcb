// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>

#include "metrics/metric_store.hpp"
#include "metrics/text_format.hpp"

namespace holdfast::detail {

/// Writes all that a metric_store has counted in Prometheus' text format. Any thread, while others count.
class exposition {
 public:
  explicit exposition(const metric_store& counted) noexcept : counted_(counted) {}

  /// Once.
  std::string text();

 private:
  template <class Visit>
  void each_series(Visit visit) const;

  void write_locks();
  void write_workers();
  void write_renewals();
  void write_commands();
  void write_connections();
  void write_events();

  const metric_store& counted_;
  text_format out_;
};

}  // namespace holdfast::detail
