// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/coverage.hpp"
#include "sim/sim_client.hpp"

namespace holdfast::sim {

/// What the judge throws.
struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using record_ptr = std::shared_ptr<detail::lease_record>;

/// Looks at everybody and at the node after each instant, and compares what is claimed with what is.
///   hold claims to be exclusive → the node has its field, at least as long as the claim; no other claim on the name is
///                                 backed so
///   a claim that is not backed  → a fault outside the guarantee has taken it away since; within a renewal it is backed
///                                 again or its client is told
///   a lock that is granted      → is valid for at least the least validity
///   a hold that is suspended    → is confirmed within a journey, once nothing is in the way any more
///   first unlock of a lease     → never answers that it was not held
///   lock() answers lost         → only to who has a lease of the lost hold: others could lose nothing
///   claim over                  → each of its leases is told, once, at once; it never claims again
///   lock free, somebody waits   → granted within a journey; after trouble within retries and reconnection
///   field of a client's         → is that of a hold or of a call under way, or is given back as soon as nothing is in
///                                 the way; a node that became a replica takes nothing back
///   a client that has closed    → has told each of its leases; if nothing was in the way, it has left no field
///   fencing token               → larger than each before it on the same name, unless the node lost it and its clock
///                                 went back
///   count                       → as many as there are leases; if something was in the way, at most as many as there
///                                 ever were
class judge {
 public:
  judge(scheduler& plan, server& node, coverage& met);

  void add(sim_client&);
  /// A call of a verb; each must be answered once.
  std::uint64_t begin(const sim_client& by, std::string what);
  /// A call that waits for a lock, or for any one of several, so that the judge knows who waits.
  std::uint64_t begin_wait(const sim_client& by, std::vector<std::string> names, std::string what);
  void answered(std::uint64_t call);
  /// A client closes, and is closed: with its releases answered, unless something is in its way or the grace is short.
  void begin_close(const sim_client& by, nanoseconds grace);
  void closed(const sim_client& by);
  /// A lease that a call of lock gave. `fenced`: that is how it was asked for.
  void granted(sim_client& to, const record_ptr& lease, bool fenced);
  /// A lease of any one of several: of a hold of its own.
  void granted_any(sim_client& to, const record_ptr& lease, bool fenced);
  void released(const record_ptr& lease);
  /// The answer to the first unlock of a lease.
  void unlocked(const sim_client& by, const detail::lock_keys& name, error_code answer);
  /// A lock() was answered "lost". `has_lease`: whoever called has a lease of `name` still.
  void lost_to_caller(const sim_client& by, const detail::lock_keys& name, bool has_lease);

  /// The node has answered to this field that it can never have the lock: who wants any one of several waits for the
  /// others.
  void refused_for_good(const std::string& name, const std::string& field);
  /// The node's answer to a fenced acquire.
  void token_given(const std::string& name, const std::string& field, std::uint64_t token);

  /// Somebody without the library holds `name` by `field` until then, as far as it knows.
  void peer_holds(const std::string& name, const std::string& field, time_point until);
  void peer_released(const std::string& field);
  /// By somebody who tells nobody: it is found by the poll.
  void released_in_silence(const std::string& name);

  /// A fault outside the guarantee has been at this name, or at all (empty); `told`: with a message to those who wait.
  void excuse(const std::string& name, bool told = false);
  /// The node has forgotten the counter of a lock's tokens, or of all.
  void token_lost(const std::string& name);
  void tokens_lost();
  /// Until `end` nothing can be expected of this client, or of all (null).
  void trouble(const sim_client* whom, time_point end);
  /// This client was not told of something: it finds it out by its poll.
  void message_lost(const sim_client& to) { watched(to).message_lost = plan_.now(); }
  /// Every key that the node has lives that much longer.
  void clock_stepped_back(nanoseconds by);
  /// A command of a dead connection that its client could not fence off has run.
  void ran_unfenced(const arguments& command);
  /// Somebody has ended a connection of this client that it still uses: numbers begin anew with a restart.
  void killed(const sim_client& victim);
  /// After each script that ran: what the node gives now may be over in the same instant.
  void note_backing();
  /// After each instant.
  void look();
  /// Everybody was answered and has unlocked, and what nobody renewed since is over, unless the clock was stepped back.
  void look_for_survivors();
  /// Every TTL is over.
  void look_at_the_end();
  /// Throws the first violation that was found, if there was one: not where it was found, which may be in the middle of
  /// the library.
  void decide() const;
  std::size_t waiting_calls() const noexcept { return calls_.size(); }
  std::string unanswered() const;

 private:
  struct client_record {
    sim_client* who;
    time_point clear_since{};  // in the future: until then nothing is expected
    time_point trouble_began{};
    time_point message_lost{};  // the last one
    std::optional<time_point> closing_in_peace{};
    bool closed_in_peace = false;
  };
  struct call_record {
    const sim_client* by;
    std::string what;
    std::vector<std::string> waits_for;  // names of locks
    time_point since;
  };
  struct hold_record {
    const sim_client* by;
    detail::hold_ptr of;
    time_point granted, renewed_since;
    detail::milliseconds longest_ttl{};         // that its leases ever had
    std::size_t most_leases;                    // that there were, or were asked for
    std::optional<time_point> uncovered_since;  // by the node's field
    std::optional<time_point> suspended_since;
    bool ever_uncovered = false, over = false;
  };
  struct lease_watch {
    sim_client* by;
    record_ptr lease;
    error_code told;
    int times = 0;
    time_point released_at;
    bool released = false, over = false;
  };
  struct field_record {
    time_point first_seen;
    nanoseconds outage{};        // its client's longest while the field was there
    nanoseconds stepped_back{};  // the node's clock meanwhile
    std::optional<time_point> unwanted_since;
    bool met_replica = false, unfenced = false;
  };
  struct peer_claim {
    std::string name, field;
    time_point until, covered_at;
  };

  client_record& watched(const sim_client&);
  /// From when on it does everything without delay, as far as faults are concerned.
  time_point undisturbed_from(const sim_client&);
  static void extend_trouble(client_record&, time_point now, time_point end);
  time_point excused_at(const std::string& name) const;
  std::optional<time_point> backed_until(std::string_view name, std::string_view field) const;
  /// When the node last kept `field` until `until` at least; never: the end of time, which no fault comes after.
  time_point last_backed(const std::string& name, std::string_view field, time_point until) const;
  void look_at(hold_record&);
  void look_at(lease_watch&);
  void look_at(peer_claim&);
  void look_at_count(hold_record&);
  void look_at_suspension(hold_record&);
  void look_for_forgotten_waiters();
  void look_for_residue();
  field_record& known_field(const std::string& field);
  void look_at_field(const std::string& key, const std::string& field, field_record& f, nanoseconds left);
  void claim(const std::string& name, const std::string& who, bool backed);
  void accuse(const std::string& whom, const std::string& what);

  scheduler& plan_;
  server& server_;
  coverage& met_;
  std::vector<client_record> clients_;
  std::map<std::uint64_t, call_record> calls_;
  std::uint64_t last_call_ = 0;
  std::vector<hold_record> holds_;
  std::list<lease_watch> leases_;
  std::vector<peer_claim> peers_;
  struct backing {
    time_point until, seen;
  };
  std::map<std::pair<std::string, std::string>, std::vector<backing>> backing_;  // by key and field
  std::map<std::string, time_point> excused_, taken_in_silence_;
  std::map<std::string, std::optional<time_point>> free_since_;
  std::map<std::string, field_record> fields_;  // at the node
  struct given_token {
    std::uint64_t token = 0;
    std::string field;
    bool lost = false;  // since then
  };
  std::map<std::string, given_token> tokens_;      // the last of each lock
  std::map<std::string, std::uint64_t> token_of_;  // of each owner field
  time_point all_excused_{};                       // in silence
  struct claimant {
    std::string who;
    bool backed;
  };
  std::map<std::string, std::vector<claimant>> claims_;  // of this instant
  std::string verdict_;
};

}  // namespace holdfast::sim
