// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "redis/resp.hpp"

namespace holdfast::sim {

using slot_number = std::uint16_t;
constexpr slot_number slots_in_all = 16384;
/// Which slot of a cluster a key belongs to: CRC16 of what stands in its first pair of braces, or of all of it.
slot_number slot_of(std::string_view key);

/// What one node of a cluster knows of the others, and what it answers for that: Redis' getNodeByQuery().
class slot_view {
 public:
  using member = std::size_t;  // a node of the cluster
  static constexpr member nobody = SIZE_MAX;
  struct identity {
    std::string host;
    std::uint16_t port;
    std::string id;
  };

  slot_view(std::vector<identity> all, member self) : all_(std::move(all)), self_(self) { owners_.fill(unowned); }

  member self() const noexcept { return self_; }
  const identity& who(member m) const { return all_.at(m); }
  member owner(slot_number s) const { return owners_[s] == unowned ? nobody : owners_[s]; }
  void set_owner(slot_number s, member m) { owners_[s] = m == nobody ? unowned : static_cast<std::uint8_t>(m); }
  /// `to` has all slots of `from`.
  void replace(member from, member to);
  void set_replicas(member of, std::vector<member> which) { replicas_[of] = std::move(which); }
  /// SETSLOT MIGRATING, IMPORTING and STABLE.
  void migrate(slot_number s, member to) { migrating_[s] = to; }
  void import(slot_number s, member from) { importing_[s] = from; }
  void close(slot_number s) { migrating_.erase(s), importing_.erase(s); }
  /// Whether it serves anything: not while a primary is missing, or it sees too few of them.
  void serve(bool on) noexcept { serves_ = on; }
  bool serves() const noexcept { return serves_; }

  struct question {
    std::span<const std::string> keys;
    bool channels = false;  // of sharded messages
    bool asking = false;
  };
  enum class answer { mine, moved, ask, try_again, cross_slot, down, not_served };
  answer ask(const question& q, const std::function<bool(const std::string&)>& exists) const;
  /// The error for it.
  std::string text_of(answer a, const question& q) const;
  /// CLUSTER SLOTS.
  redis::reply slots() const;

 private:
  static constexpr std::uint8_t unowned = 255;

  std::vector<identity> all_;
  member self_;
  std::array<std::uint8_t, slots_in_all> owners_;
  std::map<member, std::vector<member>> replicas_;
  std::map<slot_number, member> migrating_, importing_;
  bool serves_ = true;
};

}  // namespace holdfast::sim
