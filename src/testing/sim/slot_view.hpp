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
  const identity& identity_of(member member) const { return all_.at(member); }
  member owner(slot_number slot) const { return owners_[slot] == unowned ? nobody : owners_[slot]; }
  void set_owner(slot_number slot, member member) {
    owners_[slot] = member == nobody ? unowned : static_cast<std::uint8_t>(member);
  }
  /// `to` has all slots of `from`.
  void replace(member from, member to);
  void set_replicas(member of, std::vector<member> members) { replicas_[of] = std::move(members); }
  /// SETSLOT MIGRATING, IMPORTING and STABLE.
  void migrate(slot_number slot, member to) { migrating_[slot] = to; }
  void import(slot_number slot, member from) { importing_[slot] = from; }
  void close(slot_number slot) { migrating_.erase(slot), importing_.erase(slot); }
  /// Whether it serves anything: not while a primary is missing, or it sees too few of them.
  void serve(bool on) noexcept { serves_ = on; }
  bool serves() const noexcept { return serves_; }

  struct question {
    std::span<const std::string> keys;
    bool channels = false;  // of sharded messages
    bool asking = false;
  };
  enum class answer { mine, moved, ask, try_again, cross_slot, down, not_served };
  answer ask(const question& question, const std::function<bool(const std::string&)>& exists) const;
  /// The error for it.
  std::string text_of(answer answer, const question& question) const;
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
