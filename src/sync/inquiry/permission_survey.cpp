// SPDX-License-Identifier: BSL-1.0
#include "sync/inquiry/permission_survey.hpp"

#include <utility>

namespace holdfast::detail {

permission_survey::permission_survey(environment& around, const kind& what, std::string stem, owner_field field,
                                     done_handler done)
    : around_(around), what_(what), stem_(std::move(stem)), field_(field), done_(std::move(done)) {}

void permission_survey::begin() {
  deadline_ = around_.now() + around_.settings.connect_timeout + around_.settings.command_timeout;
  probe_each();
}

void permission_survey::probe_each() {
  ++rounds_;
  const auto before = probes_.size();
  for (const auto& name : around_.servers.name_on_each_primary(stem_))
    if (!probed_.contains(around_.servers.node_of(name)))
      probes_.push_back(std::make_shared<permission_probe>(
          around_, what_, name, field_,
          [this, name](error_code error, const std::string& detail) { probe_ended(name, error, detail); }));
  under_way_ = probes_.size() - before;
  if (under_way_ == 0) return end({}, {});
  for (auto n = before; n < probes_.size(); ++n) probes_[n]->begin(deadline_);
}

// Where nobody knew before which node has the name, its answer has told.
void permission_survey::probe_ended(const std::string& name, error_code error, const std::string& detail) {
  if (error) return end(error, detail);
  probed_.insert(around_.servers.node_of(name));
  if (--under_way_ > 0) return;
  if (rounds_ < most_rounds) return probe_each();
  end({}, {});
}

void permission_survey::end(error_code error, const std::string& detail) {
  if (over()) return;
  const auto done = std::move(done_);
  forget_caller();
  done(error, detail);
}

void permission_survey::forget_caller() {
  for (const auto& p : probes_) p->forget_caller();
  done_ = {};
}

}  // namespace holdfast::detail
