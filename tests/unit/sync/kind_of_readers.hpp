// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <chrono>

#include "protocol/kind.hpp"

namespace holdfast::test {

/// Readers and writers of one name, with the scripts of a plain lock. The test plays a server that knows both: it
/// answers {1, writers, peers} for a grant, and {0, ttl} for a lock that is taken.
struct kinds_of_readers {
  kinds_of_readers() {
    for (auto* row : {&writer, &reader})
      row->acquire.read = [](const redis::outcome& outcome) -> detail::answer<detail::acquire_answer> {
        using answer = detail::acquire_answer;
        if (outcome.error) return {redis::failure_of(outcome), {}};
        const auto number = [&](std::size_t index) { return outcome.reply.elements.at(index).integer; };
        if (number(0) == 1) return {{}, {.open = number(1) == 0 && number(2) == 0}};
        return {{}, {.type = answer::kind::busy, .holder_ttl = std::chrono::milliseconds(number(1))}};
      };
    writer.name = "writer";
    reader.name = "reader";
    reader.bars = reader.passes = false;
    reader.joins = std::chrono::milliseconds(5);
    reader.set_hold_count = {};
  }

  detail::kind writer = detail::plain_lock, reader = detail::plain_lock;
};

inline const kinds_of_readers& rows_of_readers() {
  static const kinds_of_readers rows;
  return rows;
}

}  // namespace holdfast::test
