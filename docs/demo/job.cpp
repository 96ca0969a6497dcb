// SPDX-License-Identifier: BSL-1.0
#include "job.hpp"

#include <algorithm>

namespace holdfast::demo {

std::vector<std::string> job::arguments() const {
  return {std::string(worker_flag),
          std::to_string(static_cast<int>(what)),
          actor,
          prefix,
          lock,
          std::to_string(ttl.count()),
          std::to_string(tasks),
          std::to_string(rounds),
          std::to_string(drift),
          folder,
          pauses ? "1" : "0",
          fails_over ? "1" : "0"};
}

std::optional<job> job::parse(const std::vector<std::string>& arguments) {
  if (arguments.size() != job{}.arguments().size() || arguments[0] != worker_flag) return std::nullopt;
  job result;
  result.what = static_cast<role>(std::stoi(arguments[1]));
  result.actor = arguments[2];
  result.prefix = arguments[3];
  result.lock = arguments[4];
  result.ttl = milliseconds(std::stoll(arguments[5]));
  result.tasks = std::stoi(arguments[6]);
  result.rounds = std::stoi(arguments[7]);
  result.drift = std::stod(arguments[8]);
  result.folder = arguments[9];
  result.pauses = arguments[10] == "1";
  result.fails_over = arguments[11] == "1";
  return result;
}

std::string news::line() const {
  return std::to_string(at.time_since_epoch().count()) + '\t' + who + '\t' + event + '\t' + (holds ? '+' : '-') + '\t' +
         text + '\n';
}

std::optional<news> news::parse(std::string_view line) {
  std::vector<std::string> fields;
  for (int i = 0; i < 4; ++i) {
    const auto tab = line.find('\t');
    if (tab == line.npos) return std::nullopt;
    fields.emplace_back(line.substr(0, tab));
    line.remove_prefix(tab + 1);
  }
  news result;
  result.at = steady_clock::time_point(steady_clock::duration(std::stoll(fields[0])));
  result.who = fields[1];
  result.event = fields[2];
  result.holds = fields[3] == "+";
  result.text = line;
  return result;
}

}  // namespace holdfast::demo
