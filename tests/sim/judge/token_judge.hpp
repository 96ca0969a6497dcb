// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The tokens of one grant, in a row.
struct token_range {
  std::uint64_t first = 0, count = 1;
  std::uint64_t newest() const noexcept { return first + count - 1; }
};

/// The promise of fencing tokens:
///   - A token is larger than each before it on the same name, unless the node lost it and its clock went back.
///   - A fenced lock has a token, and it is one that the node gave to this owner. Another lock has none.
class token_judge {
 public:
  explicit token_judge(evidence& known) : known_(known) {}

  /// The node's answer to a fenced acquire.
  void given(const std::string& name, const std::string& field, token_range range);
  /// The answer of a server that has been replaced: its tokens are compared with no others.
  void given_by_replaced(const std::string& field, token_range range) { of_field_[field] = range; }
  /// A hold of a call that may have a token, or may not.
  void granted(const hold_record&, bool may_have_token);
  /// A lease of a call that asked for a token.
  void granted_fenced(const sim_client& client, const detail::hold& hold);

  /// The node has forgotten the counter of this name, or of all.
  void lost(const std::string& name);
  void lost_all();
  /// The new primary has another counter than the old one.
  void promoted(const keyspace& before, const keyspace& after);

 private:
  struct given_tokens {
    token_range range;
    std::string field;
    bool lost = false;  // by the node since then
  };

  evidence& known_;
  std::map<std::string, given_tokens> newest_;   // of each lock
  std::map<std::string, token_range> of_field_;  // of each owner
};

}  // namespace holdfast::sim
