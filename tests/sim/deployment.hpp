// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/sentinels.hpp"
#include "topology/server_list.hpp"

namespace holdfast::sim {

/// The machines of a seed, and which of them has a key.
class deployment {
 public:
  using kind = detail::deployment;
  using member = replication::member;  // a machine

  static constexpr std::size_t primaries_of_a_seed = 5;

  /// `primaries`: servers of a red_lock.
  deployment(kind what, scheduler& plan, detail::random_source& random, trace& log, nanoseconds ttl,
             std::size_t primaries = primaries_of_a_seed);
  deployment(const deployment&) = delete;
  deployment& operator=(const deployment&) = delete;

  kind what() const noexcept { return kind_; }
  /// A replica may take a primary's place.
  bool fails_over() const noexcept { return sentinels_ || cluster_; }
  std::deque<server>& machines() noexcept { return all_; }
  bool is_sentinel(member m) const noexcept { return sentinels_ && m >= sentinels_->servers(); }

  /// Independent primaries are judged one by one; whatever else there is, as one.
  std::size_t units() const noexcept { return kind_ == kind::primaries ? all_.size() : 1; }
  std::size_t unit_of(member m) const noexcept { return kind_ == kind::primaries ? m : 0; }
  /// Who has this key, or would: by what the servers agree on, though one of them may not know it yet.
  member holder(std::size_t unit, std::string_view key) const;
  bool holds_any(member m) const;
  /// It answers for this key by right.
  bool serves(member m, std::string_view key) const {
    return cluster_ ? cluster_->serves(m, key) : !fails_over() || m == holder(0, key);
  }
  /// `use(server, key, entry)` for each key that a unit has.
  template <class Use>
  void each_key(std::size_t unit, Use use) {
    for (member m = 0; m < all_.size(); ++m) {
      if (unit_of(m) != unit || !holds_any(m)) continue;
      const auto& keys = all_[m].program().keys();
      for (const auto& [key, entry] : keys.all())
        if (keys.find(key) && holder(unit, key) == m) use(all_[m], key, entry);
    }
  }

  /// Nothing fails over, and who must know where keys are knows it.
  bool settled() const;
  /// The slot of this key is on its way.
  bool moves(std::string_view key) const { return cluster_ && cluster_->moves(slot_of(key)); }

  // Faults.
  /// Something has become of a machine.
  void look();
  bool fail_over();
  bool move(std::string_view key);
  void isolate(member m, bool on);
  void machine_lost(member m, bool what_is_on_its_way_too);
  void machine_is_back(member m);
  void slow_down_replicas(nanoseconds lag);

  std::function<void(member from, member to)> on_promotion = [](member, member) {};
  std::function<void(const std::string& key)> on_key_lost = [](const auto&) {};

  /// What a client is told of it.
  detail::server_list servers_for(const config& values) const;

 private:
  static std::size_t machines_of(kind, std::size_t primaries);

  const kind kind_;
  detail::random_source& random_;
  std::deque<server> all_;
  std::optional<replication> data_;
  std::optional<sentinels> sentinels_;
  std::optional<cluster> cluster_;
  nanoseconds usual_lag_{};
};

}  // namespace holdfast::sim
