// SPDX-License-Identifier: BSL-1.0
#include "sim/coverage.hpp"

#include <iomanip>
#include <ostream>

namespace holdfast::sim {
namespace {

constexpr std::string_view expected[] = {
    "fault: connections reset, requests lost",
    "fault: connections reset, replies lost",
    "fault: connections reset, requests late",
    "fault: half-open, requests lost",
    "fault: half-open, replies lost",
    "fault: partition",
    "fault: high latency",
    "fault: messages lost",
    "fault: messages late",
    "fault: spoofed message",
    "fault: server pause",
    "fault: restart with loss",
    "fault: restart without loss",
    "fault: SCRIPT FLUSH",
    "fault: server clock forward",
    "fault: server clock back",
    "fault: client pause",
    "fault: client closed",
    "fault: FLUSHALL",
    "fault: DEL of a lock",
    "fault: key of another type",
    "fault: hold without TTL",
    "fault: TTL taken away",
    "fault: token garbled",
    "fault: out of memory",
    "fault: disk failed",
    "fault: loading",
    "fault: CLIENT KILL refused",
    "script: acquire -> acquired",
    "script: acquire -> busy",
    "script: acquire -> busy without TTL",
    "script: acquire -> WRONGTYPE",
    "script: acquire -> OOM",
    "script: acquire -> MISCONF",
    "script: acquire -> NOSCRIPT",
    "script: acquire_fenced -> acquired",
    "script: acquire_fenced -> busy",
    "script: acquire_fenced -> NOSCRIPT",
    "script: acquire_fenced -> WRONGTYPE",
    "script: acquire_fenced -> HOLDFAST",
    "script: reenter -> 1",
    "script: reenter -> 0",
    "script: renew -> confirmed",
    "script: renew -> not yours",
    "script: renew -> NOSCRIPT",
    "script: release -> freed",
    "script: release -> still held",
    "script: release -> not yours",
    "script: release -> NOSCRIPT",
    "script: force_release -> 1",
    "script: force_release -> 0",
    "lock: granted",
    "lock: busy",
    "lock: cancelled",
    "lock: lost",
    "lock: closed",
    "lock: unreachable",
    "lock: corrupt_lock",
    "lock: server_refused",
    "lock: re-entered",
    "unlock: released",
    "unlock: lost",
    "unlock: not_held",
    "unlock: closed",
    "unlock: unconfirmed",
    "renew: renewed",
    "renew: lost",
    "renew: not_held",
    "renew: closed",
    "renew: unreachable",
    "force_unlock: answered",
    "force_unlock: unreachable",
    "force_unlock: closed",
    "query: answered",
    "query: unreachable",
    "lease ended: lost",
    "lease ended: closed",
    "lease ended: not_held",
    "event: acquired",
    "event: not_acquired",
    "event: acquire_failed",
    "event: released",
    "event: released_late",
    "event: release_failed",
    "event: renewal_failed",
    "event: suspended",
    "event: restored",
    "event: lost",
    "event: waiting_for_ourselves",
    "event: outage",
    "event: connected",
    "event: fencing_degraded",
    "overlap explained by a fault outside the guarantee",
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

void coverage::print(std::ostream& out) const {
  for (const auto& [what, times] : counts_) out << std::setw(12) << times << "  " << what << '\n';
}

}  // namespace holdfast::sim
