// SPDX-License-Identifier: BSL-1.0
#include "sim/explore/abort_report.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace holdfast::sim::explore {
namespace {

/// The world that this thread lives; null: none.
thread_local const setting* lived = nullptr;
/// The options that the path in it has taken.
thread_local plan taken;

class recorder final : public chooser {
 public:
  explicit recorder(chooser& decides) : decides_(decides) {}

  std::optional<std::size_t> choose(const std::vector<option>& options, std::optional<std::uint64_t> state) override {
    const auto index = decides_.choose(options, state);
    if (index) taken.push_back(*index);
    return index;
  }

 private:
  chooser& decides_;
};

void write(std::string_view text) {
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, text.data(), text.size());
}

// abort() raises the signal in the thread that calls it, perhaps within malloc. So nothing is allocated here, and the
// plan has no runs.
void report(int) {
  if (!lived) return;
  write("  VIOLATION the process ended itself\n  replay: holdfast_explore --replay ");
  write(lived->name);
  const auto last = std::find_if(taken.rbegin(), taken.rend(), [](std::size_t index) { return index != 0; }).base();
  if (last == taken.begin()) write(" -");
  for (auto each = taken.begin(); each != last; ++each) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, *each).ptr;
    write(each == taken.begin() ? " " : ".");
    write({digits, static_cast<std::size_t>(end - digits)});
  }
  write("\n");
}

}  // namespace

void report_aborts() { std::signal(SIGABRT, report); }

path_end live_reported(const setting& of, chooser& decides) {
  lived = &of;
  taken.clear();
  recorder records(decides);
  auto end = live(of, records);
  lived = nullptr;
  return end;
}

}  // namespace holdfast::sim::explore
