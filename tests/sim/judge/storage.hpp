// SPDX-License-Identifier: BSL-1.0
#pragma once
// A lock of one server and a lock of a majority look alike to a judge: it asks for the time until which a majority of
// the nodes backs a field, and one node is its own majority. A node is a server, or several of which one at a time has
// a key.
#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/judge/stored_lock.hpp"

namespace holdfast::sim {

/// What the nodes have stored, by their majority.
class storage {
 public:
  storage(scheduler& plan, deployment& servers) : plan_(plan), servers_(servers), nodes_(servers.units()) {}

  void add(const detail::permit_keys& keys) {
    const auto& added = semaphores_.emplace_back(keys);
    for (const auto* key : {&added.name, &added.permits, &added.door}) semaphore_of_[*key] = &added;
  }
  /// The semaphore that has this key; null: none.
  const semaphore* semaphore_of(std::string_view key) const {
    if (semaphores_.empty()) return nullptr;
    const auto found = semaphore_of_.find(key);
    return found == semaphore_of_.end() ? nullptr : found->second;
  }
  const std::deque<semaphore>& semaphores() const noexcept { return semaphores_; }
  void add_shared(const detail::lock_keys& keys) {
    const auto& added = shared_.emplace_back(keys);
    for (const auto* key : {&added.name, &added.queue, &added.readers, &added.turn}) shared_of_[*key] = &added;
  }
  /// The shared mutex that has this key; null: none.
  const shared_names* shared_of(std::string_view key) const {
    if (shared_.empty()) return nullptr;
    if (const auto found = shared_of_.find(key); found != shared_of_.end()) return found->second;
    const auto deadline = std::ranges::find_if(shared_, [&](const auto& each) { return each.is_deadline(key); });
    return deadline == shared_.end() ? nullptr : &*deadline;
  }
  void add_fair(const detail::lock_keys& keys) {
    const auto& added = fair_.emplace_back(keys);
    for (const auto* key : {&added.name, &added.queue, &added.deadlines}) fair_of_[*key] = &added;
  }
  /// The fair mutex that has this key; null: none.
  const fair_names* fair_of(std::string_view key) const {
    const auto found = fair_of_.find(key);
    return found == fair_of_.end() ? nullptr : found->second;
  }
  const std::deque<fair_names>& fair() const noexcept { return fair_; }
  void add_latch(const detail::lock_keys& keys) { latches_.insert(keys.lock); }
  /// A latch or a mark of one: it has no owner.
  bool of_latch(std::string_view key) const { return latches_.contains(key) || key.starts_with(mark_stem); }
  const std::deque<shared_names>& shared() const noexcept { return shared_; }
  /// The name of the lock that has this key.
  const std::string& name_of(const std::string& key) const {
    if (const auto* of = semaphore_of(key)) return of->name;
    if (const auto* of = fair_of(key)) return of->name;
    const auto* of = shared_of(key);
    return of ? of->name : key;
  }
  /// The claims that may stand at once take no more than this together.
  std::size_t capacity_of(std::string_view name) const {
    const auto* of = semaphore_of(name);
    return of ? of->total : shared_of(name) ? most_readers : 1;
  }
  /// The part of the capacity that a claim by these fields takes: a writer takes all of it.
  std::size_t taken_by(std::string_view name, const std::vector<std::string>& fields) const {
    return shared_of(name) && shared_names::writes(fields.front()) ? most_readers : fields.size();
  }

  std::size_t nodes() const noexcept { return nodes_; }
  std::size_t majority() const noexcept { return nodes_ / 2 + 1; }
  /// Several independent nodes vote.
  bool votes() const noexcept { return nodes_ > 1; }

  /// The server that has this key of a node.
  server& holder(std::size_t node, std::string_view key) const {
    return servers_.machines()[servers_.holder(node, key)];
  }
  const keyspace::entry* find(std::size_t node, std::string_view key) const {
    return std::as_const(holder(node, key).program().keys()).find(key);
  }
  static time_point end_of(server& at, const keyspace::entry& e) {
    return e.expires ? at.clock().end_of(*e.expires) : time_point::max();
  }

  /// When a permit with this end is over.
  static time_point end_of(server& at, double end) { return at.clock().end_of(static_cast<wall_ms>(end) - 1); }
  /// Between a client, or one of its places, and the key in which it stands.
  static constexpr std::string_view place = " waits in ";
  static std::string place_of(std::string_view waiter, std::string_view queue) {
    return std::string(waiter).append(place).append(queue);
  }
  /// Until when this server keeps `field` of a name; nothing: it has none.
  std::optional<time_point> kept_until(server& at, std::string_view name, std::string_view field) const;

  /// Until when a majority has this field; nothing: fewer have it.
  std::optional<time_point> backed_until(std::string_view name, std::string_view field) const;
  /// Until when a majority has all of these fields.
  std::optional<time_point> backed_until(std::string_view name, const std::vector<std::string>& fields) const;
  /// Since when something is true at a majority; nothing: it is true at fewer.
  std::optional<time_point> majority_since(std::vector<time_point> each) const;

  /// After each script: a hold that the node grants now may be over in the same instant.
  void note_backing();
  /// When a majority last kept all of these fields until `until` at least.
  std::optional<time_point> last_backed(const std::string& name, const std::vector<std::string>& fields,
                                        time_point until) const;

  /// `use(name, field, end)` for each owner that a server has at this key, and for each permit, also those that have
  /// ended.
  template <class Use>
  void each_owner(server& at, const std::string& key, const keyspace::entry& e, Use use) const {
    if (!latches_.empty() && of_latch(key)) return;
    if (const auto* of = shared_of(key)) {
      if (key == of->name)
        sim::each_owner(key, e, [&](const std::string& field) { use(key, field, end_of(at, *of, e, field)); });
      return;
    }
    const auto* fair = fair_of(key);
    if (fair && key != fair->name) return;  // places are no owners
    const auto* of = semaphore_of(key);
    if (!of) return sim::each_owner(key, e, [&](const std::string& field) { use(key, field, end_of(at, e)); });
    if (key == of->permits && e.sorted())
      for (const auto& [end, id] : e.sorted()->members()) use(of->name, id, end_of(at, end));
  }
  /// The same, for a door, which has the first id of its waiter, and for each place in a queue. The place of a client
  /// that has one is named by the client and the key. A replica may remember places, and their end is then their TTL.
  template <class Use>
  void each_trace(server& at, const std::string& key, const keyspace::entry& e, Use use) const {
    each_owner(at, key, e, use);
    if (const auto* of = semaphore_of(key); of && key == of->door && e.text()) use(of->name, *e.text(), end_of(at, e));
    if (servers_.fails_over()) return;
    if (const auto* of = fair_of(key); of && key == of->queue && e.list())
      for (const auto& each : *e.list()) use(of->name, place_of(each, key), end_of(at, e));
    const auto* of = shared_of(key);
    if (of && (key == of->queue || key == of->readers) && e.sorted())
      for (const auto& [score, client] : e.sorted()->members()) use(of->name, place_of(client, key), end_of(at, e));
  }
  /// `use(name, field, end)` for each owner of each lock that a node has.
  template <class Use>
  void each_field(std::size_t node, Use use) const {
    servers_.each_key(node, [&](server& at, const std::string& key, const keyspace::entry& e) {
      each_owner(at, key, e, unless_over(use));
    });
  }
  /// The same, for each door and for each place in a queue.
  template <class Use>
  void each_trace(std::size_t node, Use use) const {
    servers_.each_key(node, [&](server& at, const std::string& key, const keyspace::entry& e) {
      each_trace(at, key, e, unless_over(use));
    });
  }

 private:
  template <class Use>
  auto unless_over(Use& use) const {
    return [this, &use](const std::string& name, const std::string& field, time_point end) {
      if (end > plan_.now()) use(name, field, end);
    };
  }
  struct backing {
    time_point until, seen;
  };
  template <class T>
  using by_text = std::map<std::string, T, std::less<>>;

  std::optional<time_point> last_backed(const by_text<std::vector<backing>>& fields, std::string_view field,
                                        time_point until) const;
  /// `use(key, field, until)` for each field that a majority has.
  template <class Use>
  void each_backing(Use use) const;

  static constexpr std::size_t most_readers = 1000;

  /// A reader is dead for a writer when its deadline is over.
  time_point end_of(server& at, const shared_names& of, const keyspace::entry& lock, std::string_view field) const;

  scheduler& plan_;
  deployment& servers_;
  const std::size_t nodes_;
  std::deque<semaphore> semaphores_;
  std::unordered_map<std::string_view, const semaphore*> semaphore_of_;  // by each of their keys
  std::deque<shared_names> shared_;
  std::unordered_map<std::string_view, const shared_names*> shared_of_;  // without deadlines
  std::deque<fair_names> fair_;
  std::unordered_map<std::string_view, const fair_names*> fair_of_;  // by each of their keys
  std::set<std::string, std::less<>> latches_;
  by_text<by_text<std::vector<backing>>> backing_;  // by key and field
};

}  // namespace holdfast::sim
