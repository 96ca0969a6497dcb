// SPDX-License-Identifier: BSL-1.0
// A small world of the simulator whose order a search decides. Clients are connected already when the search begins.
// The options are:
//
// - what is first on a connection, in one direction, arrives; the time does not change;
// - a caller calls the next verb of its role, or cancels the call that waits;
// - nothing is on its way: the time goes on to the next timer, which is a delay where a caller could act;
// - a fault strikes, or ends.
//
// When the callers are done, or the search follows the path no further, all that is left happens in the order of time.
// Then each waiter must have been let in, and nothing may be left.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <vector>

#include "sim/explore/caller.hpp"
#include "sim/explore/search.hpp"
#include "sim/explore/strikes.hpp"

namespace holdfast::sim::explore {

struct setting {
  std::string_view name, about{};
  detail::deployment servers = detail::deployment::one_server;
  const detail::kind* of = &detail::plain_lock;
  std::uint32_t permits = 1;  // of a semaphore
  std::size_t clients = 2;
  std::vector<role> callers{};
  bool symmetric = false;  // all callers are alike: the first one begins first
  std::uint32_t faults = no_fault;
  bool turns = false, push = false;
  bool fresh = false;  // the connections were used just now: no command waits for a PING
  search_bounds within{.delays = 1};
};

/// Lives one path of the world. `out` gets what happens, to read (null: nothing does).
path_end live(const setting& of, chooser& decides, std::ostream* out = nullptr);

}  // namespace holdfast::sim::explore
