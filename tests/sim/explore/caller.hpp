// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/owner.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/judge/judge.hpp"

namespace holdfast::sim::explore {

enum class verb : std::uint8_t { lock, try_lock, lock_any, read, write, downgrade, unlock };

/// The acts of one caller, one after the other.
struct role {
  std::size_t client = 0;
  std::size_t owner = 0;  // callers of one client with the same number act for one owner
  std::vector<verb> acts{};
  std::uint8_t permits = 1;  // of a semaphore, by each lock
  bool may_cancel = false;   // once, at any point of a call that waits
  bool outer = false;        // its unlock comes after all that the other callers of its owner do
  bool at_once = false;      // each act but the first is called inside the answer to the one before
  bool renews = true;        // its leases
};

/// An owner, and the number of leases that all its callers have.
struct lease_owner {
  owner self{};
  std::size_t leases = 0;
};

/// A task of one client that calls the verbs of its role. It decides nothing: a search says when it acts.
class caller final : public std::enable_shared_from_this<caller> {
 public:
  /// `acts_for` outlives the caller.
  caller(role plays, lease_owner& acts_for, sim_client& client, detail::shared_keys name, sim::judge& judge,
         scheduler& plan, trace& log)
      : plays_(std::move(plays)), acts_for_(acts_for), client_(client), name_(std::move(name)), judge_(judge),
        plan_(plan), log_(log) {}

  std::size_t client() const noexcept { return plays_.client; }
  /// The label of the act that it can begin now. Nothing: it waits for an answer, or is done.
  std::optional<std::string> next();
  /// It unlocks next, and an inner caller of its owner goes first.
  bool yields_to(const caller& inner);
  void act();
  bool has_begun() const noexcept { return at_ != 0; }
  bool can_cancel() const noexcept { return plays_.may_cancel && waits_for_lock() && place_; }
  void cancel();
  bool waits() const noexcept { return unanswered_ != 0; }
  bool waits_for_lock() const noexcept { return waits_for_lock_; }
  bool done() { return !waits() && !next(); }

 private:
  void lock(verb called);
  void on_answer(std::uint64_t call, const detail::lock_keys& keys, bool fenced, const detail::lock_answer& answer);
  void lock_any();
  void downgrade();
  void take(const record_ptr& lease);
  record_ptr give_up();
  void unlock();
  void go_on_at_once();
  void note(std::string_view act, std::string_view about = {}) { log_.note(plan_.now(), client_.name(), act, about); }

  role plays_;
  lease_owner& acts_for_;
  sim_client& client_;
  const detail::shared_keys name_;
  sim::judge& judge_;
  scheduler& plan_;
  trace& log_;
  std::size_t at_ = 0, unanswered_ = 0;
  bool waits_for_lock_ = false;
  std::vector<record_ptr> leases_;
  detail::cancellable_ptr place_;
};

}  // namespace holdfast::sim::explore
