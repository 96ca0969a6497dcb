// SPDX-License-Identifier: BSL-1.0
#include "sync/inquiry/permission_survey.hpp"

#include <utility>

namespace holdfast::detail {

permission_survey::permission_survey(environment& env, const kind& kind, std::string stem, owner_field field,
                                     done_handler done)
    : env_(env), kind_(kind), stem_(std::move(stem)), field_(field), done_(std::move(done)) {}

void permission_survey::begin() {
  // One deadline for all rounds. It includes a connection, because a probe is often the first call of a client.
  deadline_ = env_.now() + env_.settings.connect_timeout + env_.settings.command_timeout;
  probe_each();
}

void permission_survey::probe_each() {
  ++rounds_;
  // A second round probes only nodes that the first one discovered, so no node is probed twice.
  const auto before = probes_.size();
  for (const auto& name : env_.servers.name_on_each_primary(stem_))
    if (!probed_.contains(env_.servers.node_of(name)))
      probes_.push_back(std::make_shared<permission_probe>(
          env_, kind_, name, field_,
          [this, name](const std::optional<failure>& failed) { probe_ended(name, failed); }));
  under_way_ = probes_.size() - before;
  // All probes are counted before the first begins: a probe that ends at once would otherwise end the survey.
  if (under_way_ == 0) return end(std::nullopt);
  for (auto n = before; n < probes_.size(); ++n) probes_[n]->begin(deadline_);
}

// Before its first answer the node of a name may be unknown, so the node is looked up again here.
void permission_survey::probe_ended(const std::string& name, const std::optional<failure>& failed) {
  if (failed) return end(failed);
  probed_.insert(env_.servers.node_of(name));
  if (--under_way_ > 0) return;
  // Two rounds are enough for redirects to new nodes. More could go on indefinitely while a cluster changes.
  if (rounds_ < most_rounds) return probe_each();
  end(std::nullopt);
}

void permission_survey::end(const std::optional<failure>& failed) {
  if (over()) return;
  // The handler may destroy the survey. Nothing is touched after the call.
  const auto done = std::move(done_);
  forget_caller();
  done(failed);
}

void permission_survey::forget_caller() {
  for (const auto& probe : probes_) probe->forget_caller();
  done_ = {};
}

}  // namespace holdfast::detail
