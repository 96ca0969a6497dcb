// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <vector>

#include "sim/sim_client.hpp"

namespace holdfast::sim {

/// The end of all connections between a client and the only server, with what is on its way.
class wire_trouble {
 public:
  explicit wire_trouble(sim_client& client) : wires_(client.ways().front().wires()) {}

  /// Replies and messages are lost, and the commands have run.
  void lose_replies() const {
    for (const auto& each : wires_) {
      each->end_at_client();
      each->end_at_server({});
    }
  }
  void lose_requests() const {
    for (const auto& each : wires_) each->lose_up();
    lose_replies();
  }
  /// Requests are late: a second copy may overtake them.
  void delay_requests(time_point until) const {
    for (const auto& each : wires_) each->hold_up_until(until);
    lose_replies();
  }

 private:
  const std::vector<std::shared_ptr<wire>> wires_;
};

}  // namespace holdfast::sim
