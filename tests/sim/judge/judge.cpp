// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/judge.hpp"

namespace holdfast::sim {

judge::judge(scheduler& plan, deployment& servers, coverage& met) : known_(plan, servers, met) {
  servers.on_promotion = [this](std::size_t from, std::size_t to) {
    promoted(known_.servers.machines()[from], known_.servers.machines()[to]);
  };
  servers.on_key_lost = [this](const std::string& key) { excuse(known_.stored.name_of(key)); };
}

std::uint64_t judge::begin(const sim_client& client, std::string text) {
  return known_.calls.begin(client, std::move(text));
}

std::uint64_t judge::begin_try(const sim_client& client, std::string name, std::string text) {
  const auto call = begin(client, std::move(text));
  known_.calls.at(call).tries = std::move(name);
  return call;
}

std::uint64_t judge::begin_wait(const sim_client& client, std::vector<std::string> names, std::string text) {
  const auto call = begin(client, std::move(text));
  known_.calls.at(call).waits_for = std::move(names);
  return call;
}

std::uint64_t judge::begin_wait_for_permits(const sim_client& client, std::string name, unsigned amount,
                                            std::string text) {
  const auto call = begin_wait(client, {std::move(name)}, std::move(text));
  known_.calls.at(call).amount = amount;
  return call;
}

std::uint64_t judge::begin_wait_for_shared(const sim_client& client, std::string name, bool writes, std::string text) {
  const auto call = begin_wait(client, {std::move(name)}, std::move(text));
  known_.calls.at(call).writes = writes;
  return call;
}

std::uint64_t judge::begin_wait_for_latch(const sim_client& client, std::string name, std::string text) {
  const auto call = begin(client, std::move(text));
  known_.calls.at(call).awaits_latch = std::move(name);
  return call;
}

std::uint64_t judge::begin_observe(const sim_client& client, std::string name, election_judge::leader known,
                                   std::string text) {
  const auto call = begin(client, std::move(text));
  known_.calls.at(call).observes = std::move(name);
  known_.calls.at(call).knows = std::move(known);
  return call;
}

std::uint64_t judge::begin_wait_for_all(const sim_client& client, std::vector<std::string> names, std::string text) {
  const auto call = begin_wait(client, std::move(names), std::move(text));
  known_.calls.at(call).wants_all = true;
  return call;
}

void judge::granted(sim_client& client, const record_ptr& lease, bool fenced) {
  const auto& hold = *lease->of;
  clients_.granted(client, hold);
  if (const auto* first = known_.holds.granted(client, lease)) {
    exclusion_.granted(*first, lease->asked.ttl);
    fair_.granted(*first);
    // The owner may have re-entered a lock that another call of it has got together with others and has not returned.
    tokens_.granted(*first, fenced || several_.acquired_together(first->field));
  }
  if (fenced) tokens_.granted_fenced(client, hold);
  lease_ends_.granted(client, lease);
  if (known_.stored.shared_of(hold.keys()->lock)) shared_.granted(*lease);
}

void judge::granted_any(sim_client& client, const record_ptr& lease, bool fenced) {
  several_.granted_any(client, lease);
  granted(client, lease, fenced);
}

void judge::granted_all(sim_client& client, const std::vector<record_ptr>& leases, std::size_t asked, bool fenced) {
  several_.granted(client, leases, asked);
  for (const auto& lease : leases) granted(client, lease, fenced);
}

void judge::data_lost(std::size_t machine) {
  if (!known_.servers.holds_any(machine)) return;
  vote_lost(machine);
  tokens_.lost_all();
  elections_.term_lost();
  known_.excused.data_lost(known_.stored.votes());
}

void judge::promoted(server& from, server& to) {
  succession_.promoted(from, to);
  tokens_.promoted(from.program().keys(), to.program().keys());
  latches_.promoted(from.program().keys(), to.program().keys());
  elections_.promoted();
}

void judge::look() {
  note_backing();
  known_.clients.look();
  permits_.excuse_moves();
  latches_.note_disturbed();
  shared_.excuse_endless();
  exclusion_.begin_instant();
  for (auto& each : known_.holds.all()) look_at(each);
  lease_ends_.look();
  exclusion_.look_at_peers();
  known_.holds.forget_if(
      [&](const auto& each) { return each.over && each.hold->count() == 0 && !known_.delayed(each); });
  exclusion_.compare_claims();
  shared_.note_sections();
  fair_.note_calls();
  const auto next = known_.plan.next().value_or(time_point::max());
  if (known_.now() < next_glance_ && next < next_glance_) return;
  next_glance_ = known_.now() + bounds::glance;
  waiters_.look();
  permits_.look();
  latches_.look();
  elections_.look();
  shared_.look();
  fair_.look();
  residue_.look();
}

void judge::look_at(hold_record& each) {
  if (!each.hold->exclusive()) {
    each.over = true;
    return;
  }
  note_side(each);
  exclusion_.look_at(each);
  suspension_.look_at(each);
  pushes_.look_at(each);
  if (!each.uncovered_since) counts_.look_at(each);
}

// A downgrade makes the hold a reader's at the node before its client knows. From then on it is no writer's.
void judge::note_side(hold_record& each) const {
  const auto& hold = *each.hold;
  if (!hold.keys()->of.queue.downgrade.make) return;
  const bool reads = hold.downgrading() && known_.stored.backed_until(hold.keys()->lock, each.field);
  each.fields = reads ? std::vector{each.field} : fields_of(hold);
}

void judge::look_at_the_end() {
  answers_.look_at_the_end();
  residue_.look_at_the_end();
  clients_.look_at_the_end();
}

}  // namespace holdfast::sim
