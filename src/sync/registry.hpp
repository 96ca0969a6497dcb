// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sync/name.hpp"
#include "sync/several/multi_key_request.hpp"

namespace holdfast::detail {

/// The names that this client holds or wants, and every operation on all of them: drain, close, a changed server. Also
/// the requests for several names.
///
/// Decision: a name is looked up once for each call that locks it. Everything that uses the name refers to it. So the
/// registry does not know the lines, and an unused name leaves at once.
class registry final : public multi_key_host, private name_host {
 public:
  /// `drained` is called once after drain(), when the last hold has ended.
  registry(const engine_parts& parts, owner_fields of_client, function<void()> drained);
  registry(const registry&) = delete;
  registry& operator=(const registry&) = delete;
  ~registry();

  std::shared_ptr<acquisition> lock(const shared_keys& keys, const lock_request& request, lock_handler&& done) override;
  /// Why this owner may not lock any more, as text for a person. Null: it may.
  const char* refusal(owner_id owner) const { return refuses(owner) ? drained_without : nullptr; }
  /// Begins the request, and lists it if it waits: drain, close and the end of the client concern it.
  void begin(const std::shared_ptr<multi_key_request>& caller);

  // For requests for several names.
  bool untouched(const lock_keys& keys) override;
  bool nests(const lock_keys& keys, owner_id owner) override;
  std::shared_ptr<lease_record> granted(const shared_keys& keys, const lock_request& request, const owner_field& field,
                                        const attempt& grant, time_point now) override;
  void give_back(const shared_keys& keys, const owner_field& field, milliseconds ttl, function<void()> tried) override;
  void forget(multi_key_request& answered) override;
  owner_field new_field() override { return fields.next(); }

  // For a downgrade.
  /// As name::reserve().
  milliseconds reserve(const lock_keys& keys) { return find(keys)->reserve(); }
  /// As name::downgraded().
  std::shared_ptr<lease_record> downgraded(lease_record& write, const shared_keys& reader, const outcome& answer,
                                           time_point now) {
    return find(*reader)->downgraded(write, reader, answer, now);
  }

  /// The hold of this owner, which may be lost while its leases live. Null: there is none.
  hold* hold_of(const lock_keys& keys, owner_id owner);
  /// The node is connected again, perhaps to another server. That server may lack changes that the old one has
  /// answered, so releases and counts are sent again.
  void server_changed(node_id node);
  /// Keys have moved to another server. Releases that the old one has answered are sent again. `group`: only these
  /// keys.
  void repeat_releases(std::optional<key_group> group);
  /// As name::held_since().
  bool held_since(const lock_keys& keys, time_point since);
  /// A connection is lost. Waiters for locks of its server may wait because of it.
  void lost_redis();
  /// force_unlock() of this client was answered.
  void forced(const lock_keys& keys, bool was_held);
  /// The server `node` has pushed a change of this key of Redis by another client.
  void key_changed(std::string_view key, node_id node);
  /// The server begins to push changes, or has forgotten its promise to, or any of its keys may have changed. Many
  /// names are asked in portions, so that other work goes on between them.
  void keys_in_question(node_id node);
  /// Another holder may have room now.
  void may_be_free(const lock_keys& keys);
  std::string_view client_id() const noexcept { return fields.client_uuid(); }
  bool idle() const noexcept { return names_.empty() && asking_.empty(); }

  /// From now on only owners that hold a lock may lock or wait (last_holders.hpp). Others get shutting_down.
  void drain();
  bool draining() const noexcept { return may_lock.has_value(); }
  bool drained() const noexcept { return may_lock && may_lock->empty(); }
  /// Answers all waiters with shutting_down, and ends all holds as lost. Queued changes stay until end_changes().
  void close();
  /// Drops the queued changes of holds that had a change under way at close().
  void end_changes();

 private:
  // No hash table: one insertion would sometimes pay for rehashing all names.
  using names = boost::intrusive::set<
      name, boost::intrusive::base_hook<boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>>>,
      boost::intrusive::key_of_value<name::key_of>>;
  /// Names are asked in the order of their keys.
  struct question {
    std::optional<node_id> node;  // empty: the keys of all nodes are in question
    nanoseconds spread;
    shared_keys last{};  // the name that was asked last; null: none was
  };
  using requests = boost::intrusive::list<
      multi_key_request::listing,
      boost::intrusive::member_hook<multi_key_request::listing, boost::intrusive::list_member_hook<>,
                                    &multi_key_request::listing::hook>>;

  // name_host
  void hold_is_over(owner_id owner) override;
  void unused(name& forgotten) noexcept override;

  /// Finds the name, or makes it.
  name::visit at(const shared_keys& keys);
  std::vector<name::visit> visit_all();
  void ask_next_names();
  void end_question();
  name& make_name(const shared_keys& keys, names::iterator before);
  auto unmake_name() const {
    return [&pool = *parts.env.blocks](name* unused) {
      unused->~name();
      pool.give_back(unused, sizeof(name));
    };
  }
  name* find(const lock_keys& keys);
  template <class Predicate>
  void fail_requests(Predicate leaves, const char* detail);

  const function<void()> drained_;
  names names_;
  requests asking_;
  std::optional<question> question_;
  timer next_names_;
};

}  // namespace holdfast::detail
