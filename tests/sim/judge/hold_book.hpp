// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/shared/shared_lock.hpp"
#include "sim/sim_client.hpp"

namespace holdfast::sim {

using record_ptr = std::shared_ptr<detail::lease_record>;

inline std::string field_of(const detail::hold& hold) { return std::string(std::string_view(hold.field().to_text())); }

/// The text that the node stores for this hold: a field, or the ids of permits.
inline std::vector<std::string> fields_of(const detail::hold& hold) {
  if (&hold.keys()->of == &detail::shared_writer) return {field_of(hold) + ":write"};
  if (!hold.keys()->of.semaphore.make) return {field_of(hold)};
  std::vector<std::string> ids;
  for (std::uint8_t i = 0; i < hold.field().amount(); ++i) {
    const auto id = hold.field().permit(i);
    ids.emplace_back(id.data(), id.size());
  }
  return ids;
}

/// A hold, and what each judge of holds remembers of it.
struct hold_record {
  const sim_client* client;
  detail::hold_ptr hold;
  std::string field;
  std::vector<std::string> fields;  // as the node stores them
  time_point asked, granted, renewed_since;
  detail::milliseconds longest_ttl{};  // that its leases ever had, or a renewal asked for
  bool over = false;

  // exclusion_judge
  std::optional<time_point> uncovered_since{};  // by the node's field
  bool ever_uncovered = false;
  // suspension_judge
  std::optional<time_point> suspended_since{};
  // count_judge
  std::size_t most_leases = 1;  // that there were, or were asked for

  const std::string& name() const { return hold->keys()->name; }
  void note_leases() { most_leases = std::max(most_leases, hold->count() + (hold->changing() ? 1 : 0)); }
  bool has(std::string_view stored) const { return std::find(fields.begin(), fields.end(), stored) != fields.end(); }
};

/// The holds that were granted, until they are over.
class hold_book {
 public:
  explicit hold_book(scheduler& plan) : plan_(plan) {}

  /// The record of a hold that is new; null: the lease is one more of a hold that is known.
  const hold_record* granted(const sim_client& client, const record_ptr& lease) {
    const auto& hold = lease->of;
    if (std::any_of(holds_.begin(), holds_.end(), [&](const auto& each) { return each.hold == hold; })) return nullptr;
    const auto now = plan_.now();
    holds_.push_back(
        {&client, hold, field_of(*hold), fields_of(*hold), hold->valid_until() - lease->asked.ttl, now, now});
    return &holds_.back();
  }
  void begin_renewal(const record_ptr& lease, detail::milliseconds ttl) {
    for (auto& each : holds_)
      if (each.hold == lease->of) each.longest_ttl = std::max(each.longest_ttl, ttl);
  }
  /// Before a lease is released: a re-entry of this instant has been sent with the count until now.
  void begin_release(const record_ptr& lease) {
    for (auto& each : holds_)
      if (each.hold == lease->of) each.note_leases();
  }
  template <class Condition>
  void forget_if(Condition condition) {
    std::erase_if(holds_, condition);
  }
  template <class Condition>
  bool any(Condition condition) const {
    return std::any_of(holds_.begin(), holds_.end(), condition);
  }
  std::vector<hold_record>& all() noexcept { return holds_; }

 private:
  scheduler& plan_;
  std::vector<hold_record> holds_;
};

}  // namespace holdfast::sim
