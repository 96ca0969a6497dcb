// SPDX-License-Identifier: BSL-1.0
#include <holdfast/testing/link.hpp>

#include <stdexcept>

#include "testing/stage.hpp"

namespace holdfast::testing {

void link::drop_next_reply() { way_->loses_next_reply = true; }

void link::cut() {
  if (stage_->ended()) return;
  way_->unreachable = true;
  for (const auto& wire : way_->wires()) {
    wire->lose_up();
    wire->end();
  }
}

void link::fall_silent() {
  if (stage_->ended()) return;
  way_->blocked = true;
  for (const auto& wire : way_->wires()) {
    wire->lose_up();
    wire->lose_down();
  }
}

void link::restore() {
  way_->unreachable = false;
  way_->blocked = false;
}

void link::set_latency(std::chrono::nanoseconds latency) {
  if (latency < latency.zero() || latency > std::chrono::hours(1))
    throw std::invalid_argument(error_text("a latency is 0 to 1 h"));
  way_->usual.latency = way_->now.latency = latency;
}

}  // namespace holdfast::testing
