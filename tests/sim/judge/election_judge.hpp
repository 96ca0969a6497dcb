// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/election/election_lock.hpp"
#include "sim/judge/evidence.hpp"

namespace holdfast::sim {

/// The promises of an election, besides those of a fenced lock:
///   - An observer is given a leader that a node had since its call began. The term is not less than the one it knew,
///     nor than any that was given to somebody before its call, unless the node has lost the counter.
///   - A value that was proclaimed has reached a node. It is the leader's until a later one is proclaimed.
///   - An observer is told of a change within a journey, and after a trouble within retries and reconnection. Nobody
///     tells it that another lock's holder came or went, so it finds that by its poll.
class election_judge {
 public:
  using leader = std::optional<detail::leader_answer>;

  explicit election_judge(evidence& known) : known_(known) {}

  void add(const detail::lock_keys& keys) { elections_.try_emplace(keys.lock); }

  // Answers of the nodes.
  /// The script of observers.
  void read(const std::string& name, const reply& answer);
  /// The script of a leader that proclaims; `value`: the new one.
  void changed(const std::string& value) { changed_[value] = known_.now(); }

  // Answers of the library, before the record of the call is over.
  void told(std::uint64_t call, const std::string& name, const leader& now);
  void elected(const std::string& name, std::uint64_t term, std::string value);
  void begin_proclaim(const std::string& name, std::uint64_t term, const std::string& value);
  void proclaimed(std::uint64_t call, const std::string& name, std::uint64_t term, const std::string& value);

  /// A client without the library has taken or released this name: observers have no message.
  void changed_by_peer(const std::string& name);

  // Faults.
  /// The node has forgotten the counter of this name, or of all (empty).
  void term_lost(const std::string& name = {});
  void promoted();
  /// Every glance.
  void look();

 private:
  /// The values that a leader may have at the node.
  struct lead_record {
    std::string confirmed{};
    time_point since{};
    std::set<std::string, std::less<>> perhaps{};  // proclaimed, and not confirmed
  };
  struct told_term {
    std::uint64_t highest = 0;
    time_point when{};
  };
  struct election_record {
    std::map<std::string, time_point> read{};  // when a node last answered with this leader
    std::map<std::uint64_t, lead_record> leads{};
    told_term told{};
    time_point silent{};  // the last change without a message
    time_point moved{};   // the slot has moved until then: an observer's look of two keys fails meanwhile
  };

  static std::string text_of(const leader& known);
  /// The leader at the server that has this name. Empty: it is no lock, or nobody can tell.
  std::optional<leader> stored(const std::string& name) const;
  void check_term(std::uint64_t call, election_record&, const leader& now);
  void check_value(const std::string& name, const election_record&, const detail::leader_answer& now);
  void look_at(call_record& call);
  void accuse(std::uint64_t call, const std::string& deed);

  evidence& known_;
  std::map<std::string, election_record, std::less<>> elections_;
  std::map<std::string, time_point, std::less<>> changed_;  // when a node last ran the call with this value
};

}  // namespace holdfast::sim
