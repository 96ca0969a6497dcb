// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "sim/judge/storage.hpp"

namespace holdfast::sim {

/// What has become of an owner's field at a node.
struct field_record {
  time_point first_seen;
  nanoseconds outage{};        // its client's longest while the field was there
  nanoseconds stepped_back{};  // by the node's clock meanwhile
  std::optional<time_point> unwanted_since{};
  bool met_replica = false, unfenced = false;
  bool replaced = false;  // a server that was replaced has answered, or has known, more than the next one knows
};

class field_book {
 public:
  explicit field_book(scheduler& plan) : plan_(plan) {}

  field_record& at(std::size_t node, const std::string& field) {
    return fields_.try_emplace({node, field}, field_record{.first_seen = plan_.now()}).first->second;
  }
  /// `use(node, key, field, record, end)` for each field and door that is stored; every other one is forgotten.
  template <class Use>
  void visit_stored(const storage& stored, Use use) {
    auto before = std::exchange(fields_, {});
    for (std::size_t node = 0; node < stored.nodes(); ++node)
      stored.each_trace(node, [&](const std::string& key, const std::string& field, time_point end) {
        fields_.insert(before.extract({node, field}));
        use(node, key, field, at(node, field), end);
      });
  }
  /// By node and field.
  const std::map<std::pair<std::size_t, std::string>, field_record>& all() const noexcept { return fields_; }

 private:
  scheduler& plan_;
  std::map<std::pair<std::size_t, std::string>, field_record> fields_;
};

}  // namespace holdfast::sim
