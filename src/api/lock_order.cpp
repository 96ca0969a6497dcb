// SPDX-License-Identifier: BSL-1.0
#include "api/lock_order.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <holdfast/error.hpp>

#include "sync/command/environment.hpp"

namespace holdfast::detail {

bool same_client(const wanted_lock& left, const wanted_lock& right) {
  return !left.home.owner_before(right.home) && !right.home.owner_before(left.home);
}

bool same_lock(const wanted_lock& left, const wanted_lock& right) {
  if (place_of(left.keys) != place_of(right.keys)) return false;
  const auto &one = left.keys->of.name, &other = right.keys->of.name;
  if (one != other)
    throw error(errc::invalid_config,
                about(left.keys->name, "wanted as " + std::string(one) + " and as " + std::string(other)));
  return true;
}

std::vector<lock_group> groups_of(std::vector<placed_lock> all) {
  std::sort(all.begin(), all.end(), [](const placed_lock& left, const placed_lock& right) {
    return std::tuple_cat(std::tie(left.run, left.slot), place_of(left.lock->keys), std::tie(left.place)) <
           std::tuple_cat(std::tie(right.run, right.slot), place_of(right.lock->keys), std::tie(right.place));
  });
  const auto again = std::unique(all.begin(), all.end(), [](const placed_lock& left, const placed_lock& right) {
    if (left.run != right.run || left.slot != right.slot || !same_lock(*left.lock, *right.lock)) return false;
    if (left.run.empty())
      throw error(errc::invalid_config,
                  about(left.lock->keys->name, "wanted of two clients whose servers cannot be told apart"));
    return true;
  });
  all.erase(again, all.end());
  std::vector<lock_group> groups;
  for (const auto& placed : all) {
    const auto& keys = placed.lock->keys;
    const bool next = groups.empty() || !same_client({groups.back().home, {}}, *placed.lock) ||
                      groups.back().slot != placed.slot || &groups.back().keys.front()->of != &keys->of ||
                      !keys->of.acquire_all.make;
    if (next) groups.push_back({placed.lock->home, placed.run, placed.slot, {}, {}});
    groups.back().keys.push_back(keys);
    groups.back().places.push_back(placed.place);
  }
  return groups;
}

}  // namespace holdfast::detail
