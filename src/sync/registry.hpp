// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <memory>
#include <optional>
#include <string_view>

#include "sync/name.hpp"
#include "sync/several/multi_key_request.hpp"

namespace holdfast::detail {

/// The names that this client holds or wants, and everything that is asked of all of them: a drain, a close, a server
/// that has changed. Also the callers who want several names.
///
/// Decision: a name is found once for each call that locks it, and everything that uses it refers to it. So the
/// registry knows names and nothing of their lines, and a name that nothing uses leaves it at once.
class registry final : public multi_key_host, private name_host {
 public:
  /// `drained`: called once after drain(), when nobody holds any more.
  registry(const engine_parts& parts, owner_fields of_client, function<void()> drained);
  registry(const registry&) = delete;
  registry& operator=(const registry&) = delete;
  ~registry();

  std::shared_ptr<acquisition> lock(const shared_keys& keys, const lock_request& request, lock_handler&& done) override;
  /// Why this owner may not lock any more, for a person; null: it may.
  const char* refusal(owner_id owner) const { return refuses(owner) ? drained_without : nullptr; }
  /// Begins, and lists one that waits: it hears of drain, close and end.
  void begin(const std::shared_ptr<multi_key_request>& caller);

  // Of one who asks for several names at once.
  bool untouched(const lock_keys& keys) override;
  bool holds(const lock_keys& keys, owner_id owner) override { return hold_of(keys, owner) != nullptr; }
  std::shared_ptr<lease_record> granted(const shared_keys& keys, const lock_request& request,
                                        const granted_field& grant) override;
  void give_back(const shared_keys& keys, const owner_field& field, milliseconds ttl, function<void()> tried) override;
  void forget(multi_key_request& answered) override;
  owner_field new_field() override { return fields.next(); }

  /// Null when there is none; also a lost one, whose leases are still there.
  hold* hold_of(const lock_keys& keys, owner_id owner);
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
  std::string_view client_id() const noexcept { return fields.client_uuid(); }
  bool idle() const noexcept { return names_.empty() && asking_.empty(); }

  /// From now on only owners that hold may lock or wait; the others get shutting_down.
  void drain();
  bool draining() const noexcept { return may_lock.has_value(); }
  bool drained() const noexcept { return may_lock && may_lock->empty(); }
  /// Answers all waiters with shutting_down, and loses all holds. Queued changes stay until end_changes().
  void close();
  /// Drops the queued changes of the holds that had one under way when the client was closed.
  void end_changes();

 private:
  // No hash table, because one insertion would pay for moving all.
  using names = boost::intrusive::set<
      name, boost::intrusive::base_hook<boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>>>,
      boost::intrusive::key_of_value<name::key_of>>;
  using requests = boost::intrusive::list<
      multi_key_request::listing,
      boost::intrusive::member_hook<multi_key_request::listing, boost::intrusive::list_member_hook<>,
                                    &multi_key_request::listing::hook>>;

  // Its names.
  void hold_is_over(owner_id owner) override;
  void unused(name& forgotten) noexcept override;

  /// The name, made where there is none.
  name& at(const shared_keys& keys);
  name& make_name(const shared_keys& keys, names::iterator before);
  auto unmake_name() const {
    return [&pool = *parts.env.blocks](name* unused) {
      unused->~name();
      pool.give_back(unused, sizeof(name));
    };
  }
  name* find(const lock_keys& keys);
  /// Something was undone for lack of memory, which may have destroyed the name.
  void leave_if_unused(const lock_keys& keys);
  template <class Predicate>
  void fail_requests(Predicate leaves, const char* detail);

  const function<void()> drained_;
  names names_;
  requests asking_;
};

}  // namespace holdfast::detail
