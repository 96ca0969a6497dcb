// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/options.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <boost/intrusive/slist.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sync/hold/engine_parts.hpp"
#include "sync/hold/hold.hpp"
#include "sync/hold/last_holders.hpp"
#include "sync/line/hand_over.hpp"
#include "sync/line/waiting_line.hpp"

namespace holdfast::detail {

class name;

inline constexpr const char* drained_without =
    "it is being drained, and only an owner that holds may still lock or wait";

/// The part of the registry that a name uses: the engine's parts, the state of a drain, and the end of a name.
class name_host {
 public:
  const engine_parts& parts;
  owner_fields fields;
  std::optional<last_holders> may_lock;  // from drain() until close(): the owners that still hold
  std::vector<hold_ptr> changing;        // holds with a change under way at close()

  bool refuses(owner_id owner) const { return may_lock && !may_lock->contains(owner); }
  /// Called while the client drains: one hold of this owner has ended.
  virtual void hold_is_over(owner_id owner) = 0;
  /// Nothing uses the name any more: destroys it.
  virtual void unused(name& forgotten) noexcept = 0;

 protected:
  name_host(const engine_parts& parts, owner_fields of_client) : parts(parts), fields(std::move(of_client)) {}
  ~name_host() = default;
};

/// One name of this client: the line of its waiters, its holds, and its releases under way.
///
/// Decision: a name knows everything that uses it. The line, the holds and the releases of a name refer to it, and
/// reach it without a look-up. The name goes with the last of them. A hold is known by its address alone, because its
/// leases own it. A hold without a lease keeps itself until its name has forgotten it.
///
/// A name is the one place where a lock changes hands:
///   granted by Redis, or passed on → hold → ended → released, or passed on.
/// A lost hold stays until its leases are gone, so that its owner finds the loss when it locks again. A name may
/// therefore have several holds.
class name final : public line_host,
                   public hold_host,
                   public boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>> {
 public:
  /// Orders the names, usually by the hash. Two kinds of lock with different keys are two names.
  struct key {
    std::uint32_t hash;
    std::string_view text;
    const key_layout* layout;

    static key of(const lock_keys& keys) noexcept { return {keys.hash, keys.name, &keys.of.layout}; }
    static key first_of(std::string_view text) noexcept { return {hash_of(text), text, nullptr}; }
    friend bool operator==(const key&, const key&) = default;
    friend bool operator<(const key& left, const key& right) noexcept {
      if (left.hash != right.hash) return left.hash < right.hash;
      const auto texts = left.text.compare(right.text);
      return texts < 0 || (texts == 0 && std::less<>()(left.layout, right.layout));
    }
  };
  struct key_of {
    using type = key;
    key operator()(const name& each) const noexcept { return key::of(*each.keys_); }
  };

  name(name_host& host, shared_keys keys) noexcept : host_(host), keys_(std::move(keys)) {}
  name(const name&) = delete;
  name& operator=(const name&) = delete;
  ~name() = default;

  const shared_keys& keys() const noexcept { return keys_; }
  waiting_line* line() const noexcept { return line_.get(); }
  /// The hold that has not ended. Null: there is none.
  hold* live_hold();
  /// The hold of this owner, which may be lost while its leases live. Null: there is none.
  hold* hold_of(owner_id owner);
  template <class Visitor>
  void each_hold(Visitor visit) {
    for (auto& each : holds_) visit(each);
  }
  /// True: nobody of this client holds the name or waits for it.
  bool untouched();

  /// Puts the call into the line.
  void join(std::shared_ptr<acquisition> caller);
  /// Nests a call in a hold of its owner: it gets another lease at once (set_hold_count.hpp), or after an answer of
  /// Redis (reentry.hpp).
  void nest(hold& outer, const std::shared_ptr<acquisition>& caller);
  /// Reports a call that may wait for its own task.
  void report_own_wait(acquisition& caller);
  /// The lock may be free, so the first waiter tries.
  void wake() noexcept;
  /// force_unlock() of this client was answered.
  void forced(bool was_held);
  /// Redis has granted the lock: makes a hold. Waiters of its owner become re-entries.
  std::shared_ptr<lease_record> hold_for(const lock_request& request, const shared_keys& keys,
                                         const granted_field& grant);
  void give_back(const owner_field& field, milliseconds ttl, function<void()> tried, primary_set at) override;
  /// Destroys the name if nothing uses it.
  void leave_if_unused();
  /// Called when all waiters were answered and all holds are lost. The leases stay, and refer to the name no more.
  void close();
  /// The engine ends. No caller is answered.
  void take_apart();

 private:
  using holds = boost::intrusive::slist<
      hold, boost::intrusive::member_hook<hold, boost::intrusive::slist_member_hook<>, &hold::of_host>,
      boost::intrusive::constant_time_size<false>>;

  // line_host
  bool held_here() const override;
  void doubt_hold_here() override;
  bool hears_itself() override { return hand_over_.hears_itself(env().time); }
  nanoseconds found_busy() override;
  time_point cool_down_until() const override { return hand_over_.cool_down_until(); }
  void cool_down_ends() override;
  bool held_by(owner_id owner) override;
  void reenter(std::shared_ptr<acquisition> caller) override;
  void queue(std::shared_ptr<acquisition> caller) override;
  std::shared_ptr<lease_record> granted(const acquisition& first, const granted_field& grant) override {
    return hold_for(first.request, first.keys, grant);
  }
  bool may_linger() const override;
  void line_empty() override;
  // hold_host
  void ended(hold& over) override;
  void forget(hold& over) override;
  bool pass_on(hold& before, const handoff_offer& offer) override;
  // release_host
  void release_begins() override { ++releasing_; }
  void release_ends(const release_end& end) override;

  environment& env() const noexcept { return host_.parts.env; }
  void share() {
    if (!hand_over_.shared()) hand_over_.share(env(), keys_->of, live_hold());
  }
  void end_turn(const release_end& end);
  void end_lingering();
  template <class First>
  std::shared_ptr<lease_record> begin(const hold_ptr& next, First make_lease);
  std::shared_ptr<lease_record> take_over(hold& before, const acquisition& successor, time_point now);
  void report_pass(const hold& before, milliseconds ttl, time_point now) const;
  bool enter(hold& outer, acquisition& caller);
  void reenter(hold& outer, std::shared_ptr<acquisition> caller);
  void move_to_hold_of(const lock_request& request, hold& granted);
  void move_to(hold& outer, std::shared_ptr<acquisition> caller) noexcept;
  hold_ptr take_out_first();

  name_host& host_;
  const shared_keys keys_;
  std::shared_ptr<waiting_line> line_;  // null: no waiter, and no lingering subscription
  holds holds_;                         // also lost ones
  hand_over hand_over_;
  std::size_t releasing_ = 0;
};

}  // namespace holdfast::detail
