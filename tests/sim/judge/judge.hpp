// SPDX-License-Identifier: BSL-1.0
#pragma once
// The judge looks at everybody and at the nodes after each instant, and compares claims with what is stored. It judges
// nothing itself. It hands each event to those of its judges, one a promise, that must know of it:
//
//   exclusion_judge    a claim is backed by the nodes, and is the only one
//   suspension_judge   a hold in doubt is confirmed in time
//   count_judge        the node counts as many re-entries as there are leases
//   lease_end_judge    each lease learns of its end, once and at once
//   waiter_judge       no waiter of a free lock is forgotten
//   all_or_none_judge  of several locks all are granted, or none
//   token_judge        fencing tokens grow, and their owner gets them
//   push_judge         a pushed change is acted upon
//   permit_judge       permits add up, and are granted while enough are left
//   latch_judge        each call counts once, and nobody waits for an open latch
//   election_judge     observers are told of each leader, and values are those that were proclaimed last
//   shared_judge       readers and writers are admitted, and wait no longer than others need
//   fair_judge         each waiter of a fair mutex has a place, and the first of them is served
//   residue_judge      no field, key or subscription is left
//   succession_judge   nobody talks to a primary that was replaced
//   answer_judge       each call is answered once
//   client_judge       a client closes cleanly, and is idle in the end
//
// Their common knowledge is `evidence`. Each kind of lock is a view in stored_lock.hpp; `storage` has the majority of
// several nodes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/judge/all_or_none_judge.hpp"
#include "sim/judge/answer_judge.hpp"
#include "sim/judge/client_judge.hpp"
#include "sim/judge/count_judge.hpp"
#include "sim/judge/election_judge.hpp"
#include "sim/judge/exclusion_judge.hpp"
#include "sim/judge/fair_judge.hpp"
#include "sim/judge/latch_judge.hpp"
#include "sim/judge/lease_end_judge.hpp"
#include "sim/judge/permit_judge.hpp"
#include "sim/judge/push_judge.hpp"
#include "sim/judge/residue_judge.hpp"
#include "sim/judge/shared_judge.hpp"
#include "sim/judge/succession_judge.hpp"
#include "sim/judge/suspension_judge.hpp"
#include "sim/judge/token_judge.hpp"
#include "sim/judge/waiter_judge.hpp"

namespace holdfast::sim {

class judge {
 public:
  judge(scheduler& plan, deployment& servers, coverage& met);

  void add(sim_client& client) { known_.clients.add(client); }
  void add(const detail::permit_keys& of_a_semaphore) { known_.stored.add(of_a_semaphore); }
  void add_shared(const detail::lock_keys& keys) { known_.stored.add_shared(keys); }
  void add_fair(const detail::lock_keys& keys) { known_.stored.add_fair(keys); }
  void add_latch(const detail::lock_keys& keys) {
    known_.stored.add_latch(keys);
    latches_.add(keys);
  }
  void add_election(const detail::lock_keys& keys) { elections_.add(keys); }
  /// Each name is a shared or a fair mutex of clients of the library, and no fault strikes.
  void expect_bounds() {
    shared_.expect_bounds();
    fair_.expect_order();
  }

  // Calls: each must be answered once.
  std::uint64_t begin(const sim_client& client, std::string text);
  /// A call that asks once.
  std::uint64_t begin_try(const sim_client& client, std::string name, std::string text);
  /// A call that waits for a lock, or for any one of several.
  std::uint64_t begin_wait(const sim_client& client, std::vector<std::string> names, std::string text);
  /// A call that waits for permits of a semaphore.
  std::uint64_t begin_wait_for_permits(const sim_client& client, std::string name, unsigned amount, std::string text);
  /// A call that waits to read or to write.
  std::uint64_t begin_wait_for_shared(const sim_client& client, std::string name, bool writes, std::string text);
  /// A call that waits until a latch is open.
  std::uint64_t begin_wait_for_latch(const sim_client& client, std::string name, std::string text);
  /// A call that waits for another leader than the known one.
  std::uint64_t begin_observe(const sim_client& client, std::string name, election_judge::leader known,
                              std::string text);
  /// A call that waits for all of several.
  std::uint64_t begin_wait_for_all(const sim_client& client, std::vector<std::string> names, std::string text);
  void answered(std::uint64_t call) { answers_.answered(call); }
  void begin_close(const sim_client& client, nanoseconds grace) { clients_.begin_close(client, grace); }
  void closed(const sim_client& client) { clients_.closed(client); }

  // Leases.
  /// A lease that a call of lock gave; `fenced`: the call asked for a token.
  void granted(sim_client& client, const record_ptr& lease, bool fenced);
  /// A lease of any one of several, with a hold of its own.
  void granted_any(sim_client& client, const record_ptr& lease, bool fenced);
  /// The leases of all of several: so many were `asked` for.
  void granted_all(sim_client& client, const std::vector<record_ptr>& leases, std::size_t asked, bool fenced);
  void released(const record_ptr& lease) {
    known_.holds.begin_release(lease);
    lease_ends_.released(lease);
  }
  /// A write lease is to become a read lease.
  void begin_downgrade(const record_ptr& write) { lease_ends_.begin_downgrade(write); }
  /// The answer. `reads`: the caller has a lease of the read hold, and the write lease is over.
  void end_downgrade(const record_ptr& write, bool reads) { lease_ends_.end_downgrade(write, reads); }
  void begin_renewal(const record_ptr& lease, detail::milliseconds ttl) { known_.holds.begin_renewal(lease, ttl); }
  /// The answer to the first unlock of a lease.
  void unlocked(const sim_client& client, const detail::lock_keys& name, error_code answer) {
    lease_ends_.unlocked(client, name, answer);
  }
  /// The answer of a lock() is "lost". `has_lease`: the caller still has a lease of `name`.
  void lost_to_caller(const sim_client& client, const detail::lock_keys& name, bool has_lease) {
    lease_ends_.lost_to_caller(client, name, has_lease);
  }

  // Answers of the nodes.
  /// This field can never have the lock.
  void refused_for_good(const std::string& name, const std::string& field) { waiters_.refused_for_good(name, field); }
  /// A script that wants `field` of each name.
  void several_answered(const std::vector<std::pair<std::string, std::string>>& name_and_field, bool acquired) {
    several_.answered(name_and_field, acquired);
  }
  /// The machine has granted these permits by one script.
  void permits_granted(std::size_t machine, const std::string& name, const std::vector<std::string>& ids) {
    permits_.granted(machine, name, ids);
  }
  latch_judge& latches() noexcept { return latches_; }
  election_judge& elections() noexcept { return elections_; }
  void tokens_given(const std::string& name, const std::string& field, token_range range) {
    tokens_.given(name, field, range);
  }
  void tokens_given_by_another(const std::string& field, token_range range) { tokens_.given_by_replaced(field, range); }
  /// A server that does not have this lock any more, and does not know it.
  void answered_by_another(std::size_t machine, const std::string& key, const std::string& field, bool has_it) {
    succession_.answered_by_replaced(machine, key, field, has_it);
  }

  // Clients without the library.
  /// One of them holds `name` by `field` until then, as far as it knows.
  void peer_holds(const std::string& name, const std::string& field, time_point until) {
    exclusion_.peer_holds(name, field, until);
  }
  void peer_released(const std::string& field) { exclusion_.peer_released(field); }
  /// Without a message: a waiter finds it by its poll.
  void released_in_silence(const std::string& name) { known_.excused.freed_silently(name); }

  // Faults.
  /// A fault outside the guarantee has been at this name, or at all (empty); `published`: its waiters have a message.
  void excuse(const std::string& name, bool published = false) { known_.excused.add(name, published); }
  /// The node has forgotten the counter of a lock's tokens.
  void token_lost(const std::string& name) {
    tokens_.lost(name);
    elections_.term_lost(name);
  }
  /// The machine has forgotten all. A lock at one node does not outlive it.
  void data_lost(std::size_t machine);
  void vote_lost(std::size_t machine) { waiters_.vote_lost(machine); }
  /// Until `end` nothing is expected between this client, or all (null), and this machine, or all.
  void trouble(const sim_client* client, std::size_t machine, time_point end) {
    known_.clients.trouble(client, machine, end);
  }
  void trouble(const sim_client* client, time_point end) { known_.clients.trouble(client, end); }
  /// A message to this client: it finds the news by its poll.
  void message_lost(const sim_client& client) { known_.clients.of(client).last_message_lost = known_.now(); }
  void clock_stepped_back(std::size_t machine, nanoseconds by) {
    residue_.clock_stepped_back(machine, by);
    latches_.disturbed();
  }
  void ran_unfenced(std::size_t machine, const arguments& command) { residue_.ran_unfenced(machine, command); }
  /// The change of this key has reached the client.
  void pushed(const sim_client& client, const std::string& key) { pushes_.pushed(client, key); }
  /// A connection of this client that it still uses.
  void killed(const sim_client& victim) { clients_.connection_killed(victim); }

  // Looks.
  /// After each command that ran.
  void note_backing() { known_.stored.note_backing(); }
  /// After each script that ran there.
  void ran_script(std::size_t machine) {
    note_backing();
    permits_.ran(machine);
    shared_.excuse_endless();
  }
  /// After each instant.
  void look();
  /// Each call was answered and each lock unlocked; each TTL that nobody renewed since is over.
  void look_for_survivors() { residue_.look_for_survivors(); }
  /// Each TTL is over.
  void look_at_the_end();
  /// Throws the first violation that was found, if there was one.
  void decide() const { known_.found.decide(); }
  std::size_t waiting_calls() const noexcept { return known_.calls.size(); }
  std::string unanswered() const { return answers_.unanswered(); }

 private:
  void promoted(server& from, server& to);
  void look_at(hold_record&);
  void note_side(hold_record&) const;

  evidence known_;
  exclusion_judge exclusion_{known_};
  suspension_judge suspension_{known_};
  count_judge counts_{known_};
  lease_end_judge lease_ends_{known_};
  waiter_judge waiters_{known_, exclusion_};
  all_or_none_judge several_{known_};
  token_judge tokens_{known_};
  push_judge pushes_{known_};
  permit_judge permits_{known_};
  latch_judge latches_{known_};
  election_judge elections_{known_};
  shared_judge shared_{known_};
  fair_judge fair_{known_};
  residue_judge residue_{known_};
  succession_judge succession_{known_};
  answer_judge answers_{known_};
  client_judge clients_{known_};
  time_point next_glance_{};
};

}  // namespace holdfast::sim
