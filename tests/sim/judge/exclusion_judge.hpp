// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promise of exclusion, in each instant:
///   - A hold that claims to be exclusive has its field at the node, for at least as long as the claim.
///   - No other claim on its name is backed by the node. Of a semaphore, no more are than there are permits. Readers
///     of a shared mutex stand together, and a writer stands alone.
///   - Only a fault outside the guarantee takes a claim away. Within a renewal it is backed again, or its client knows.
///   - A lock that is granted is valid for at least the least validity.
///   - A claim that is over never begins again.
/// A majority of several nodes backs a claim: each of them may forget its vote, and still no two claims overlap.
class exclusion_judge {
 public:
  explicit exclusion_judge(evidence& known) : known_(known) {}

  void granted(const hold_record&, detail::milliseconds ttl);
  /// A client without the library holds `name` by `field` until then, as far as it knows.
  void peer_holds(const std::string& name, const std::string& field, time_point until);
  void peer_released(const std::string& field);

  // An instant: it begins, each hold that claims to be exclusive, the peers, all claims together.
  void begin_instant() { claims_.clear(); }
  void look_at(hold_record&);
  void look_at_peers();
  void compare_claims();
  /// In this instant.
  bool is_claimed(const std::string& name) const { return claims_.contains(name); }

 private:
  struct peer_claim {
    std::string name, field;
    time_point asked, until, covered_at;
  };
  struct claim {
    std::string holder;
    bool backed;
    time_point asked;
    std::size_t taken;  // of the capacity
  };

  void look_at(peer_claim&);

  evidence& known_;
  std::vector<peer_claim> peers_;
  std::map<std::string, std::vector<claim>> claims_;  // of this instant
};

}  // namespace holdfast::sim
