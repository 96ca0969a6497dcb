// SPDX-License-Identifier: BSL-1.0
#include "redis/pending_queue.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::redis {

namespace {

// Bytes that never become an answer are a sign of life for so many timeouts and no longer.
constexpr int longest_dribble = 4;

pending_queue::duration dribble_of(pending_queue::duration patience) {
  constexpr auto most = pending_queue::duration::max();
  return patience > most / longest_dribble ? most : longest_dribble * patience;
}

}  // namespace

void pending_queue::push(std::string command, time_point deadline, time_point now, handler done) {
  entries_.push_back({std::move(command), std::move(done), deadline, std::max(deadline - now, least_patience_)});
}

void pending_queue::write(std::string& out, std::size_t enough, time_point now) {
  for (; written_ < entries_.size() && out.size() < enough; ++written_) {
    auto& e = entries_[written_];
    out += e.command;
    e.command = {};
    e.written = now;
  }
}

std::optional<handler> pending_queue::take_answered(time_point now) {
  if (written_ == 0) return std::nullopt;
  last_answer_ = now;
  auto done = std::move(entries_.front().done);
  entries_.pop_front();
  --written_;
  return done;
}

pending_queue::review pending_queue::look(time_point now, time_point last_input) {
  review r;
  auto look_at = [&](time_point when) { r.next = r.next ? std::min(*r.next, when) : when; };
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    auto& e = entries_[i];
    const bool written = i < written_;
    if (e.done && e.deadline <= now) r.over.push_back({std::exchange(e.done, {}), written});
    if (e.done) look_at(e.deadline);
    if (!written || e.done) continue;
    const auto given_up = std::min(detail::saturating_add(std::max(e.written, last_input), e.patience),
                                   detail::saturating_add(std::max(e.written, last_answer_), dribble_of(e.patience)));
    if (given_up <= now)
      r.silent = true;
    else
      look_at(given_up);
  }
  entries_.erase(std::remove_if(entries_.begin() + static_cast<std::ptrdiff_t>(written_), entries_.end(),
                                [](const entry& e) { return !e.done; }),
                 entries_.end());
  return r;
}

std::vector<handler> pending_queue::lose_written() {
  std::vector<handler> lost;
  for (; written_ != 0; --written_) {
    if (entries_.front().done) lost.push_back(std::move(entries_.front().done));
    entries_.pop_front();
  }
  return lost;
}

std::vector<handler> pending_queue::lose_waiting() {
  std::vector<handler> lost;
  for (auto& e : entries_) lost.push_back(std::move(e.done));
  entries_.clear();
  return lost;
}

void pending_queue::clear() noexcept {
  written_ = 0;
  while (!entries_.empty()) {
    const auto dropped = std::move(entries_.front().done);  // may own what calls us back when it is destroyed
    entries_.pop_front();
  }
}

}  // namespace holdfast::redis
