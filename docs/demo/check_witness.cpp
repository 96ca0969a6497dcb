// SPDX-License-Identifier: BSL-1.0
#include "check_witness.hpp"

#include <algorithm>
#include <map>

namespace holdfast::demo {
namespace {

void check_numbers(stage& on, const std::vector<witness::entry>& lines, std::size_t total) {
  auto& judge = on.judge;
  judge.check(lines.size() == total, counted(total, "line") + " in the witness file", std::to_string(lines.size()));
  judge.check(!lines.empty() && lines.back().number == static_cast<long long>(total),
              "the last number to be " + std::to_string(total),
              lines.empty() ? "an empty file" : std::to_string(lines.back().number) + ": increments were lost");
  std::map<long long, std::string> writers;
  std::size_t twice = 0;
  std::string first;
  for (const auto& line : lines) {
    const auto [known, fresh] = writers.emplace(line.number, line.who);
    if (!fresh && ++twice == 1) first = std::to_string(line.number) + ", by " + known->second + " and by " + line.who;
  }
  judge.check(twice == 0, "every number written once",
              counted(twice, "number") + " written again, the first: " + first);
}

void check_one_at_a_time(stage& on, std::vector<witness::entry> lines) {
  std::sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.entered < b.entered; });
  std::size_t together = 0;
  std::string first;
  const witness::entry* last_out = nullptr;
  for (const auto& line : lines) {
    if (last_out != nullptr && line.entered < last_out->left && ++together == 1)
      first = line.who + " came in at " + on.shown.stamp(line.entered) + ", " + last_out->who + " left at " +
              on.shown.stamp(last_out->left);
    if (last_out == nullptr || line.left > last_out->left) last_out = &line;
  }
  on.judge.check(together == 0, "one task inside at a time", counted(together, "overlap") + ", the first: " + first);
}

}  // namespace

void check_witness(stage& on, const std::vector<witness::entry>& lines, int tasks, int rounds) {
  check_numbers(on, lines, static_cast<std::size_t>(tasks) * static_cast<std::size_t>(rounds));
  check_one_at_a_time(on, lines);
  std::map<std::string, int> entries;
  for (const auto& line : lines) ++entries[line.who];
  for (const auto& [who, times] : entries)
    on.judge.check(times == rounds, who + " inside " + counted(static_cast<std::size_t>(rounds), "time"),
                   std::to_string(times));
}

}  // namespace holdfast::demo
