// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/last_holders.hpp"

#include <utility>

#include "base/assert.hpp"

namespace holdfast::detail {

void last_holders::waits(owner_id owner, const std::string& name) {
  const auto found = holders_.find(owner);
  HOLDFAST_ASSERT(found != holders_.end());
  found->second.lines.insert(name);
}

std::set<std::string> last_holders::remove(owner_id owner) {
  const auto found = holders_.find(owner);
  HOLDFAST_ASSERT(found != holders_.end() && found->second.holds > 0);
  // An owner may hold several names. Its waits end with the last of them, because only then may it lock no more.
  if (--found->second.holds > 0) return {};
  auto lines = std::move(found->second.lines);
  holders_.erase(found);
  return lines;
}

}  // namespace holdfast::detail
