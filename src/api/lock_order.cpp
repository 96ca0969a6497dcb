// SPDX-License-Identifier: BSL-1.0
#include "api/lock_order.hpp"

#include <algorithm>
#include <utility>

#include <holdfast/error.hpp>

#include "sync/command/environment.hpp"

namespace holdfast::detail {

bool same_client(const wanted_lock& a, const wanted_lock& b) {
  return !a.home.owner_before(b.home) && !b.home.owner_before(a.home);
}

bool same_lock(const wanted_lock& a, const wanted_lock& b) {
  if (place_of(a.keys) != place_of(b.keys)) return false;
  if (a.keys->of.fenced() != b.keys->of.fenced())
    throw error(errc::invalid_config, about(a.keys->name, "wanted with a fencing token and without"));
  return true;
}

std::vector<lock_group> groups_of(std::vector<placed_lock> all) {
  std::sort(all.begin(), all.end(), [](const placed_lock& a, const placed_lock& b) {
    return std::tuple_cat(std::tie(a.run, a.slot), place_of(a.what->keys), std::tie(a.place)) <
           std::tuple_cat(std::tie(b.run, b.slot), place_of(b.what->keys), std::tie(b.place));
  });
  const auto again = std::unique(all.begin(), all.end(), [](const placed_lock& a, const placed_lock& b) {
    if (a.run != b.run || a.slot != b.slot || !same_lock(*a.what, *b.what)) return false;
    if (a.run.empty())
      throw error(errc::invalid_config,
                  about(a.what->keys->name, "wanted of two clients whose servers cannot be told apart"));
    return true;
  });
  all.erase(again, all.end());
  std::vector<lock_group> groups;
  for (const auto& p : all) {
    const auto& keys = p.what->keys;
    const bool next = groups.empty() || !same_client({groups.back().home, {}}, *p.what) ||
                      groups.back().slot != p.slot || &groups.back().keys.front()->of != &keys->of;
    if (next) groups.push_back({p.what->home, p.run, p.slot, {}, {}});
    groups.back().keys.push_back(keys);
    groups.back().places.push_back(p.place);
  }
  return groups;
}

}  // namespace holdfast::detail
