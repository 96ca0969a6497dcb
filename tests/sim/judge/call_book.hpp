// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/replies.hpp"
#include "sim/sim_client.hpp"

namespace holdfast::sim {

struct call_record {
  const sim_client* client;
  std::string text;
  time_point since;
  std::vector<std::string> waits_for{};  // names of locks
  std::string tries{};                   // the name of a lock that is asked for once
  bool wants_all = false;
  unsigned amount = 1;         // of permits
  bool writes = false;         // a shared mutex
  std::string awaits_latch{};  // the name of a latch that shall open
  std::string observes{};      // the name of an election whose leader shall change
  std::optional<detail::leader_answer> knows{};
  std::optional<time_point> news_since{};  // the node has another leader

  bool waits_for_lock(const std::string& name) const {
    return std::find(waits_for.begin(), waits_for.end(), name) != waits_for.end();
  }
};

/// The calls that have no answer yet.
class call_book {
 public:
  explicit call_book(scheduler& plan) : plan_(plan) {}

  /// The number of the call.
  std::uint64_t begin(const sim_client& client, std::string text) {
    calls_.emplace(++last_, call_record{&client, std::move(text), plan_.now()});
    return last_;
  }
  call_record& at(std::uint64_t call) { return calls_.at(call); }
  /// False: it has no record.
  bool end(std::uint64_t call) { return calls_.erase(call) != 0; }
  std::map<std::uint64_t, call_record>& all() noexcept { return calls_; }
  std::size_t size() const noexcept { return calls_.size(); }

  template <class Condition>
  bool any(Condition condition) const {
    return std::any_of(calls_.begin(), calls_.end(), [&](const auto& each) { return condition(each.second); });
  }

 private:
  scheduler& plan_;
  std::map<std::uint64_t, call_record> calls_;
  std::uint64_t last_ = 0;
};

}  // namespace holdfast::sim
