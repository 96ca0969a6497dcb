// SPDX-License-Identifier: BSL-1.0
#include "sim/coverage.hpp"

#include <algorithm>
#include <iomanip>
#include <iterator>
#include <ostream>

namespace holdfast::sim {
namespace {

/// All that there is to meet, in order.
constexpr std::string_view expected[] = {
    "close: nothing in the way",
    "event: acquire_cancelled",
    "event: acquire_failed",
    "event: acquired",
    "event: closed",
    "event: connected",
    "event: fencing_degraded",
    "event: lost",
    "event: not_acquired",
    "event: outage",
    "event: reentered",
    "event: release_failed",
    "event: release_given_up",
    "event: released",
    "event: released_late",
    "event: renewal_failed",
    "event: restored",
    "event: suspended",
    "event: waiting_for_ourselves",
    "fault: CLIENT KILL refused",
    "fault: DEL of a lock",
    "fault: FLUSHALL",
    "fault: SCRIPT FLUSH",
    "fault: TTL taken away",
    "fault: busy with a script",
    "fault: client closed",
    "fault: client pause",
    "fault: connections reset, replies lost",
    "fault: connections reset, requests late",
    "fault: connections reset, requests lost",
    "fault: demoted to a replica",
    "fault: disk failed",
    "fault: half-open, replies lost",
    "fault: half-open, requests lost",
    "fault: high latency",
    "fault: hold without TTL",
    "fault: key of another type",
    "fault: loading",
    "fault: messages late",
    "fault: messages lost",
    "fault: out of memory",
    "fault: partition",
    "fault: restart with loss",
    "fault: restart without loss",
    "fault: server clock back",
    "fault: server clock forward",
    "fault: server pause",
    "fault: spoofed message",
    "fault: token garbled",
    "fault: too few replicas",
    "force_unlock: answered",
    "force_unlock: closed",
    "force_unlock: corrupt_lock",
    "force_unlock: not_primary",
    "force_unlock: server_refused",
    "force_unlock: unconfirmed",
    "force_unlock: unreachable",
    "lease ended: closed",
    "lease ended: corrupt_lock",
    "lease ended: lost",
    "lease ended: not_held",
    "lock: already_held",
    "lock: beside another of its owner",
    "lock: busy",
    "lock: cancelled",
    "lock: closed",
    "lock: corrupt_lock",
    "lock: granted",
    "lock: lost",
    "lock: not_primary",
    "lock: re-entered",
    "lock: server_refused",
    "lock: unreachable",
    "overlap explained by a fault outside the guarantee",
    "query: answered",
    "query: closed",
    "query: corrupt_lock",
    "query: not_primary",
    "query: server_refused",
    "query: unreachable",
    "refused: BUSY",
    "refused: LOADING",
    "refused: MISCONF",
    "refused: NOPERM",
    "refused: NOREPLICAS",
    "refused: OOM",
    "refused: READONLY",
    "renew: closed",
    "renew: corrupt_lock",
    "renew: lost",
    "renew: not_held",
    "renew: not_primary",
    "renew: renewed",
    "renew: server_refused",
    "renew: unreachable",
    "script: acquire -> MISCONF",
    "script: acquire -> NOREPLICAS",
    "script: acquire -> NOSCRIPT",
    "script: acquire -> OOM",
    "script: acquire -> READONLY",
    "script: acquire -> WRONGTYPE",
    "script: acquire -> acquired",
    "script: acquire -> busy",
    "script: acquire -> busy without TTL",
    "script: acquire_fenced -> HOLDFAST",
    "script: acquire_fenced -> MISCONF",
    "script: acquire_fenced -> NOREPLICAS",
    "script: acquire_fenced -> NOSCRIPT",
    "script: acquire_fenced -> OOM",
    "script: acquire_fenced -> READONLY",
    "script: acquire_fenced -> WRONGTYPE",
    "script: acquire_fenced -> acquired",
    "script: acquire_fenced -> busy",
    "script: acquire_fenced -> busy without TTL",
    "script: force_release -> 0",
    "script: force_release -> 1",
    "script: force_release -> HOLDFAST",
    "script: force_release -> MISCONF",
    "script: force_release -> NOREPLICAS",
    "script: force_release -> NOSCRIPT",
    "script: force_release -> READONLY",
    "script: force_release -> WRONGTYPE",
    "script: reenter -> 0",
    "script: reenter -> 1",
    "script: reenter -> MISCONF",
    "script: reenter -> NOREPLICAS",
    "script: reenter -> NOSCRIPT",
    "script: reenter -> READONLY",
    "script: reenter -> WRONGTYPE",
    "script: release -> MISCONF",
    "script: release -> NOREPLICAS",
    "script: release -> NOSCRIPT",
    "script: release -> READONLY",
    "script: release -> WRONGTYPE",
    "script: release -> freed",
    "script: release -> not yours",
    "script: release -> still held",
    "script: renew -> MISCONF",
    "script: renew -> NOREPLICAS",
    "script: renew -> NOSCRIPT",
    "script: renew -> READONLY",
    "script: renew -> confirmed",
    "script: renew -> not yours",
    "script: simple_acquire -> MISCONF",
    "script: simple_acquire -> NOREPLICAS",
    "script: simple_acquire -> NOSCRIPT",
    "script: simple_acquire -> OOM",
    "script: simple_acquire -> READONLY",
    "script: simple_acquire -> WRONGTYPE",
    "script: simple_acquire -> acquired",
    "script: simple_acquire -> busy",
    "script: simple_acquire -> busy without TTL",
    "script: simple_force_release -> 0",
    "script: simple_force_release -> 1",
    "script: simple_force_release -> HOLDFAST",
    "script: simple_force_release -> MISCONF",
    "script: simple_force_release -> NOREPLICAS",
    "script: simple_force_release -> NOSCRIPT",
    "script: simple_force_release -> READONLY",
    "script: simple_force_release -> WRONGTYPE",
    "script: simple_release -> MISCONF",
    "script: simple_release -> NOREPLICAS",
    "script: simple_release -> NOSCRIPT",
    "script: simple_release -> READONLY",
    "script: simple_release -> WRONGTYPE",
    "script: simple_release -> freed",
    "script: simple_release -> not yours",
    "script: simple_renew -> MISCONF",
    "script: simple_renew -> NOREPLICAS",
    "script: simple_renew -> NOSCRIPT",
    "script: simple_renew -> READONLY",
    "script: simple_renew -> confirmed",
    "script: simple_renew -> not yours",
    "unlock: closed",
    "unlock: corrupt_lock",
    "unlock: lost",
    "unlock: not_held",
    "unlock: not_primary",
    "unlock: released",
    "unlock: unconfirmed",
};

}  // namespace

std::uint64_t& coverage::count_of(std::string_view what) {
  const auto found = counts_.find(what);
  return found != counts_.end() ? found->second : counts_.emplace(what, 0).first->second;
}

void coverage::add(const coverage& other) {
  for (const auto& [what, times] : other.counts_) count_of(what) += times;
}

std::string coverage::missing() const {
  std::string all;
  for (const auto what : expected)
    if (!counts_.contains(what)) (all += all.empty() ? "" : ", ") += what;
  return all;
}

std::string coverage::unlisted() const {
  std::string all;
  for (const auto& [what, times] : counts_)
    if (!std::binary_search(std::begin(expected), std::end(expected), what)) (all += all.empty() ? "" : ", ") += what;
  return all;
}

void coverage::print(std::ostream& out) const {
  for (const auto& [what, times] : counts_) out << std::setw(12) << times << "  " << what << '\n';
}

}  // namespace holdfast::sim
