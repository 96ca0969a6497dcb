// SPDX-License-Identifier: BSL-1.0
#include "cli/web/event_queue.hpp"

#include "support/catch.hpp"

using holdfast::cli::event_queue;
using holdfast::cli::event_text;

namespace {

event_queue::text text_of(std::size_t bytes) { return std::make_shared<const std::string>(bytes, 'x'); }

}  // namespace

TEST_CASE("events come out in their order") {
  event_queue queue;
  const auto first = text_of(1), second = text_of(2);
  queue.push(first);
  queue.push(second);
  CHECK(queue.pop() == first);
  CHECK(queue.pop() == second);
  CHECK(queue.pop() == nullptr);
  CHECK(queue.is_empty());
}

TEST_CASE("a reader that is behind reads everything again") {
  for (const auto size : {event_queue::most_bytes / event_queue::most_events / 2, event_queue::most_bytes / 8}) {
    INFO(size);
    event_queue queue;
    for (std::size_t i = 0; i < 10 * event_queue::most_events + 3; ++i) queue.push(text_of(size));
    std::size_t bytes = 0, resyncs = 0;
    while (const auto event = queue.pop()) {
      bytes += event->size();
      resyncs += *event == event_text("resync", "{}") ? 1 : 0;
    }
    CHECK(resyncs == 1);
    CHECK(bytes <= event_queue::most_bytes);
  }
}

TEST_CASE("one event may have any length, for a reader that is not behind") {
  event_queue queue;
  const auto all = text_of(event_queue::most_bytes + 1);
  queue.push(all);
  CHECK(queue.pop() == all);
  queue.push(all);
  queue.push(text_of(1));
  CHECK(*queue.pop() == "event: resync\ndata: {}\n\n");
  CHECK(queue.is_empty());
}
