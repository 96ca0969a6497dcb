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
  nemesis(stage& on, history& log, std::uint64_t seed, campaign c);

  /// One storm; returns when all of it is over. Nothing is disturbed then.
  void rage();
  /// How long to leave the stage alone afterwards.
  milliseconds calm();

 private:
  void begin(const fault& f);
  void end(const fault& f);
  void begin_on_link(const fault& f, test::proxy& link);
  void begin_on_server(const fault& f);
  void begin_on_primaries(const fault& f);
  void begin_on(test::raw_client server, fault_kind k);
  void foreign_release(test::raw_client& server);

  stage& stage_;
  history& log_;
  const campaign campaign_;
  dice dice_;
  deck deck_, shards_;
};

}  // namespace holdfast::chaos
