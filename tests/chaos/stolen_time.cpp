// SPDX-License-Identifier: BSL-1.0
#include "chaos/stolen_time.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>

namespace holdfast::chaos {
namespace {

using std::chrono::nanoseconds;

constexpr auto period = std::chrono::milliseconds(10);  // a tick: /proc/stat counts no less
constexpr int columns_before = 7;                       // user nice system idle iowait irq softirq, then steal

std::optional<nanoseconds> read_stolen_time() {
  std::ifstream file("/proc/stat");
  std::string all_processors;
  std::getline(file, all_processors);
  return stolen_time(all_processors);
}

}  // namespace

std::optional<nanoseconds> stolen_time(std::string_view proc_stat) {
  std::istringstream words{std::string(proc_stat)};
  std::string label;
  if (!(words >> label) || label != "cpu") return {};
  std::int64_t ticks = 0;
  for (int column = 0; column <= columns_before; ++column)
    if (!(words >> ticks)) return {};
  return ticks * nanoseconds(std::chrono::seconds(1)) / ::sysconf(_SC_CLK_TCK);
}

stolen_time_watch::stolen_time_watch(const std::string& history_path)
    : log_(history_path), thread_([this](const std::stop_token& end) { watch(end); }) {}

void stolen_time_watch::watch(const std::stop_token& end) {
  auto before = read_stolen_time();
  auto since = now();
  while (before && !end.stop_requested()) {
    std::this_thread::sleep_for(period);
    const auto stolen = read_stolen_time();
    const auto until = now();
    if (stolen && *stolen > *before) log_.write("stolen").add("since", since).add("time", (*stolen - *before).count());
    before = stolen;
    since = until;
  }
}

}  // namespace holdfast::chaos
