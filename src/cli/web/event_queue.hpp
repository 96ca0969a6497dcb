// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// The bytes that one reader of /api/events has still to get.
///
/// Decision: readers share the text of an event. A reader that is behind by more than a limit loses all of them, and
/// gets the event `resync` instead: it reads /api/locks again. So a reader that never reads costs a constant.
class event_queue {
 public:
  using text = std::shared_ptr<const std::string>;
  static constexpr std::size_t most_bytes = 256 * 1024, most_events = 256;

  /// One or more whole events.
  void push(const text& event);
  /// The next text; null: there is none.
  text pop();
  bool is_empty() const noexcept { return events_.empty(); }

 private:
  std::deque<text> events_;
  std::size_t bytes_ = 0;
};

/// An event of Server-Sent Events. `data` is one line.
std::string event_text(std::string_view event, std::string_view data);

}  // namespace holdfast::cli
