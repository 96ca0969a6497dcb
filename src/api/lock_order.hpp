// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "protocol/keys.hpp"
#include "protocol/kind.hpp"
#include "topology/topology.hpp"

/// Pure: the order in which all processes take the locks of one joint call.
///
/// Decision: a group is of one kind, one client and one slot, and a coroutine takes one group after the other. It keeps
/// the leases in its frame, so that every way out gives them back, and nothing of it is on the strand. A kind without a
/// script for several locks has groups of one lock, which its own lock() takes.
///
/// Decision: the order is (run_id, slot, layout, key). The kind is not part of it, because a plain and a fenced lock of
/// one name exclude each other. By kind, {plain a, plain b} and {fenced a, plain b} would differ. The layout before the
/// key keeps groups large. The run and not the address, because two URLs may lead to one server.
///
/// A server without a run_id has the empty run. Two of these cannot be distinguished, so a name at both is refused. A
/// cluster has no run either. The run of a key's primary changes with each move and each failover, so two processes
/// would order by different maps. The slot orders its keys, and never changes. So one name by two clients of clusters
/// is refused.
///
/// Before each group, and whenever Redis says busy, the run of its server is compared with the order's. If it has
/// changed, everything is given back and the order is made anew. A lock that is taken by its own lock() has no such
/// comparison: the next group compares the runs of all. A restart of another server during the wait for a
/// later group is not noticed before that wait ends. Two calls on both sides of it can wait for each other until one
/// gives up.
namespace holdfast::detail {

class core;

struct wanted_lock {
  std::weak_ptr<core> home;
  shared_keys keys;
};

/// One lock of a call with the keys of its order: the run of its server, or the slot where keys move between servers.
struct placed_lock {
  const wanted_lock* lock;
  std::size_t place;   // in the call
  std::string run;     // of its server; empty: unknown, or there is one client, or keys move
  key_group slot = 0;  // topology::group_of()
};

/// Neighbours in the order, of one client, one kind and one slot. One script takes them. A kind without such a script
/// has groups of one.
struct lock_group {
  std::weak_ptr<core> home;
  std::string run;
  key_group slot = 0;
  std::vector<shared_keys> keys;
  std::vector<std::size_t> places;  // in the call
};

bool same_client(const wanted_lock& left, const wanted_lock& right);
/// The order of the locks of one server and one slot.
inline auto place_of(const shared_keys& keys) { return std::tie(keys->of.layout.channel, keys->lock); }
/// Two locks of one server. Throws error(invalid_config) if one lock is wanted as two kinds: with a fencing token and
/// without, or to read and to write.
bool same_lock(const wanted_lock& left, const wanted_lock& right);
/// The groups of all locks in the order, each lock once. Throws error(invalid_config) if two locks cannot be
/// distinguished.
std::vector<lock_group> groups_of(std::vector<placed_lock> all);

}  // namespace holdfast::detail
