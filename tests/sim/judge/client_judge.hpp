// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promises about a client as a whole:
///   - Its observer has seen each hold begin and end once when the client is closed.
///   - No fence of another client ends a connection that it still uses: numbers begin anew with a restart.
///   - At the end its engine is idle and has no timer.
class client_judge {
 public:
  explicit client_judge(evidence& known) : known_(known) {}

  void granted(const sim_client& client, const detail::hold& hold);
  /// It closes in peace if its releases can be answered: it is undisturbed, and the grace is long enough.
  void begin_close(const sim_client& client, nanoseconds grace);
  void closed(const sim_client& client);
  void connection_killed(const sim_client& victim);
  void look_at_the_end();

 private:
  evidence& known_;
};

}  // namespace holdfast::sim
