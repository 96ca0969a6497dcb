// SPDX-License-Identifier: BSL-1.0
#include "sync/renewal/renewal_sender.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <memory>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"
#include "sync/command/script_command.hpp"

namespace holdfast::detail {

/// One script that renews many shares of a server.
class renewal_sender::batch final : public script_command {
 public:
  batch(renewal_sender& sender, node_id at, renewal_sender::shares&& parts) noexcept
      : node(at), shares(std::move(parts)), sender_(sender) {}

  const node_id node;
  const renewal_sender::shares shares;
  boost::container::small_vector<renewal, 1> asked;  // one for each
  unsigned replicas = 0;                             // the most that one of them wants

 private:
  void on_answer(const outcome& answer) override {
    each_step step;
    // Room for further renewals is announced even if the answer finds no memory: nothing else would send them.
    step([&] { sender_.answered(*this, answer); });
    step([this] { sender_.results_.results_end(); });
    step.rethrow();
  }
  void late(const outcome& answer) override { sender_.on_late(*this, answer); }

  renewal_sender& sender_;
};

void renewal_sender::send_due(time_point now) {
  while (const auto node = renewals_.ready()) send_by_group(*node, renewals_.take(*node, now));
}

key_group renewal_sender::group_of(const share& part) const {
  const auto& key = part.of.keys->lock;
  // A proxy that looks like one server refuses two slots in one script, and says nothing about its groups.
  return smallest_groups_ ? topology::smallest_group_of(key) : env_.servers.group_of(key);
}

// The scripts of all groups are given to the connection one after the other. It writes them together.
void renewal_sender::send_by_group(node_id node, shares&& parts) {
  const auto first = group_of(*parts.front());
  if (std::all_of(parts.begin() + 1, parts.end(), [&](const share_ptr& part) { return group_of(*part) == first; }))
    // Most often there is one group: nothing is sorted and nothing allocated.
    return send(node, std::move(parts));
  std::vector<std::pair<key_group, share_ptr>> grouped;
  const auto now = env_.now();
  if (!if_memory([&] { grouped.reserve(parts.size()); })) return renewals_.put_off(parts, now);
  for (auto& part : parts) grouped.emplace_back(group_of(*part), std::move(part));
  std::stable_sort(grouped.begin(), grouped.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  for (auto next = grouped.begin(); next != grouped.end();) {
    shares together;
    const auto group = next->first;
    for (; next != grouped.end() && next->first == group; ++next)
      if (!if_memory([&] { together.push_back(next->second); })) renewals_.put_off(*next->second, now);
    send(node, std::move(together));
  }
}

void renewal_sender::send(node_id node, shares&& parts) {
  const auto now = env_.now();
  std::shared_ptr<batch> script;
  bool counted = false;
  const bool sent = if_memory([&] {
    script = make_pooled<batch>(env_.blocks, *this, node, std::move(parts));
    script->asked.reserve(script->shares.size());
    auto timeout = nanoseconds::max();
    for (const auto& part : script->shares) {
      const auto& held = part->of;
      // max_hold may have ended while the share waited. The renewal then confirms the claim and does not prolong it.
      const auto ttl = holders_.wants_renewal(held, now) ? milliseconds(held.wanted.ttl) : ttl_that_never_raises;
      script->asked.push_back({held.keys.get(), held.field, part->ttl_to_send(ttl, now, env_.settings.drift)});
      script->replicas = std::max<unsigned>(script->replicas, held.wanted.min_replicas);
      // One late script must not end a claim, so the share that can wait least decides.
      timeout = std::min(timeout, renewals_.timeout_of(*part, now));
    }
    // Counted before it is sent: the answer may come inside the call.
    renewals_.sent(node, script->shares.size());
    counted = true;
    script->script_command::send(
        env_.servers.primary(node),
        script->shares.front()->of.keys->of.renew.make({script->asked.data(), script->asked.size()}),
        {.timeout = timeout,
         .rank = urgency::obligation,
         .waits_for_reply = true,
         .tell_late = true,
         .unhurried = true,
         .divisible = script->shares.size() > 1});
  });
  if (sent) return;
  // There was no memory, and no answer will come. The room at the server is given back, and the shares wait a little.
  if (counted) renewals_.answered(node, script->shares.size());
  renewals_.put_off(script ? script->shares : parts, now);
}

void renewal_sender::answered(const batch& script, const outcome& answer) {
  // The room is given back first: send_apart() takes some of it again.
  renewals_.answered(script.node, script.shares.size());
  const auto reply = script.shares.front()->of.keys->of.renew.read(answer, script.shares.size());
  bool apart = false;
  if (reply.failed && !if_memory([&] { apart = send_apart(script, answer, *reply.failed); }))
    return renewals_.put_off(script.shares, env_.now());
  // Their results come with the scripts that were sent in place of this one.
  if (apart) return;
  std::vector<std::size_t> granted;  // their places in the script; replicas must have them
  // A hold that finds no memory for its result must not keep the results of the others from them.
  each_step step;
  for (std::size_t i = 0; i < script.shares.size(); ++i) {
    share& part = *script.shares[i];
    const bool confirmed = !reply.failed && reply.value[i] == renewal_answer::confirmed;
    if (script.replicas > 0 && confirmed && guarded(part.of) && if_memory([&] { granted.push_back(i); }))
      continue;  // it stays in flight
    const bool doubted = renewals::land(part);
    if (!guarded(part.of)) continue;
    step([&] {
      if (answer.error) {
        results_.unanswered(part, answer.error, answer.detail);
      } else if (reply.failed) {
        results_.unanswered(part, reply.failed->code, reply.failed->detail);
      } else if (!confirmed) {
        results_.denied(part, reply.value[i]);
      } else if (script.replicas == 0) {
        results_.confirmed(part, answer.sent, script.asked[i].wanted.ttl, doubted);
      } else {
        results_.unanswered(part, errc::not_replicated, {});
      }
    });
  }
  if (!reply.failed && granted.empty()) if_memory([&] { results_.renewed(script.node, script.shares); });
  if (!granted.empty() && !if_memory([&] { wait_for_replicas(script, granted, answer); }))
    renewals_.put_off(script.shares, env_.now());
  step.rethrow();
}

void renewal_sender::wait_for_replicas(const batch& script, std::vector<std::size_t> granted, const outcome& answer) {
  auto valid = time_point::max();
  // The claim that ends first limits how long all of them wait for replicas.
  for (const auto i : granted) valid = std::min(valid, script.shares[i]->of.valid_until());
  const std::string_view key = script.asked[granted.front()].at->lock;
  const auto now = env_.now();
  auto done = [this, keep = std::static_pointer_cast<const batch>(script.shared_from_this()),
               granted = std::move(granted),
               sent = answer.sent](const std::optional<redis::failure>& failed, unsigned replicas) {
    on_replicas(*keep, granted, sent, failed, replicas);
  };
  const auto deadline = now + replication_budget(env_.settings, valid, now);
  env_.servers.replicated(key, {script.replicas, answer.server, deadline}, std::move(done));
}

void renewal_sender::on_replicas(const batch& script, const std::vector<std::size_t>& granted, time_point sent,
                                 const std::optional<failure>& failed, unsigned replicas) {
  for (const auto i : granted) {
    share& part = *script.shares[i];
    const bool doubted = renewals::land(part);
    if (!guarded(part.of)) continue;
    // The script asked for the highest number of all. A share that needs fewer may be confirmed all the same.
    const unsigned needed = part.of.wanted.min_replicas;
    const auto too_few = needed == 0 ? std::nullopt : too_few_replicas(failed, replicas, needed);
    if (too_few) {
      results_.unanswered(part, too_few->code, too_few->detail);
    } else {
      results_.confirmed(part, sent, script.asked[i].wanted.ttl, doubted);
    }
  }
  if_memory([&] { results_.renewed(script.node, script.shares); });
  results_.results_end();
}

void renewal_sender::on_late(const batch& script, const outcome& answer) {
  for (const auto& part : script.shares)
    // The shares stay in flight, because the answer may follow. A second copy would only lengthen the queue.
    if (in_flight(*part) && guarded(part->of)) results_.late(*part, answer.error, answer.detail);
}

// True: the shares go again, each group or each share by itself, and no result is known yet.
bool renewal_sender::send_apart(const batch& script, const outcome& answer, const failure& cause) {
  const bool refused = !answer.error && !cause.mends_itself();
  if (script.shares.size() == 1 || (!refused && !wants_one_key(answer))) return false;
  shares again;
  for (const auto& part : script.shares) {
    // The claim was forgotten meanwhile, so nobody waits for its renewal.
    if (!guarded(part->of)) renewals::land(*part);
    if (in_flight(*part)) again.push_back(part);
  }
  // The first refusal of this kind teaches the smallest groups. If they are refused as well, each share goes alone.
  const bool learns = wants_one_slot(answer) && !std::exchange(smallest_groups_, true);
  if (learns && !again.empty()) {
    send_by_group(script.node, std::move(again));
  } else {
    for (auto& part : again) send(script.node, {std::move(part)});
  }
  return true;
}

}  // namespace holdfast::detail
