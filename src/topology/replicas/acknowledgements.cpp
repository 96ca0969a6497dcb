// SPDX-License-Identifier: BSL-1.0
#include "topology/replicas/acknowledgements.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace holdfast::detail {
namespace {

/// Redis looks ten times a second whether the time of a WAIT is over.
constexpr std::chrono::milliseconds wait_lateness{100};

}  // namespace

std::optional<acknowledgements::question> acknowledgements::begin(time_point now) {
  if (under_way_ || next_.empty()) return std::nullopt;
  under_way_ = true;
  asked_ = std::exchange(next_, {});
  question q{0, time_point::max(), asked_.front().key};
  for (const auto& w : asked_) {
    q.replicas = std::max(q.replicas, w.what.wanted);
    q.until = std::min(q.until, w.what.deadline);
  }
  q.until -= std::clamp<lease_clock::duration>((q.until - now) / 2, {}, wait_lateness);
  until_ = q.until;
  key_ = q.key;
  return q;
}

std::vector<acknowledgements::answer> acknowledgements::end(const std::optional<redis::failure>& failed, unsigned had,
                                                            std::uint64_t server, time_point now) {
  under_way_ = false;
  std::vector<answer> all;
  for (auto& w : std::exchange(asked_, {})) {
    if (failed) {
      all.push_back({std::move(w.done), failed, 0});
    } else if (server == 0) {
      all.push_back({std::move(w.done),
                     redis::failure{errc::no_permission, "without INFO nobody knows which server has answered"}, 0});
    } else if (w.what.server != server) {
      all.push_back({std::move(w.done), redis::failure{errc::unreachable, "another server has answered"}, 0});
    } else if (had >= w.what.wanted || now >= w.what.deadline || now < until_) {
      all.push_back({std::move(w.done), std::nullopt, had});
    } else {
      next_.push_back(std::move(w));
    }
  }
  return all;
}

std::vector<acknowledgements::answer> acknowledgements::refuse(const redis::failure& why) {
  under_way_ = false;
  std::vector<answer> all;
  std::vector<waiter> others;
  for (auto& w : std::exchange(asked_, {})) {
    if (w.key == key_)
      all.push_back({std::move(w.done), why, 0});
    else
      others.push_back(std::move(w));
  }
  next_.insert(next_.begin(), std::move_iterator(others.begin()), std::move_iterator(others.end()));
  return all;
}

std::optional<time_point> acknowledgements::next_deadline() const {
  std::optional<time_point> first;
  for (const auto* waiters : {&asked_, &next_})
    for (const auto& w : *waiters) first = std::min(first.value_or(w.what.deadline), w.what.deadline);
  return first;
}

std::vector<acknowledgements::answer> acknowledgements::expire(time_point now) {
  std::vector<answer> all;
  for (auto* waiters : {&asked_, &next_}) {
    std::vector<waiter> left;
    for (auto& w : *waiters) {
      if (now >= w.what.deadline)
        all.push_back({std::move(w.done), redis::failure{errc::unreachable, "no answer in time"}, 0});
      else
        left.push_back(std::move(w));
    }
    *waiters = std::move(left);
  }
  return all;
}

}  // namespace holdfast::detail
