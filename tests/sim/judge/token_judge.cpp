// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/token_judge.hpp"

namespace holdfast::sim {

void token_judge::given(const std::string& name, const std::string& field, token_range range) {
  auto& before = newest_[name];
  if (field == before.field && range.first >= before.range.first && range.newest() <= before.range.newest()) {
    before.lost = false;  // a command that was sent again
    return;
  }
  const auto node_time = known_.stored.holder(0, name).clock().now_us();
  const bool clock_is_behind = node_time <= static_cast<std::int64_t>(before.range.newest());
  if (range.first <= before.range.newest() && !(before.lost && clock_is_behind))
    known_.found.accuse("the node", "gives the token " + std::to_string(range.first) + " of " + name + " after " +
                                        std::to_string(before.range.newest()));
  before = {range, field, false};
  of_field_[field] = range;
}

void token_judge::granted(const hold_record& each, bool may_have_token) {
  const auto token = each.hold->token();
  if (!token) return;
  if (!may_have_token) known_.accuse(*each.client, "has a token of " + each.name() + " that it did not ask for");
  const auto found = of_field_.find(each.field);
  const auto range = found == of_field_.end() ? token_range{0, 0} : found->second;
  const auto passes = each.hold->passes;
  const bool in_range = passes < range.count && *token == range.first + passes;
  const bool repeated = passes == 0 && *token == range.newest();  // the answer to a command that was sent again
  if (!in_range && !repeated) known_.accuse(*each.client, "has a token that the node did not give it");
  if (passes > 0) known_.met.hit("lock: a token of a pass");
}

void token_judge::granted_fenced(const sim_client& client, const detail::hold& hold) {
  if (!hold.token()) known_.accuse(client, "was granted " + hold.keys()->name + " without a token");
}

void token_judge::lost(const std::string& name) {
  if (const auto found = newest_.find(name); found != newest_.end()) found->second.lost = true;
}

void token_judge::lost_all() {
  for (auto& [name, newest] : newest_) newest.lost = true;
}

void token_judge::promoted(const keyspace& before, const keyspace& after) {
  for (auto& [name, newest] : newest_) {
    const auto *had = token_entry(before, name), *has = token_entry(after, name);
    if (had && (!has || !has->text() || !had->text() || *has->text() != *had->text())) newest.lost = true;
  }
}

}  // namespace holdfast::sim
