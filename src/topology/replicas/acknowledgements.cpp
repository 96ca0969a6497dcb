// SPDX-License-Identifier: BSL-1.0
#include "topology/replicas/acknowledgements.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace holdfast::detail {
namespace {

/// Redis checks the timeout of a WAIT ten times a second.
constexpr std::chrono::milliseconds wait_lateness{100};

}  // namespace

std::optional<acknowledgements::question> acknowledgements::begin(time_point now) {
  if (under_way_ || next_.empty()) return std::nullopt;
  under_way_ = true;
  asked_ = std::exchange(next_, {});
  question question{0, time_point::max(), asked_.front().key};
  for (const auto& waiter : asked_) {
    question.replicas = std::max(question.replicas, waiter.wanted.wanted);
    question.until = std::min(question.until, waiter.wanted.deadline);
  }
  question.until -= std::clamp<lease_clock::duration>((question.until - now) / 2, {}, wait_lateness);
  until_ = question.until;
  key_ = question.key;
  return question;
}

std::vector<acknowledgements::answer> acknowledgements::end(const std::optional<redis::failure>& failed, unsigned had,
                                                            std::uint64_t server, time_point now) {
  under_way_ = false;
  std::vector<answer> all;
  for (auto& waiter : std::exchange(asked_, {})) {
    if (failed) {
      all.push_back({std::move(waiter.done), failed, 0});
    } else if (server == 0) {
      all.push_back({std::move(waiter.done),
                     redis::failure{errc::no_permission, "without INFO nobody knows which server has answered"}, 0});
    } else if (waiter.wanted.server != server) {
      all.push_back({std::move(waiter.done), redis::failure{errc::unreachable, "another server has answered"}, 0});
    } else if (had >= waiter.wanted.wanted || now >= waiter.wanted.deadline || now < until_) {
      all.push_back({std::move(waiter.done), std::nullopt, had});
    } else {
      next_.push_back(std::move(waiter));
    }
  }
  return all;
}

std::vector<acknowledgements::answer> acknowledgements::refuse(const redis::failure& why) {
  under_way_ = false;
  std::vector<answer> all;
  std::vector<waiter> others;
  for (auto& waiter : std::exchange(asked_, {})) {
    if (waiter.key == key_)
      all.push_back({std::move(waiter.done), why, 0});
    else
      others.push_back(std::move(waiter));
  }
  next_.insert(next_.begin(), std::move_iterator(others.begin()), std::move_iterator(others.end()));
  return all;
}

std::optional<time_point> acknowledgements::next_deadline() const {
  std::optional<time_point> first;
  for (const auto* waiters : {&asked_, &next_})
    for (const auto& waiter : *waiters)
      first = std::min(first.value_or(waiter.wanted.deadline), waiter.wanted.deadline);
  return first;
}

std::vector<acknowledgements::answer> acknowledgements::expire(time_point now) {
  std::vector<answer> all;
  for (auto* waiters : {&asked_, &next_}) {
    std::vector<waiter> left;
    for (auto& waiter : *waiters) {
      if (now >= waiter.wanted.deadline)
        all.push_back({std::move(waiter.done), redis::failure{errc::unreachable, "no answer in time"}, 0});
      else
        left.push_back(std::move(waiter));
    }
    *waiters = std::move(left);
  }
  return all;
}

}  // namespace holdfast::detail
