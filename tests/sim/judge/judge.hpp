// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/coverage.hpp"
#include "sim/deployment.hpp"
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
///   lock free, somebody waits   → granted within a journey; after trouble within retries and reconnection; who wants
///                                 several waits while one of them is not free, and others of its client behind it
///   several asked for           → granted all or none, by each script and to each caller
///   field of a client's         → is that of a hold or of a call under way, or is given back as soon as nothing is in
///                                 the way; a node that became a replica takes nothing back
///   a client that has closed    → has told each of its leases; if nothing was in the way, it has left no field
///   fencing token               → larger than each before it on the same name, unless the node lost it and its clock
///                                 went back
///   count                       → as many as there are leases; if something was in the way, at most as many as there
///                                 ever were
///
/// Where there are several nodes, a majority of them backs a claim: each of them may forget what it has, and no two
/// claims may overlap for that. A lock is free where it is free at a majority that nothing is in the way to, and that
/// votes.
///
/// Where one server may take another's place, the one counts that the servers agree on, from the instant of its
/// promotion: what it lacks then was forgotten, and whoever is told it later must lose it; what the old one does after
/// that is forgotten, too. As soon as each client can know, none may talk to the old one.
class judge {
 public:
  judge(scheduler& plan, deployment& servers, coverage& met);

  void add(sim_client&);
  /// A call of a verb; each must be answered once.
  std::uint64_t begin(const sim_client& by, std::string what);
  /// A call that asks once.
  std::uint64_t begin_try(const sim_client& by, std::string name, std::string what);
  /// A call that waits for a lock, or for any one of several, so that the judge knows who waits.
  std::uint64_t begin_wait(const sim_client& by, std::vector<std::string> names, std::string what);
  /// A call that waits for all of several.
  std::uint64_t begin_wait_for_all(const sim_client& by, std::vector<std::string> names, std::string what);
  void answered(std::uint64_t call);
  /// A client closes, and is closed: with its releases answered, unless something is in its way or the grace is short.
  void begin_close(const sim_client& by, nanoseconds grace);
  void closed(const sim_client& by);
  /// A lease that a call of lock gave. `fenced`: that is how it was asked for.
  void granted(sim_client& to, const record_ptr& lease, bool fenced);
  /// A lease of any one of several: of a hold of its own.
  void granted_any(sim_client& to, const record_ptr& lease, bool fenced);
  /// The leases of all of several: so many were `asked` for.
  void granted_all(sim_client& to, const std::vector<record_ptr>& leases, std::size_t asked, bool fenced);
  void released(const record_ptr& lease);
  void begin_renewal(const record_ptr& lease, detail::milliseconds ttl);
  /// The answer to the first unlock of a lease.
  void unlocked(const sim_client& by, const detail::lock_keys& name, error_code answer);
  /// A lock() was answered "lost". `has_lease`: whoever called has a lease of `name` still.
  void lost_to_caller(const sim_client& by, const detail::lock_keys& name, bool has_lease);

  /// The node has answered to this field that it can never have the lock: who wants any one of several waits for the
  /// others.
  void refused_for_good(const std::string& name, const std::string& field);
  /// The node has answered to a script that wants `field` of each name: all or none of them must be there by it.
  void several_answered(const std::vector<std::pair<std::string, std::string>>& name_and_field, bool acquired);
  /// Those of one grant, in a row.
  struct tokens {
    std::uint64_t first = 0, count = 1;
    std::uint64_t newest() const noexcept { return first + count - 1; }
  };
  /// The node's answer to a fenced acquire.
  void tokens_given(const std::string& name, const std::string& field, tokens all);
  /// That of a server which has been replaced.
  void tokens_given_by_another(const std::string& field, tokens all);

  /// Somebody without the library holds `name` by `field` until then, as far as it knows.
  void peer_holds(const std::string& name, const std::string& field, time_point until);
  void peer_released(const std::string& field);
  /// By somebody who tells nobody: it is found by the poll.
  void released_in_silence(const std::string& name);

  /// A fault outside the guarantee has been at this name, or at all (empty); `told`: with a message to those who wait.
  void excuse(const std::string& name, bool told = false);
  /// The node has forgotten the counter of a lock's tokens.
  void token_lost(const std::string& name);
  /// The machine has forgotten all: which a lock at one node does not outlive.
  void data_lost(std::size_t machine);
  /// It has no vote until the longest TTL is over.
  void vote_lost(std::size_t machine) { nodes_[servers_.unit_of(machine)].vote_lost = plan_.now(); }
  /// A replica has taken the place of its primary. What it has not yet, its server has forgotten, although it had
  /// acknowledged it; what it has still, nobody gives back.
  void promoted(server& from, server& to);
  /// A server that does not have this lock any more, and does not know it, has done something with this field of it.
  void answered_by_another(std::size_t machine, const std::string& key, const std::string& field, bool has_it);
  /// Until `end` nothing can be expected of this client, or of all (null); of what it has to do with this machine.
  void trouble(const sim_client* whom, std::size_t machine, time_point end);
  void trouble(const sim_client* whom, time_point end);
  /// This client was not told of something: it finds it out by its poll.
  void message_lost(const sim_client& to) { watched(to).message_lost = plan_.now(); }
  /// Every key that the node has lives that much longer.
  void clock_stepped_back(std::size_t machine, nanoseconds by);
  /// A command of a dead connection that its client could not fence off has run there.
  void ran_unfenced(std::size_t machine, const arguments& command);
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
  // A node is a server, or several of which one at a time has a key.
  /// What a client has to do with a node.
  struct link_record {
    time_point clear_since{};  // in the future: until then nothing is expected
    time_point trouble_began{};
  };
  struct client_record {
    sim_client* who;
    std::vector<link_record> links;           // to each node
    time_point message_lost{};                // the last one
    std::optional<time_point> awake_since{};  // it waits or holds
    std::optional<time_point> closing_in_peace{};
    bool closed_in_peace = false;
  };
  struct node_record {
    std::optional<time_point> vote_lost{};  // the last time
    std::map<std::string, std::optional<time_point>> free_since{};
  };
  struct call_record {
    const sim_client* by;
    std::string what;
    std::vector<std::string> waits_for;  // names of locks
    time_point since;
    std::string tries{};  // asked once for this one
    bool wants_all = false;
  };
  struct hold_record {
    const sim_client* by;
    detail::hold_ptr of;
    std::string field;
    time_point asked, granted, renewed_since;
    detail::milliseconds longest_ttl{};         // that its leases ever had, or a renewal asked for
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
    bool replaced = false;  // a server that was replaced has answered, or has known, what the next one does not
  };
  struct peer_claim {
    std::string name, field;
    time_point asked, until, covered_at;
  };

  client_record& watched(const sim_client&);
  client_record* client_of(std::string_view field);
  /// From when on it does everything without delay, as far as faults are concerned, at this node; and at each.
  time_point undisturbed_from(const sim_client&, std::size_t node);
  time_point undisturbed_from(const sim_client&);
  static void extend_trouble(const client_record&, link_record&, time_point now, time_point end);
  /// When a claim on this name was last taken away: by a fault outside of the guarantee; or by any.
  time_point broken_at(const std::string& name) const;
  time_point excused_at(const std::string& name) const { return std::max(broken_at(name), forgotten_at_); }
  /// Until when a majority of the nodes is so, by until when each is; never: fewer are.
  std::optional<time_point> majority_until(std::vector<time_point> each) const;
  std::optional<time_point> backed_until(std::string_view name, std::string_view field) const;
  template <class Use>
  void each_backing(Use use);
  /// When the node last kept `field` until `until` at least.
  std::optional<time_point> last_backed(const std::string& name, std::string_view field, time_point until) const;
  void look_at(hold_record&);
  void look_at(lease_watch&);
  void look_at(peer_claim&);
  void look_at_count(hold_record&);
  void look_at_suspension(hold_record&);
  void look_for_forgotten_waiters();
  void note_what_is_kept();
  /// Nobody holds it there; an attempt that may give back what it has does not count.
  /// Of several nodes the slowest may hold up a change, and behind it what gives the field back.
  bool held_up(const hold_record& h) const { return nodes_.size() > 1 && h.of->changing(); }
  bool is_free(std::size_t node, const std::string& name);
  bool is_free(const std::string& name);
  time_point could_be_granted_since(const call_record& call, const std::string& name);
  time_point silence_about(const std::string& name, const sim_client& to);
  void look_for_residue();
  field_record& known_field(std::size_t node, const std::string& field);
  void look_who_is_awake();
  void look_at_field(std::size_t node, const std::string& key, const std::string& field, field_record& f,
                     nanoseconds left);
  void claim(const std::string& name, const std::string& who, bool backed, time_point asked);
  void accuse(const std::string& whom, const std::string& what);

  /// Who has this key, of a node; the key.
  server& holder(std::size_t node, std::string_view key) const {
    return servers_.machines()[servers_.holder(node, key)];
  }
  const keyspace::entry* entry_of(std::size_t node, std::string_view key) const {
    return std::as_const(holder(node, key).program().keys()).find(key);
  }

  scheduler& plan_;
  deployment& servers_;
  std::vector<node_record> nodes_;
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
  template <class T>
  using by_text = std::map<std::string, T, std::less<>>;
  by_text<by_text<std::vector<backing>>> backing_;  // by key and field
  std::map<std::string, time_point> excused_, taken_in_silence_;
  // When somebody of that client who wants several last kept this name from others, while he waited for another.
  std::set<std::pair<const sim_client*, std::string>> kept_;
  std::map<std::pair<const sim_client*, std::string>, time_point> kept_at_;
  std::set<std::string> acquired_with_others_;                          // fields
  std::map<std::pair<std::size_t, std::string>, field_record> fields_;  // at each node
  struct given_tokens {
    tokens all;
    std::string field;
    bool lost = false;  // since then
  };
  std::map<std::string, given_tokens> tokens_;  // the last of each lock
  std::map<std::string, tokens> tokens_of_;     // of each owner field
  time_point all_excused_{};                    // in silence
  time_point forgotten_at_{};                   // something, by one of several nodes
  struct claimant {
    std::string who;
    bool backed;
    time_point asked;
  };
  std::map<std::string, std::vector<claimant>> claims_;  // of this instant
  time_point next_glance_{};
  std::string verdict_;
};

}  // namespace holdfast::sim
