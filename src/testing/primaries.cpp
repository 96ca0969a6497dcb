// SPDX-License-Identifier: BSL-1.0
#include <holdfast/testing/primaries.hpp>

#include <stdexcept>
#include <string>
#include <utility>

#include "testing/stage.hpp"

namespace holdfast::testing {
namespace {

std::size_t checked(std::size_t how_many) {
  if (how_many < 3 || how_many > 9 || how_many % 2 == 0)
    throw std::invalid_argument(error_text("a red_lock has 3, 5, 7 or 9 primaries, not " + std::to_string(how_many)));
  return how_many;
}

}  // namespace

primaries::primaries(context where, std::size_t how_many) : world(std::move(where), checked(how_many)) {
  for (auto& machine : stage_->machines()) all_.emplace_back(new server(stage_, machine));
}

primaries::~primaries() { stage_->end(); }

client primaries::make_client(config config) { return make_client(stage_->executor(), std::move(config)); }

client primaries::make_client(asio::any_io_executor executor, config config) {
  return stage_->make_client(executor, std::move(config));
}

}  // namespace holdfast::testing
