// SPDX-License-Identifier: BSL-1.0
#include "cli/web/event_queue.hpp"

#include <utility>

namespace holdfast::cli {

void event_queue::push(const text& event) {
  static const auto resync = std::make_shared<const std::string>(event_text("resync", "{}"));
  const bool is_long = bytes_ > 0 && bytes_ + event->size() > most_bytes;  // one event may have any length
  const bool is_behind = is_long || events_.size() >= most_events;
  if (is_behind) events_.clear();
  if (is_behind) bytes_ = 0;
  const auto& kept = is_behind ? resync : event;
  bytes_ += kept->size();
  events_.push_back(kept);
}

event_queue::text event_queue::pop() {
  if (events_.empty()) return nullptr;
  auto event = std::move(events_.front());
  events_.pop_front();
  bytes_ -= event->size();
  return event;
}

std::string event_text(std::string_view event, std::string_view data) {
  std::string text("event: ");
  return text.append(event).append("\ndata: ").append(data).append("\n\n");
}

}  // namespace holdfast::cli
