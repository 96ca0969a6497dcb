// SPDX-License-Identifier: BSL-1.0
#include "sim/explore/plan.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::sim::explore {
namespace {

constexpr std::string_view only_first_options = "-";
constexpr std::size_t longest_run = 1'000'000;

std::optional<std::size_t> number_of(std::string_view text) {
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

std::string to_text(const plan& of) {
  const auto last = std::find_if(of.rbegin(), of.rend(), [](std::size_t index) { return index != 0; }).base();
  std::string text;
  for (auto run = of.begin(); run != last;) {
    const auto next = std::find_if(run, last, [&](std::size_t index) { return index != *run; });
    if (!text.empty()) text += '.';
    text += std::to_string(*run);
    if (next - run > 1) text += '*' + std::to_string(next - run);
    run = next;
  }
  return text.empty() ? std::string(only_first_options) : text;
}

std::optional<plan> plan_of(std::string_view text) {
  plan made;
  if (text == only_first_options) return made;
  for (;;) {
    const auto end = text.find('.');
    const auto run = text.substr(0, end);
    const auto star = run.find('*');
    const auto index = number_of(run.substr(0, star));
    const auto times = star == run.npos ? std::optional<std::size_t>(1) : number_of(run.substr(star + 1));
    if (!index || !times || *times > longest_run) return std::nullopt;
    made.insert(made.end(), *times, *index);
    if (end == text.npos) return made;
    text.remove_prefix(end + 1);
  }
}

}  // namespace holdfast::sim::explore
