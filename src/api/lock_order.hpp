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

/// Pure: the order in which all processes take the locks that one call wants together.
namespace holdfast::detail {

class core;

struct wanted_lock {
  std::weak_ptr<core> home;
  shared_keys keys;
};

/// One of those of a call, and what its place depends on. Where there is one server the run, which tells it from
/// others, however it is reached. Where keys move between servers the slot, which stays as it is.
struct placed_lock {
  const wanted_lock* lock;
  std::size_t place;   // in the call
  std::string run;     // of its server; empty: it does not say, or there is one client, or keys move
  key_group slot = 0;  // topology::group_of()
};

/// Neighbours in the order, of one client, one kind and one slot: taken by one script.
struct lock_group {
  std::weak_ptr<core> home;
  std::string run;
  key_group slot = 0;
  std::vector<shared_keys> keys;
  std::vector<std::size_t> places;  // in the call
};

bool same_client(const wanted_lock& left, const wanted_lock& right);
/// The order of the locks of one server, and of one slot. Kinds of one layout are one lock to each other, so that it is
/// not by kind.
inline auto place_of(const shared_keys& keys) { return std::tie(keys->of.layout.channel, keys->lock); }
/// Two locks of one server. Throws error(invalid_config) where one is wanted with a fencing token and one without.
bool same_lock(const wanted_lock& left, const wanted_lock& right);
/// All of them in the order, each once. Throws error(invalid_config) where nobody can tell whether two are the same.
std::vector<lock_group> groups_of(std::vector<placed_lock> all);

}  // namespace holdfast::detail
