// SPDX-License-Identifier: BSL-1.0
#pragma once
// A lock of one server and a lock of a majority look alike to a judge: it asks for the time until which a majority of
// the nodes backs a field, and one node is its own majority. A node is a server, or several of which one at a time has
// a key.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/judge/stored_lock.hpp"

namespace holdfast::sim {

/// What the nodes have stored, by their majority.
class storage {
 public:
  storage(scheduler& plan, deployment& servers) : plan_(plan), servers_(servers), nodes_(servers.units()) {}

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

  /// Until when a majority has this field; nothing: fewer have it.
  std::optional<time_point> backed_until(std::string_view name, std::string_view field) const;
  /// Since when something is true at a majority; nothing: it is true at fewer.
  std::optional<time_point> majority_since(std::vector<time_point> each) const;

  /// After each script: a hold that the node grants now may be over in the same instant.
  void note_backing();
  /// When a majority last kept `field` until `until` at least.
  std::optional<time_point> last_backed(const std::string& name, std::string_view field, time_point until) const;

  /// `use(key, field, end)` for each owner of each lock that a node has.
  template <class Use>
  void each_field(std::size_t node, Use use) const {
    servers_.each_key(node, [&](server& at, const std::string& key, const keyspace::entry& e) {
      const auto end = end_of(at, e);
      each_owner(key, e, [&](const std::string& field) { use(key, field, end); });
    });
  }

 private:
  struct backing {
    time_point until, seen;
  };
  template <class T>
  using by_text = std::map<std::string, T, std::less<>>;

  /// `use(key, field, until)` for each field that a majority has.
  template <class Use>
  void each_backing(Use use) const;

  scheduler& plan_;
  deployment& servers_;
  const std::size_t nodes_;
  by_text<by_text<std::vector<backing>>> backing_;  // by key and field
};

}  // namespace holdfast::sim
