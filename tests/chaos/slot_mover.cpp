// SPDX-License-Identifier: BSL-1.0
#include "chaos/slot_mover.hpp"

#include "support/raw_client.hpp"

namespace holdfast::chaos {

// The slot of any key that is there: of a lock, or of the counter of a lock's tokens.
std::optional<slot_mover::move> slot_mover::next() {
  const auto primaries = servers_.primaries();
  const auto from = dice_.below(primaries.size());
  const auto keys = test::raw_client(servers_.node(primaries[from]))("KEYS", "*").strings();
  if (keys.empty()) return std::nullopt;
  const auto to = (from + 1 + dice_.below(primaries.size() - 1)) % primaries.size();
  return move{servers_.slot_of(keys[dice_.below(keys.size())]), primaries[from], primaries[to]};
}

bool slot_mover::step() {
  if (!under_way_) {
    if (auto m = next()) {
      servers_.begin_move(m->slot, m->to);
      under_way_ = m;
    }
    return under_way_.has_value();
  }
  auto& it = *under_way_;
  if (dice_.per_mille(200)) return true;  // a tool has its pauses
  if (!it.empty) {
    it.empty = !servers_.move_some_keys(it.slot, it.to, 1);
    return true;
  }
  servers_.end_move(it.slot, it.to);
  log_.write("moved").add("slot", it.slot).add("from", it.from).add("to", it.to);
  under_way_.reset();
  return true;
}

void slot_mover::finish() {
  while (under_way_) step();
}

}  // namespace holdfast::chaos
