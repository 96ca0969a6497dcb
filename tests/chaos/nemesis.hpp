// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "chaos/faults.hpp"
#include "chaos/history.hpp"
#include "chaos/stage.hpp"

namespace holdfast::chaos {

/// Does to a stage what its seed says, and writes it down. One thread.
class nemesis {
 public:
  nemesis(stage& on, history& log, std::uint64_t seed, bool breaks_locks);

  /// One storm; returns when all of it is over. Nothing is disturbed then.
  void rage();
  /// How long to leave the stage alone afterwards.
  milliseconds calm();

 private:
  void begin(const fault& f);
  void end(const fault& f);
  void begin_on_link(const fault& f, test::proxy& link);
  void begin_on_server(const fault& f);
  void foreign_release();
  void false_messages();
  void delete_locks();

  stage& stage_;
  history& log_;
  dice dice_;
  deck deck_;
};

}  // namespace holdfast::chaos
