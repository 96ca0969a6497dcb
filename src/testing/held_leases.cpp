// SPDX-License-Identifier: BSL-1.0
#include "testing/held_leases.hpp"

#include <chrono>
#include <vector>

#include "base/escape.hpp"

namespace holdfast::testing {

void held_leases::hear(const event& event, time_point now) {
  if (event.kind == event_kind::acquired)
    by_id_.insert_or_assign(std::string(event.id), grant{std::string(event.name), now});
  else if (ends_hold(event.kind))
    by_id_.erase(std::string(event.id));
}

std::string held_leases::text(time_point now) const {
  constexpr std::size_t longest_name = 80;
  if (by_id_.empty()) return {};
  std::string all;
  for (const auto& [id, grant] : by_id_) {
    const auto held = std::chrono::duration_cast<std::chrono::milliseconds>(now - grant.since);
    all += (all.empty() ? "" : ", ") + detail::in_quotes(grant.name, longest_name) + " by lease " + id + " for " +
           std::to_string(held.count()) + " ms";
  }
  return std::to_string(by_id_.size()) + (by_id_.size() == 1 ? " lock is" : " locks are") + " still held: " + all;
}

}  // namespace holdfast::testing
