// SPDX-License-Identifier: BSL-1.0
#include "cli/web/lock_board.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/lock_text.hpp"

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;
using point = lock_board::instant;

constexpr long long no_ttl = -1;
constexpr milliseconds longest_ttl = std::chrono::years(100);  // shown; Redis accepts any

/// The ends of the holds; the greatest instant: never.
std::vector<point> ends_of(const lock_facts& lock, point now) {
  std::vector<point> ends;
  for (const auto& hold : lock.holds)
    ends.push_back(hold.ttl < 0 ? point::max() : now + std::min(milliseconds(hold.ttl), longest_ttl));
  return ends;
}

bool have_moved(const std::vector<point>& before, const std::vector<point>& after) {
  return !std::ranges::equal(before, after, [](point left, point right) {
    if (left == point::max() || right == point::max()) return left == right;
    return std::chrono::abs(left - right) <= lock_board::least_move;
  });
}

lock_facts without_ttls(lock_facts lock) {
  for (auto& hold : lock.holds) hold.ttl = no_ttl;
  return lock;
}

std::string item(std::uint64_t id, milliseconds age, const std::string& lock) {
  return "{\"id\":" + std::to_string(id) + ",\"age_ms\":" + std::to_string(age.count()) + ",\"lock\":" + lock + '}';
}

void join(std::string& list, const std::string& element) {
  if (!list.empty()) list += ',';
  list += element;
}

}  // namespace

std::string lock_board::replace(const std::map<std::string, lock_facts>& locks, instant now) {
  changes made;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (locks.contains(entry->first)) {
      ++entry;
      continue;
    }
    join(made.gone, std::to_string(entry->second.id));
    entry = entries_.erase(entry);
  }
  for (const auto& [name, lock] : locks) put(name, lock, now, made);
  hidden_ = locks.size() - entries_.size();
  sample(now);
  return finish(made);
}

std::string lock_board::set(const std::string& name, const lock_facts* lock, instant now) {
  changes made;
  if (lock) {
    put(name, *lock, now, made);
  } else if (const auto entry = entries_.find(name); entry != entries_.end()) {
    join(made.gone, std::to_string(entry->second.id));
    entries_.erase(entry);
  }
  sample(now);
  return finish(made);
}

void lock_board::put(const std::string& name, const lock_facts& lock, instant now, changes& made) {
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    if (entries_.size() >= most_shown) return;
    found = entries_.emplace(name, entry{.id = ++last_id_}).first;
  }
  auto& entry = found->second;
  auto shape = without_ttls(lock);
  auto ends = ends_of(lock, now);
  if (!entry.text.empty() && shape == entry.shape && !have_moved(entry.ends, ends)) return;
  entry.shape = std::move(shape);
  entry.ends = std::move(ends);
  entry.text = boost::json::serialize(json_of(lock));
  entry.read_at = now;
  join(made.changed, item(entry.id, milliseconds{}, entry.text));
}

std::string lock_board::finish(const changes& made) {
  if (made.changed.empty() && made.gone.empty()) return {};
  return "{\"revision\":" + std::to_string(++revision_) + ",\"changed\":[" + made.changed + "],\"gone\":[" + made.gone +
         "],\"hidden\":" + std::to_string(hidden_) + '}';
}

std::string lock_board::snapshot(instant now) const {
  std::string locks, samples;
  for (const auto& [name, entry] : entries_)
    join(locks, item(entry.id, std::chrono::duration_cast<milliseconds>(now - entry.read_at), entry.text));
  for (const auto waiters : samples_) join(samples, std::to_string(waiters));
  return "\"revision\":" + std::to_string(revision_) + ",\"locks\":[" + locks +
         "],\"hidden\":" + std::to_string(hidden_) + ",\"sample_s\":" + std::to_string(sample_time.count()) +
         ",\"waiters\":[" + samples + ']';
}

void lock_board::sample(instant now) {
  long long waiters = 0;
  for (const auto& [name, entry] : entries_) waiters += entry.shape.waiters.value_or(0);
  if (samples_.empty() || now >= next_sample_) {
    samples_.push_back(waiters);
    next_sample_ = now + sample_time;
  }
  samples_.back() = std::max(samples_.back(), waiters);
  if (samples_.size() > most_samples) samples_.pop_front();
}

std::string lock_board::gauges() const {
  struct figures {
    long long locks = 0, waiters = 0;
  };
  std::map<std::string_view, figures> kinds;
  for (const auto& [name, entry] : entries_) {
    auto& kind = kinds[entry.shape.kind];
    ++kind.locks;
    kind.waiters += entry.shape.waiters.value_or(0);
  }
  std::string locks = "# HELP holdfast_page_locks Locks that the page shows.\n# TYPE holdfast_page_locks gauge\n";
  std::string waiters = "# HELP holdfast_page_waiters Their waiters.\n# TYPE holdfast_page_waiters gauge\n";
  for (const auto& [kind, count] : kinds) {
    const auto label = "{kind=\"" + std::string(kind) + "\"} ";
    locks += "holdfast_page_locks" + label + std::to_string(count.locks) + '\n';
    waiters += "holdfast_page_waiters" + label + std::to_string(count.waiters) + '\n';
  }
  return locks + waiters;
}

}  // namespace holdfast::cli
