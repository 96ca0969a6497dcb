// SPDX-License-Identifier: BSL-1.0
#include "topology/sentinel/sentinel_resolver.hpp"

#include <algorithm>
#include <map>

#include "base/assert.hpp"
#include "base/escape.hpp"

namespace holdfast::detail {
namespace {

using namespace std::chrono_literals;

constexpr lease_clock::duration question_interval = 1s;
constexpr lease_clock::duration word_valid = 3s;  // three rounds of questions
constexpr lease_clock::duration shunned_for = 200ms;
constexpr lease_clock::duration longest_round = 250ms;
constexpr lease_clock::duration agreement = 10s;
constexpr unsigned questions_per_list = 10;
constexpr lease_clock::duration forgotten_after = 30s;  // three lists
constexpr std::size_t longest_shown_name = 240;

redis::failure fail_at(const redis::address& at, error_code code, std::string_view cause) {
  redis::endpoint there;
  there.at = at;
  return redis::fail(there, code, cause);
}

}  // namespace

sentinel_resolver::sentinel_resolver(std::string_view primary_name, const std::vector<redis::address>& seeds,
                                     bool strict, reach_by reach)
    : name_(escaped(primary_name, longest_shown_name)), strict_(strict), reach_(std::move(reach)) {
  HOLDFAST_ASSERT(!seeds.empty());
  for (const auto& at : seeds)
    if (known_.size() < most_known) known_.push_back({.id = ids_++, .at = at, .seed = true});
}

void sentinel_resolver::start(time_point now) {
  if (std::exchange(asking_, true)) return;
  if (ready_ && last_word_ && now - *last_word_ <= question_interval) return;
  ready_ = was_trusted_ = false;
  started_ = now;
  lower_.reset();
  for (auto& entry : known_) {
    entry.heard = false;
    entry.named = now;
  }
  decide(now);
}

std::vector<sentinel_resolver::sentinel> sentinel_resolver::known() const {
  std::vector<sentinel> all;
  for (const auto& entry : known_) all.push_back({entry.id, entry.at});
  return all;
}

template <class Predicate>
sentinel_resolver::entry* sentinel_resolver::find_if(Predicate matches) {
  const auto found = std::find_if(known_.begin(), known_.end(), matches);
  return found == known_.end() ? nullptr : &*found;
}

sentinel_resolver::entry* sentinel_resolver::find(sentinel_id id) {
  return find_if([id](const entry& entry) { return entry.id == id; });
}

std::vector<sentinel_resolver::question> sentinel_resolver::take_due(time_point now) {
  std::vector<question> due;
  if (!asking_) return due;
  for (auto& entry : known_) {
    if (entry.asked || entry.next > now) continue;
    entry.asked = true;
    entry.next = now + question_interval;
    due.push_back({entry.id, entry.questions % questions_per_list == 0});
  }
  return due;
}

void sentinel_resolver::ask_soon(sentinel_id id, time_point now) {
  auto* entry = find(id);
  if (!entry) return;
  if (entry->asked)
    entry->again = true;  // the answer that is on its way may be older than the news
  else
    entry->next = now;
}

void sentinel_resolver::ask_all_soon(time_point now) {
  for (const auto& entry : known_) ask_soon(entry.id, now);
}

void sentinel_resolver::answered(entry& entry, time_point now) {
  entry.asked = false;
  if (std::exchange(entry.again, false)) entry.next = now;
}

void sentinel_resolver::replied(sentinel_id id, const sentinel_answer& answer, time_point now) {
  auto* entry = find(id);
  if (!entry) return;
  answered(*entry, now);
  ++entry->questions;
  entry->heard = true;
  entry->named = now;
  if (answer.word) {
    entry->word = {reached(answer.word->primary), answer.word->epoch};
    entry->spoken = now;
    entry->why.reset();
    entry->moved = false;
    last_word_ = now;
  } else {
    entry->why = fail_at(entry->at, answer.why.code, answer.why.detail);
  }
  decide(now);
}

void sentinel_resolver::failed(sentinel_id id, redis::failure why, time_point now) {
  auto* entry = find(id);
  if (!entry) return;
  answered(*entry, now);
  entry->questions = 0;
  down(id, std::move(why), now);
}

void sentinel_resolver::down(sentinel_id id, redis::failure why, time_point now) {
  auto* entry = find(id);
  if (!entry) return;
  entry->heard = true;
  entry->why = std::move(why);
  decide(now);
}

void sentinel_resolver::identified(sentinel_id id, const std::string& run) {
  auto* sentinel = find(id);
  if (!sentinel || run.empty()) return;
  sentinel->run = run;
  sentinel->moved = false;
  // The same sentinel was given by one address and learnt by another.
  std::erase_if(known_, [&](const entry& other) { return other.run == run && other.id != id && !other.seed; });
}

void sentinel_resolver::listed(const std::vector<listed_sentinel>& others, time_point now) {
  for (const auto& other : others) name({other.run, reached(other.at)}, now);
  std::erase_if(known_, [now](const entry& entry) { return !entry.seed && now - entry.named > forgotten_after; });
  // A seed whose new address is forgotten counts at the given address again. Otherwise too few would be a majority.
  for (auto& sentinel : known_)
    if (sentinel.moved)
      sentinel.moved = find_if([&](const entry& other) { return !other.seed && other.run == sentinel.run; }) != nullptr;
  decide(now);
}

void sentinel_resolver::name(const listed_sentinel& other, time_point now) {
  auto* found = find_if([&](const entry& entry) { return entry.run == other.run && !entry.moved; });
  if (found && found->at != other.at) {
    if (!found->seed) {
      std::erase_if(known_, [&](const entry& entry) { return entry.run == other.run && !entry.seed; });
      found = nullptr;
    } else if (found->why && !counts(*found, now)) {  // else it is known by another address
      found->moved = true;
      found = nullptr;
    }
  }
  if (!found) found = find_if([&](const entry& entry) { return entry.at == other.at; });
  if (found) {
    found->run = other.run;
    found->named = now;
  } else if (known_.size() < most_known) {
    known_.push_back({.id = ids_++, .at = other.at, .seed = false, .run = other.run, .named = now});
  }
}

void sentinel_resolver::refused(const redis::address& at, time_point now) {
  shunned_ = at;
  shunned_until_ = now + shunned_for;
}

void sentinel_resolver::look(time_point now) { decide(now); }

bool sentinel_resolver::counts(const entry& entry, time_point now) {
  return entry.word && now - entry.spoken <= word_valid;
}

std::size_t sentinel_resolver::speakers(time_point now) const {
  return static_cast<std::size_t>(
      std::count_if(known_.begin(), known_.end(), [&](const entry& entry) { return counts(entry, now); }));
}

std::size_t sentinel_resolver::members() const {
  return static_cast<std::size_t>(
      std::count_if(known_.begin(), known_.end(), [](const entry& entry) { return !entry.moved; }));
}

bool sentinel_resolver::trusted(time_point now) const { return 2 * speakers(now) > members(); }

bool sentinel_resolver::unreachable(time_point now) const {
  return asking_ && untrusted_since_ && now - *untrusted_since_ >= word_valid;
}

void sentinel_resolver::watch_trust(time_point now) {
  if (trusted(now)) {
    was_trusted_ = true;
    untrusted_since_.reset();
  } else if (asking_ && !untrusted_since_) {
    untrusted_since_ = was_trusted_ ? now - word_valid : now;
  }
}

void sentinel_resolver::decide(time_point now) {
  watch_trust(now);
  choose(now);
  std::size_t heard = 0, spoken = 0;
  for (const auto& entry : known_) {
    heard += entry.heard;
    spoken += counts(entry, now) && entry.spoken >= started_;
  }
  ready_ |= heard == known_.size() || 2 * spoken > members() || now - started_ >= longest_round;
}

void sentinel_resolver::choose(time_point now) {
  std::optional<std::uint64_t> newest;
  for (const auto& entry : known_)
    if (counts(entry, now) && entry.word->epoch) newest = std::max(newest.value_or(0), *entry.word->epoch);
  if (auto at = most_frequent(now, std::nullopt, members() / 2)) {
    target_ = std::move(at);
  } else if (newest && (!highest_ || *newest >= *highest_)) {
    highest_ = newest;
    target_ = most_frequent(now, newest, 0);
  } else if (!newest && !target_) {
    target_ = most_frequent(now, std::nullopt, speakers(now) / 2);
  }
  consider_lower(now);
}

// Counts the words of this epoch. The address in use stays as long as one of them names it.
std::optional<redis::address> sentinel_resolver::most_frequent(time_point now, std::optional<std::uint64_t> epoch,
                                                               std::size_t more_than) const {
  std::map<redis::address, std::size_t> times;
  for (const auto& entry : known_)
    if (counts(entry, now) && entry.word->epoch == epoch) ++times[entry.word->primary];
  if (epoch && ready_ && target_ && times.count(*target_) != 0) return target_;
  const auto most = std::max_element(times.begin(), times.end(),
                                     [](const auto& left, const auto& right) { return left.second < right.second; });
  return most != times.end() && most->second > more_than ? std::optional(most->first) : std::nullopt;
}

// All sentinels were set up anew: each that has ever spoken reports the same, and they are a majority.
void sentinel_resolver::consider_lower(time_point now) {
  const auto* first = find_if([](const entry& entry) { return entry.word.has_value(); });
  const bool agreed = first && trusted(now) && std::all_of(known_.begin(), known_.end(), [&](const entry& entry) {
                        return entry.moved || !entry.word ||
                               (counts(entry, now) && entry.word->epoch && highest_ && *entry.word->epoch < *highest_ &&
                                entry.word->epoch == first->word->epoch && entry.word->primary == first->word->primary);
                      });
  if (!agreed) return lower_.reset();
  if (!lower_ || lower_->epoch != *first->word->epoch || lower_->at != first->word->primary)
    lower_ = {first->word->primary, *first->word->epoch, now};
  if (now - lower_->since < agreement) return;
  highest_ = lower_->epoch;
  target_ = lower_->at;
  lower_.reset();
}

bool sentinel_resolver::open(time_point now) const {
  const bool shunned = target_ == shunned_ && now < shunned_until_;
  return target_ && ready_ && !shunned && (!strict_ || trusted(now));
}

bool sentinel_resolver::hopeless(time_point now) const {
  return (!target_ || strict_) && std::all_of(known_.begin(), known_.end(),
                                              [&](const entry& entry) { return entry.heard && !counts(entry, now); });
}

redis::failure sentinel_resolver::trouble(time_point now) const {
  if (target_ && target_ == shunned_ && now < shunned_until_ && trusted(now))
    return fail_at(*target_, errc::unreachable, "no primary at present, though the sentinels of " + name_ + " name it");
  std::optional<error_code> common;
  bool agreed = true;
  std::string all;
  for (const auto& entry : known_) {
    if (counts(entry, now)) continue;
    const auto why = entry.why.value_or(fail_at(entry.at, errc::unreachable, "no answer yet"));
    all += (all.empty() ? ": " : "; ") + why.detail;
    if (!why.is_answer()) continue;
    agreed &= common.value_or(why.code) == why.code;
    common = why.code;
  }
  if (common == errc::auth_failed) all += " (sentinel.user, sentinel.password)";
  if (target_) return {errc::unreachable, "too few of the sentinels of " + name_ + " speak" + all};
  return {common && agreed ? *common : errc::unreachable, "no sentinel names the primary " + name_ + all};
}

std::optional<time_point> sentinel_resolver::next_look(time_point now) const {
  if (!asking_) return std::nullopt;
  std::optional<time_point> next;
  const auto also = [&](time_point when) {
    if (when > now && (!next || when < *next)) next = when;
  };
  for (const auto& entry : known_) {
    if (!entry.asked) also(entry.next);
    if (counts(entry, now)) also(entry.spoken + word_valid + 1ns);
  }
  if (!ready_) also(started_ + longest_round);
  if (shunned_ && shunned_ == target_) also(shunned_until_);
  if (lower_) also(lower_->since + agreement);
  if (untrusted_since_) also(*untrusted_since_ + word_valid);
  return next;
}

}  // namespace holdfast::detail
