// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::bench {

/// Not more than that share of the values are less. Throws std::out_of_range where there is none.
double quantile(double share, std::vector<double> values);
/// Of an even number of values the upper of the two in the middle.
inline double median(std::vector<double> values) { return quantile(0.5, std::move(values)); }

/// Which side of `value` is good.
struct limit {
  enum class side { at_most, at_least } good = side::at_most;
  double value = 0;
};
inline limit at_most(double value) { return {limit::side::at_most, value}; }
inline limit at_least(double value) { return {limit::side::at_least, value}; }

using figures = std::vector<std::pair<std::string, double>>;

/// One row of the report.
struct bound {
  std::string target{};
  std::string what{};             // in words
  std::optional<limit> keeps{};   // empty: reported, not judged
  std::optional<double> value{};  // empty: not measured, `why` says why
  figures made_of{};
  std::string why{};

  /// Measured, and within its limit if it has one.
  bool ok() const;
};

/// {"target":…,"value":…,"limit":…,"ok":…, …}: these keys first. What there is not is null.
std::string json_line(const bound&);
std::string table_head();
std::string table_row(const bound&);

/// `calls` of a command in the text of INFO commandstats; 0 if it is not there.
long long calls_of(std::string_view info, std::string_view command);
/// The number after `name:` in the text of INFO. Throws std::runtime_error without it.
double number_in(std::string_view info, std::string_view name);

}  // namespace holdfast::bench
