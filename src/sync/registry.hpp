// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/intrusive/slist.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sync/hold/hold_services.hpp"
#include "sync/hold/last_holders.hpp"
#include "sync/line/reentry.hpp"
#include "sync/line/turn.hpp"
#include "sync/line/waiting_line.hpp"
#include "sync/several/asker.hpp"

namespace holdfast::detail {

/// The names that this client holds or wants: the holds of each, the line of those who wait for it, and the releases
/// that are under way. A name is found once for each call that locks it; its holds, its line and its releases refer to
/// its entry. Where two kinds of lock do not have the same keys, a name is two.
class registry final : public asker_host {
 public:
  /// `drained`: called once after drain(), when nobody holds any more.
  registry(const hold_services& with, owner_fields fields, function<void()> drained);
  registry(const registry&) = delete;
  registry& operator=(const registry&) = delete;
  ~registry();

  std::shared_ptr<acquisition> lock(const shared_keys& keys, const lock_request& request, lock_handler&& done) override;
  /// Why this owner may not lock any more, for a person; null: it may.
  const char* refusal(owner_id who) const;
  /// Begins, and lists one that waits: it hears of drain, close and end.
  void begin(const std::shared_ptr<asker>& who);

  // Of one who asks for several names at once.
  bool untouched(const lock_keys& keys) override;
  bool holds(const lock_keys& keys, owner_id who) override { return hold_of(keys, who) != nullptr; }
  std::shared_ptr<lease_record> granted(const shared_keys& keys, const lock_request& request,
                                        const granted_field& what) override;
  void give_back(const shared_keys& keys, const owner_field& field, milliseconds ttl, function<void()> tried) override;
  void forget(asker& who) override;

  /// Null when there is none; also a lost one, whose leases are still there.
  hold* hold_of(const lock_keys& keys, owner_id who);
  /// There is a connection to the node again. Its server may be another one, which may lack changes that the old one
  /// has answered: releases and counts are sent once more.
  void server_changed(node_id node);
  /// Keys have another server: releases that the old one has answered are sent once more. `group`: of these keys alone.
  void repeat_releases(std::optional<key_group> group);
  /// This client has held it without owner, by one hold, all the time since.
  bool held_since(const lock_keys& keys, time_point since);
  /// A connection is lost: waiters for locks of its server may wait for that.
  void lost_redis();
  /// force_unlock() of this client was answered.
  void forced(const lock_keys& keys, bool was_held);
  owner_field new_field() override { return fields_.next(); }
  std::string_view client_id() const noexcept { return fields_.client_uuid(); }
  bool idle() const noexcept { return names_.empty() && asking_.empty(); }

  /// From now on only owners that hold may lock or wait; the others get shutting_down.
  void drain();
  bool draining() const noexcept { return draining_.has_value(); }
  bool drained() const noexcept { return draining_ && draining_->empty(); }
  /// Answers all waiters with shutting_down, and loses all holds. Queued changes stay until end_changes().
  void close();
  /// Drops the queued changes of the holds that had one under way when the client was closed.
  void end_changes();

 private:
  using small = boost::intrusive::optimize_size<true>;
  /// By what the entries are ordered: most often the hash decides.
  struct entry_key {
    std::uint32_t hash;
    std::string_view name;
    const key_layout* layout;

    static entry_key of(const lock_keys& k) noexcept { return {k.hash, k.name, &k.of.layout}; }
    static entry_key first_of(std::string_view name) noexcept { return {hash_of(name), name, nullptr}; }
    friend bool operator==(const entry_key&, const entry_key&) = default;
    friend bool operator<(const entry_key& a, const entry_key& b) noexcept {
      if (a.hash != b.hash) return a.hash < b.hash;
      const auto names = a.name.compare(b.name);
      return names < 0 || (names == 0 && std::less<>()(a.layout, b.layout));
    }
  };
  /// One name.
  class entry final : public line_host, public hold_host, public boost::intrusive::set_base_hook<small> {
   public:
    struct key_of {
      using type = entry_key;
      entry_key operator()(const entry& e) const noexcept { return entry_key::of(*e.keys_); }
    };

    entry(registry& of, shared_keys keys) noexcept : of_(of), keys_(std::move(keys)) {}
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;

    const shared_keys& keys() const noexcept { return keys_; }
    hold* live_hold();
    hold* hold_of(owner_id who);
    waiting_line* line() const noexcept { return line_.get(); }
    void join(std::shared_ptr<acquisition> who);
    void wake() noexcept;
    /// Makes a hold, and moves the waiters of its owner to re-entries.
    std::shared_ptr<lease_record> hold_for(const lock_request& request, const shared_keys& keys,
                                           const granted_field& what);
    void give_back(const owner_field& field, milliseconds ttl, function<void()> tried, primary_set at) override;
    void leave_if_unused();
    template <class F>
    void each_hold(F f) {
      for (auto& h : holds_) f(h);
    }
    /// Nobody waits, all holds are lost, and their leases are on their own.
    void close();
    /// The engine ends. Nobody is answered.
    void take_apart();

   private:
    using holds = boost::intrusive::slist<
        hold, boost::intrusive::member_hook<hold, boost::intrusive::slist_member_hook<>, &hold::of_host>,
        boost::intrusive::constant_time_size<false>>;

    // Its line.
    bool held_here() const override;
    void doubt_hold_here() override;
    bool hears_itself() override;
    nanoseconds found_busy() override;
    time_point rests_until() const override;
    bool held_by(owner_id who) override;
    void reenter(std::shared_ptr<acquisition> who) override;
    void queue(std::shared_ptr<acquisition> who) override;
    std::shared_ptr<lease_record> granted(const acquisition& first, const granted_field& what) override {
      return hold_for(first.request, first.keys, what);
    }
    bool may_linger() const override;
    void line_empty() override;
    // Its holds.
    void ended(hold& h) override;
    void forget(hold& h) override;
    bool pass_on(hold& h, const legacy& what) override;
    // Its releases.
    void release_begins() override { ++releasing_; }
    void release_ends(const release_end& how) override;

    /// What is shared with other clients: only of a name for which somebody has had to wait.
    struct sharing {
      sharing(timers& alarms, turn t) : mine(t), rest(alarms) {}

      turn mine;
      timer rest;  // keeps the entry until it is over
    };

    template <class Begin>
    std::shared_ptr<lease_record> begin(const hold_ptr& h, Begin begin);
    void share();
    bool rests() const { return sharing_ && sharing_->rest.due(); }
    bool rest() noexcept;
    void rest_ends();
    void end_lingering();
    void end_turn(const release_end& how);
    const acquisition* heir_of(const hold& h, const legacy& what);
    void move_to_hold_of(const lock_request& request, hold& h);
    void move_to(hold& h, std::shared_ptr<acquisition> who) noexcept;
    hold_ptr take_out_first();

    registry& of_;
    const shared_keys keys_;
    std::shared_ptr<waiting_line> line_;
    // Lost ones stay until their leases are gone, so that re-entry finds the loss.
    holds holds_;
    std::unique_ptr<sharing> sharing_;
    std::size_t releasing_ = 0;
  };
  // No hash table, because one insertion would pay for moving all.
  using names = boost::intrusive::set<entry, boost::intrusive::base_hook<boost::intrusive::set_base_hook<small>>,
                                      boost::intrusive::key_of_value<entry::key_of>>;

  using askers = boost::intrusive::list<
      asker::listing,
      boost::intrusive::member_hook<asker::listing, boost::intrusive::list_member_hook<>, &asker::listing::hook>>;

  /// The entry of a name, made where there is none.
  entry& at(const shared_keys& keys);
  entry& make_entry(const shared_keys& keys, names::iterator before);
  auto unmake_entry() const {
    return [&pool = *with_.around.blocks](entry* e) {
      e->~entry();
      pool.give_back(e, sizeof(entry));
    };
  }
  template <class Which>
  void fail_askers(Which which, const char* detail);
  void tell_if_waiting_for_ourselves(entry& e, acquisition& who) const;
  entry* find(const lock_keys& keys);
  void leave_if_unused(const lock_keys& keys);
  /// A nested call that has its lease at once. False: Redis has to be asked, or it is in error.
  bool enter(hold& h, acquisition& who);
  void reenter(entry& name, hold& h, std::shared_ptr<acquisition> who);
  void hold_is_over(owner_id who);
  bool drains_without(owner_id who) const { return draining_ && !draining_->contains(who); }

  const hold_services& with_;
  owner_fields fields_;
  const function<void()> drained_;
  names names_;
  askers asking_;
  std::vector<hold_ptr> changing_;        // had a change under way when the client was closed
  std::optional<last_holders> draining_;  // from drain() until close()
};

}  // namespace holdfast::detail
