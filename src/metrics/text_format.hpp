// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "metrics/histogram.hpp"
#include "metrics/label.hpp"

namespace holdfast::detail {

/// Makes a text in Prometheus' format 0.0.4: a family, then its samples, then the next family.
class text_format {
 public:
  /// A value of "" is the same as no label.
  struct label {
    std::string_view name, value;
  };
  using labels = std::initializer_list<label>;

  /// `type`: "counter", "gauge" or "histogram".
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(labels with, std::int64_t value) { line("", with, {}, std::to_string(value)); }
  /// Its values are in billionths of what is printed.
  template <const auto& Ends>
  void sample(labels with, const histogram<Ends>& of) {
    const auto buckets = of.buckets();
    std::int64_t so_far = 0;
    for (std::size_t n = 0; n < buckets.size(); ++n) {
      so_far += buckets[n];
      line("_bucket", with, n < Ends.size() ? Ends[n].text : std::string_view("+Inf"), std::to_string(so_far));
    }
    line("_sum", with, {}, in_billionths(of.sum()));
    line("_count", with, {}, std::to_string(so_far));
  }

  const std::string& text() const noexcept { return text_; }
  /// 1500000000: "1.5"
  static std::string in_billionths(std::int64_t value);

 private:
  void line(std::string_view suffix, labels with, std::string_view end_of_bucket, std::string_view value);

  std::string text_;
  std::string_view family_;
};

}  // namespace holdfast::detail
