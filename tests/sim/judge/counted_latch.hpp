// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "testing/sim/commands.hpp"
#include "testing/sim/scheduler.hpp"

namespace holdfast::sim {

/// The count of one latch, as its scripts should leave it. A call of the library changes it once, for as long as Redis
/// has the mark of the call.
class counted_latch {
 public:
  struct mark {
    long long left;  // the count that its call left
    time_point end;
  };
  using marks = std::map<std::string, mark, std::less<>>;

  /// The first rule that a script has broken; empty: none.
  const std::string& violated() const noexcept { return violated_; }
  long long left() const noexcept { return left_; }
  bool open() const noexcept { return left_ == 0; }

  /// The node has this now: a fault or another server has changed it.
  void assume(long long left, marks known) {
    left_ = left;
    marks_ = std::move(known);
  }

  /// latch_set has answered. The mark of its call lives until `mark_end`.
  void ran_set(const std::string& of_call, long long count, const reply& answer, time_point now, time_point mark_end) {
    if (answer.is_error()) return;
    const bool confirms = answer.elements.at(0).integer == 1;
    const bool repeated = is_marked(of_call, now);
    if (confirms != (repeated || open()))
      accuse(confirms ? "a closed latch was set again" : "an open latch was not set");
    if (!confirms) return;
    if (!repeated) left_ = count;
    marks_[of_call] = {count, mark_end};
  }
  /// count_down has answered.
  void ran_count_down(const std::string& of_call, long long n, const reply& answer, time_point now,
                      time_point mark_end) {
    if (answer.is_error()) return;
    const auto known = marks_.find(of_call);
    const bool repeated = is_marked(of_call, now);
    if (!repeated) count(n);
    const auto expected = repeated ? known->second.left : left_;
    const auto answered = answer.elements.at(0).integer;
    if (answered != expected)
      accuse("a count-down answers " + std::to_string(answered) + " instead of " + std::to_string(expected));
    marks_[of_call] = {expected, mark_end};
  }
  /// Another program has set an open latch.
  void set(long long count) { left_ = count; }
  /// Another program has counted down.
  void count(long long n) { left_ = std::max(left_ - n, 0LL); }

  /// The node has this count.
  void compare(long long stored) {
    if (stored != left_) accuse("the count is " + std::to_string(stored) + " instead of " + std::to_string(left_));
  }
  bool is_marked(const std::string& of_call, time_point now) const {
    const auto found = marks_.find(of_call);
    return found != marks_.end() && found->second.end > now;
  }

 private:
  void accuse(std::string deed) {
    if (violated_.empty()) violated_ = std::move(deed);
  }

  long long left_ = 0;
  marks marks_;
  std::string violated_;
};

}  // namespace holdfast::sim
