// SPDX-License-Identifier: BSL-1.0
#include "cli/web/event_log.hpp"

#include <boost/json/serialize.hpp>

#include <utility>

namespace holdfast::cli {

std::string event_log::add(boost::json::object event, instant now) {
  event["number"] = ++number_;
  auto text = boost::json::serialize(event);
  entries_.push_back({text, now});
  if (entries_.size() > most_events) entries_.pop_front();
  return text;
}

std::string event_log::snapshot(instant now) const {
  std::string all = "[";
  for (const auto& entry : entries_) {
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - entry.at);
    all.append(all.size() > 1 ? "," : "").append("{\"age_ms\":").append(std::to_string(age.count()));
    all.append(",\"event\":").append(entry.text) += '}';
  }
  return all += ']';
}

}  // namespace holdfast::cli
