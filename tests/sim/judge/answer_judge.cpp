// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/answer_judge.hpp"

namespace holdfast::sim {

void answer_judge::answered(std::uint64_t call) {
  if (!known_.calls.end(call)) known_.found.accuse("call " + std::to_string(call), "was answered twice");
}

void answer_judge::look_at_the_end() {
  if (known_.calls.size() != 0) known_.found.accuse("somebody", "was never answered:" + unanswered());
}

std::string answer_judge::unanswered() const {
  std::string all;
  for (const auto& [id, call] : known_.calls.all()) all += "\n  " + call.client->name() + ": " + call.text;
  return all;
}

}  // namespace holdfast::sim
