// SPDX-License-Identifier: BSL-1.0
#include "chaos/cpu_steal.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>

namespace holdfast::chaos {
namespace {

using std::chrono::nanoseconds;

constexpr auto period = std::chrono::milliseconds(10);  // a tick: /proc/stat counts no less
constexpr int steal = 8;  // after the name: user nice system idle iowait irq softirq steal

std::vector<nanoseconds> read_steal_times() {
  std::ifstream file("/proc/stat");
  std::ostringstream text;
  text << file.rdbuf();
  return cpu_steal_times(text.view());
}

}  // namespace

std::vector<nanoseconds> cpu_steal_times(std::string_view proc_stat) {
  std::vector<nanoseconds> all;
  std::istringstream lines{std::string(proc_stat)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (!name.starts_with("cpu") || name == "cpu") continue;  // "cpu" is all together
    std::int64_t ticks = 0;
    for (int column = 0; column < steal; ++column) words >> ticks;
    if (!words) return {};
    all.push_back(ticks * nanoseconds(std::chrono::seconds(1)) / ::sysconf(_SC_CLK_TCK));
  }
  return all;
}

cpu_steal_watch::cpu_steal_watch(const std::string& history_path)
    : log_(history_path), thread_([this](const std::stop_token& end) { watch(end); }) {}

void cpu_steal_watch::watch(const std::stop_token& end) {
  auto before = read_steal_times();
  while (!before.empty() && !end.stop_requested()) {
    std::this_thread::sleep_for(period);
    const auto stolen = read_steal_times();
    if (stolen.size() == before.size())
      for (std::size_t i = 0; i < stolen.size(); ++i)
        if (stolen[i] > before[i]) log_.write("stolen").add("cpu", i).add("time", (stolen[i] - before[i]).count());
    before = stolen;
  }
}

}  // namespace holdfast::chaos
