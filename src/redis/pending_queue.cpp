// SPDX-License-Identifier: BSL-1.0
#include "redis/pending_queue.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/if_memory.hpp"

namespace holdfast::redis {

namespace {

// Bytes that never become an answer are a sign of life for at most this many timeouts.
constexpr int longest_dribble = 4;
constexpr std::size_t most_stale_alarms = 64;

pending_queue::duration dribble_of(pending_queue::duration limit) {
  constexpr auto most = pending_queue::duration::max();
  return limit > most / longest_dribble ? most : longest_dribble * limit;
}

}  // namespace

std::deque<pending_queue::waiting>::iterator pending_queue::line::find(ticket withdrawn) {
  const auto found = std::lower_bound(entries.begin(), entries.end(), withdrawn,
                                      [](const waiting& entry, ticket id) { return entry.id < id; });
  return found != entries.end() && found->id == withdrawn && found->asked.command ? found : entries.end();
}

request pending_queue::line::take(std::deque<waiting>::iterator position) {
  HOLDFAST_ASSERT(alive > 0 && position->asked.command);
  auto asked = std::exchange(position->asked, {});
  --alive;
  close_gaps();
  return asked;
}

void pending_queue::line::drop_front() {
  HOLDFAST_ASSERT(alive > 0);
  --alive;
  entries.pop_front();
  if (entries.size() != alive) close_gaps();
}

void pending_queue::line::close_gaps() {
  while (!entries.empty() && !entries.front().asked.command) entries.pop_front();
  while (!entries.empty() && !entries.back().asked.command) entries.pop_back();
  if (entries.size() > 2 * alive) std::erase_if(entries, [](const waiting& entry) { return !entry.asked.command; });
}

bool pending_queue::refuses(const delivery& delivery) const noexcept {
  return delivery.rank == urgency::refusable && size() >= limits_.capacity - limits_.capacity / 4;
}

bool pending_queue::can_write() const noexcept {
  return trusted_ && (waiting_[0].alive > 0 || waiting_[1].alive > 0) && written_.size() < limits_.window;
}

ticket pending_queue::push(request request, time_point now) {
  HOLDFAST_ASSERT(request.command);
  const bool first = request.terms.rank == urgency::obligation;
  const ticket id = 2 * ++asked_ + (first ? 0 : 1);  // its lowest bit is the index of its line
  if (!trusted_ && watched(request.terms))
    waiting_alarms_.push({detail::saturating_add(now, request.terms.timeout), id});
  auto& line = line_of(id);
  line.entries.push_back({id, std::move(request)});
  ++line.alive;
  return id;
}

bool pending_queue::forget(ticket ticket) {
  auto& line = line_of(ticket);
  const auto found = line.find(ticket);
  if (found == line.entries.end()) return false;
  const auto dropped = line.take(found);  // destroyed when the queue is whole again: its destructor may call us
  return true;
}

void pending_queue::connected(time_point now) {
  trusted_ = true;
  for (; !waiting_alarms_.empty(); waiting_alarms_.pop()) {
    const auto& [when, id] = waiting_alarms_.top();
    auto& line = line_of(id);
    const auto found = line.find(id);
    if (found != line.entries.end()) found->spent = found->asked.terms.timeout - (when - now);
  }
}

void pending_queue::write(std::string& out, std::size_t enough, time_point now) {
  HOLDFAST_ASSERT(trusted_ || asking());
  while (can_write() && out.size() < enough) {
    const auto whole = out.size();
    try {
      write_first(out, waiting_[waiting_[0].alive > 0 ? 0 : 1], now);
    } catch (...) {
      out.resize(whole);
      throw;
    }
  }
}

// If there is no memory to write the command, it waits on.
void pending_queue::write_first(std::string& out, line& line, time_point now) {
  auto& next = line.entries.front();
  auto& asked = next.asked;
  const auto before = prefix_of(asked.terms);
  if (before == prefix::asking) append_command(out, std::array<std::string_view, 1>{"ASKING"});
  if (before == prefix::caching) append_command(out, std::array<std::string_view, 3>{"CLIENT", "CACHING", "YES"});
  asked.command->append_to(out);
  const auto number = answered_ + written_.size();
  written_.push_back({nullptr, asked.terms, now, before, false});
  try {
    if (watched(asked.terms)) written_alarms_.push({detail::saturating_add(now, next.left()), number});
  } catch (...) {
    written_.pop_back();
    throw;
  }
  asked.command->written(now, next.left());
  written_.back().command = std::move(asked.command);
  line.drop_front();
}

pending_queue::prefix pending_queue::prefix_of(const delivery& delivery) const noexcept {
  if (delivery.asking) return prefix::asking;
  return delivery.track && tracking_ ? prefix::caching : prefix::none;
}

pending_queue::duration pending_queue::shortest_wait() const noexcept {
  auto least = duration::max();
  for (const auto& line : waiting_)
    for (const auto& entry : line.entries) {
      const auto& delivery = entry.asked.terms;
      if (!entry.asked.command || delivery.unhurried) continue;
      least = std::min(least, watched(delivery) ? entry.left() : delivery.timeout);
    }
  return least;
}

void pending_queue::ask(std::string& out, duration limit, time_point now) {
  HOLDFAST_ASSERT(trusted_ && written_.empty());
  append_command(out, std::array<std::string_view, 1>{"PING"});
  watch_waiting(now);
  written_.push_back({nullptr, {.timeout = limit, .waits_for_reply = true}, now, prefix::none, true});
  trusted_ = false;
}

std::optional<pending_queue::answered> pending_queue::take_answered(time_point now, bool refused) {
  if (written_.empty()) return std::nullopt;
  last_answer_ = now;
  if (asking()) connected(now);
  auto& oldest = written_.front();
  if (const auto before = std::exchange(oldest.unanswered, prefix::none); before != prefix::none) {
    const bool caching = before == prefix::caching;
    oldest.tracked = caching && !refused;
    return answered{.command = nullptr, .sent = oldest.sent, .to_caching = caching};
  }
  answered answer{.command = std::move(oldest.command), .sent = oldest.sent, .tracked = oldest.tracked && !refused};
  written_.pop_front();
  ++answered_;
  // At least half of the alarms are dropped, so that each pays for at most two steps of such a walk.
  if (written_alarms_.size() > 2 * written_.size() + most_stale_alarms) written_alarms_.drop_before(answered_);
  return answer;
}

void pending_queue::drop_stale_alarms() {
  while (!written_alarms_.empty() && written_alarms_.top().target < answered_) written_alarms_.pop();
}

std::optional<pending_queue::overdue> pending_queue::take_overdue(time_point now) {
  auto overdue = take_overdue_written(now);
  return overdue ? std::move(overdue) : take_overdue_waiting(now);
}

std::optional<pending_queue::overdue> pending_queue::take_overdue_written(time_point now) {
  drop_stale_alarms();
  if (written_alarms_.empty() || written_alarms_.top().when > now) return std::nullopt;
  auto& entry = written_[written_alarms_.top().target - answered_];
  written_alarms_.pop();
  const bool goes_on = entry.terms.waits_for_reply;
  return overdue{goes_on ? entry.command : std::exchange(entry.command, {}), goes_on, true, entry.sent};
}

std::optional<pending_queue::overdue> pending_queue::take_overdue_waiting(time_point now) {
  while (!waiting_alarms_.empty() && waiting_alarms_.top().when <= now) {
    const ticket id = waiting_alarms_.top().target;
    waiting_alarms_.pop();
    auto& line = line_of(id);
    const auto found = line.find(id);
    if (found == line.entries.end()) continue;
    if (!found->asked.terms.waits_for_reply) return overdue{line.take(found).command, false, false, {}};
    if (std::exchange(found->asked.terms.tell_late, false)) return overdue{found->asked.command, true, false, {}};
  }
  return std::nullopt;
}

pending_queue::time_point pending_queue::silence_ends(time_point last_input) const {
  const auto& oldest = written_.front();
  const auto limit = asking() ? oldest.terms.timeout : std::max(oldest.terms.timeout, limits_.least_silence_limit);
  return std::min(detail::saturating_add(std::max(oldest.sent, last_input), limit),
                  detail::saturating_add(std::max(oldest.sent, last_answer_), dribble_of(limit)));
}

bool pending_queue::silent(time_point now, time_point last_input) const {
  return !written_.empty() && silence_ends(last_input) <= now;
}

std::optional<pending_queue::time_point> pending_queue::next_look(time_point last_input) {
  drop_stale_alarms();
  auto next = time_point::max();
  if (!written_.empty()) next = silence_ends(last_input);
  if (!written_alarms_.empty()) next = std::min(next, written_alarms_.top().when);
  if (!waiting_alarms_.empty()) next = std::min(next, waiting_alarms_.top().when);
  return next == time_point::max() ? std::nullopt : std::optional(next);
}

void pending_queue::disconnected(time_point now) {
  HOLDFAST_ASSERT(lost_.empty());
  tracking_ = false;
  answered_ += written_.size();
  written_.swap(lost_);
  written_alarms_ = {};
  // A command that finds no memory for its alarm waits for the next connection.
  if (std::exchange(trusted_, false)) detail::if_memory([&] { watch_waiting(now); });
}

// From now on waiting counts against a timeout.
void pending_queue::watch_waiting(time_point now) {
  for (const auto& line : waiting_)
    for (const auto& entry : line.entries)
      if (entry.asked.command && watched(entry.asked.terms))
        waiting_alarms_.push({detail::saturating_add(now, entry.left()), entry.id});
}

std::optional<pending_queue::answered> pending_queue::next_lost() noexcept {
  while (!lost_.empty()) {
    answered answer{std::move(lost_.front().command), lost_.front().sent};
    lost_.pop_front();
    if (answer.command) return answer;
  }
  return std::nullopt;
}

std::vector<command_ptr> pending_queue::lose_waiting() {
  HOLDFAST_ASSERT(written_.empty());
  std::vector<command_ptr> lost;
  lost.reserve(size());
  for (auto& line : waiting_) {
    for (auto& entry : line.entries)
      if (entry.asked.command) lost.push_back(std::move(entry.asked.command));
    line.entries.clear();
    line.alive = 0;
  }
  waiting_alarms_ = {};
  return lost;
}

// Without memory, too: an empty deque takes some. A dropped command may own an object whose destructor calls us back.
void pending_queue::clear() noexcept {
  for (auto& line : waiting_) {
    line.alive = 0;
    while (!line.entries.empty()) {
      const auto dropped = std::move(line.entries.front().asked);
      line.entries.pop_front();
    }
  }
  answered_ += written_.size();
  for (auto* all : {&written_, &lost_})
    while (!all->empty()) {
      const auto dropped = std::move(all->front());
      all->pop_front();
    }
}

}  // namespace holdfast::redis
