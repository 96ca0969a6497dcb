// SPDX-License-Identifier: BSL-1.0
#include "metrics/text_format.hpp"

namespace holdfast::detail {

void text_format::family(std::string_view name, std::string_view type, std::string_view help) {
  family_ = name;
  text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  text_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

void text_format::line(std::string_view suffix, labels with, std::string_view end_of_bucket, std::string_view value) {
  text_.append(family_).append(suffix);
  char before = '{';
  const auto add = [&](const label& label) {
    if (label.value.empty()) return;
    text_ += before;
    before = ',';
    text_.append(label.name).append("=\"");
    append_escaped(text_, label.value);
    text_ += '"';
  };
  for (const auto& label : with) add(label);
  add({"le", end_of_bucket});
  if (before == ',') text_ += '}';
  text_.append(" ").append(value).append("\n");
}

// In digits: a double would lose nanoseconds after some months.
std::string text_format::in_billionths(std::int64_t value) {
  constexpr std::int64_t whole = 1'000'000'000;
  std::string text = value < 0 ? "-" : "";
  const auto size = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  text += std::to_string(size / whole);
  const auto rest = std::to_string(whole + static_cast<std::int64_t>(size % whole)).substr(1);
  const auto digits = rest.find_last_not_of('0') + 1;  // 0 where there is none
  if (digits > 0) text.append(".").append(rest, 0, digits);
  return text;
}

}  // namespace holdfast::detail
