// SPDX-License-Identifier: BSL-1.0
#include "chaos/workload.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using lock_kind = lock_name::kind;

constexpr milliseconds brief{150};    // cheap to outstay
constexpr milliseconds longish{600};  // a section of a longer TTL takes no longer: others wait
constexpr milliseconds longest_section{4000};

// Small numbers are somewhat more likely.
std::size_t skewed_below(dice& d, std::size_t n) {
  const double u = static_cast<double>(d.below(1'000'000)) / 1e6;
  return static_cast<std::size_t>(std::pow(u, 1.2) * static_cast<double>(n));
}

void draw_hold(dice& d, section& s) {
  const bool is_brief = s.ttl <= brief;
  if (!d.per_mille(is_brief ? 60 : 3)) {
    s.hold = d.per_mille(500) ? 0us : d.around(400us);
    return;
  }
  s.renew_by_hand = d.per_mille(200);
  const auto usual = std::min(s.ttl, longish);
  if (s.renewed) {
    s.hold = std::min<microseconds>(d.around(usual * 3 / 4), 2 * usual);
  } else if (is_brief || d.per_mille(300)) {  // beyond its lease: for once no fault but the program is to blame
    s.hold = s.ttl + d.between(10ms, 200ms);
    s.counts = false;
  } else {
    s.hold = usual / 2;
  }
}

void draw_wait(dice& d, section& s) {
  if (d.per_mille(150)) {
    s.how = section::wait_mode::once;
  } else if (d.per_mille(300)) {
    s.how = section::wait_mode::bounded;
    s.wait = d.between(1ms, 1500ms);
  }
  if (s.how != section::wait_mode::once && d.per_mille(50)) s.cancel = d.per_mille(400) ? 0ms : d.between(1ms, 60ms);
}

void draw_ending(dice& d, section& s) {
  if (d.per_mille(20)) {
    s.end = section::ending::unlock_twice;
  } else if (d.per_mille(10)) {
    s.end = section::ending::drop;
  } else if (!s.renewed && d.per_mille(10)) {
    s.end = section::ending::abandon;
  }
}

}  // namespace

microseconds dice::around(microseconds mean) {
  const double u = static_cast<double>(below(1'000'000) + 1) / 1e6;
  return microseconds(static_cast<microseconds::rep>(-std::log(u) * static_cast<double>(mean.count())));
}

std::string_view to_string(lock_name::kind k) noexcept {
  switch (k) {
    case lock_kind::fenced: return "fenced";
    case lock_kind::plain: return "plain";
    case lock_kind::simple: return "simple";
    case lock_kind::red: return "red";
    case lock_kind::red_simple: return "red simple";
    case lock_kind::reader: return "reader";
    case lock_kind::writer: return "writer";
    case lock_kind::fair: return "fair";
    case lock_kind::permits: break;
  }
  return "permits";
}

workload::workload(campaign c)
    : campaign_(c), red_(c == campaign::red), breakable_{"breakable-7", red_ ? lock_kind::red : lock_kind::fenced},
      of_all_{"lock-plain-of-all", red_ ? lock_kind::red : lock_kind::plain}, own_(breakable_.by),
      own_simple_(red_ ? lock_kind::red_simple : lock_kind::simple) {
  contended_ = {{"lock-0", own_},
                {"lock-1", own_},
                {"lock-plain-2", of_all_.by},
                {"lock-simple-3", own_simple_},
                {"lock-simple-4", own_simple_}};
  if (red_) return;
  contended_.push_back({"lock-5", own_});
  contended_.push_back({"lock-plain-6", of_all_.by});
}

section workload::drawn_for(microseconds think) const {
  section s;
  s.think = think;
  s.ttl = client_ttl(campaign_);
  return s;
}

void workload::draw_terms(dice& d, section& s) const {
  draw_ttl(d, s);
  draw_replicas(d, s);
}

// They have a quarter of the TTL to answer.
void workload::draw_replicas(dice& d, section& s) const {
  if (fails_over(campaign_) && s.ttl >= 300ms && d.per_mille(400)) s.replicas = replicas_of(campaign_);
}

void workload::draw_ttl(dice& d, section& s) const {
  if (d.per_mille(600)) return;
  const auto longest = longest_ttl(campaign_);
  s.renewed = d.per_mille(500);
  if (s.renewed)
    s.ttl = d.between(300ms, longest);
  else
    s.ttl = d.per_mille(300) ? d.between(40ms, brief) : d.between(200ms, longest);
}

section workload::draw_permits(dice& d) const {
  auto s = drawn_for(d.around(4ms));
  s.locks = {semaphore_};
  if (d.per_mille(250)) s.permits = 2 + static_cast<unsigned>(d.below(most_permits_of_one - 1));
  draw_wait(d, s);
  draw_terms(d, s);
  draw_hold(d, s);
  draw_ending(d, s);
  s.counts = false;  // several count at once
  s.as_body = s.permits == 1 && s.end == section::ending::unlock && !s.renew_by_hand && d.per_mille(100);
  if (s.as_body) s.how = section::wait_mode::forever;
  return s;
}

// Most read, and for longer than they write: the sections of readers overlap, so that a writer finds the lock taken by
// one after the other. Few wait without a limit: all want one lock, and its line has to end with the campaign.
section workload::draw_side(dice& d) const {
  auto s = drawn_for(d.around(4ms));
  const bool reads = d.per_mille(750);
  s.locks = {{std::string(shared_name), reads ? lock_kind::reader : lock_kind::writer}};
  draw_wait(d, s);
  if (s.how == section::wait_mode::forever && d.per_mille(800)) {
    s.how = section::wait_mode::bounded;
    s.wait = d.between(100ms, 1500ms);
  }
  draw_terms(d, s);
  if (d.per_mille(300)) s.reentries = 1 + static_cast<unsigned>(d.below(2));
  draw_hold(d, s);
  if (reads && d.per_mille(500)) s.hold += d.around(10ms);
  draw_ending(d, s);
  s.as_body = s.end == section::ending::unlock && !s.renew_by_hand && d.per_mille(30);
  if (s.as_body) s.how = section::wait_mode::forever;
  return s;
}

// All stand in one line, which has to end with the campaign.
section workload::draw_fair(dice& d) const {
  auto s = drawn_for(d.around(4ms));
  const bool breakable = d.per_mille(150);
  s.locks = {breakable ? breakable_fair_ : fair_};
  s.force_unlock = breakable && d.per_mille(100);
  if (s.force_unlock) return s;
  draw_wait(d, s);
  draw_terms(d, s);
  if (d.per_mille(300)) s.reentries = 1 + static_cast<unsigned>(d.below(2));
  draw_hold(d, s);
  draw_ending(d, s);
  if (breakable) s.counts = false;
  s.as_body = s.end == section::ending::unlock && !s.renew_by_hand && d.per_mille(30);
  if (s.as_body) s.how = section::wait_mode::forever;
  return s;
}

section workload::draw_section(dice& d) const {
  if (has_permits(campaign_) && d.per_mille(120)) return draw_permits(d);
  if (has_sides(campaign_) && d.per_mille(220)) return draw_side(d);
  if (has_fair_locks(campaign_) && d.per_mille(250)) return draw_fair(d);
  auto s = drawn_for(d.around(4ms));
  const auto number = skewed_below(d, contended_.size() + 1);
  const bool breakable = number == contended_.size();
  s.locks = {breakable ? breakable_ : contended_[number]};
  if (breakable) {
    s.counts = false;
    s.force_unlock = d.per_mille(100);
    if (s.force_unlock) return s;
  }
  draw_wait(d, s);
  draw_terms(d, s);
  if (s.locks.front().reentrant() && d.per_mille(300)) s.reentries = 1 + static_cast<unsigned>(d.below(1 + d.below(4)));
  draw_hold(d, s);
  draw_ending(d, s);
  if (!breakable && !red_) draw_several(d, s);
  return s;
}

void workload::draw_several(dice& d, section& s) const {
  if (d.per_mille(60)) {
    s.of = section::choice::any;
    add_others(d, s, true);
  } else if (d.per_mille(50)) {
    s.of = section::choice::all;
    add_others(d, s, d.per_mille(750));
    s.reentries = 0;
    if (s.end == section::ending::abandon) s.end = section::ending::unlock;
  } else if (d.per_mille(30)) {
    auto inner = drawn_for(0us);  // asks once: whoever holds a lock must not wait for another
    inner.locks = s.locks;
    inner.of = section::choice::any;
    inner.how = section::wait_mode::once;
    add_others(d, inner, true);
    s.nested = {std::move(inner)};
  }
}

void workload::add_others(dice& d, section& s, bool of_one_kind) const {
  const auto first = s.locks.front();
  std::vector<lock_name> others;
  std::copy_if(contended_.begin(), contended_.end(), std::back_inserter(others),
               [&](const lock_name& o) { return o.text != first.text && (o.by == first.by || !of_one_kind); });
  for (auto wanted = 1 + d.below(2); wanted > 0 && !others.empty(); --wanted) {
    std::swap(others[d.below(others.size())], others.back());
    s.locks.push_back(std::move(others.back()));
    others.pop_back();
  }
}

section workload::draw_long_section(dice& d, const std::string& own_lock) const {
  auto s = drawn_for(d.around(20ms));
  s.own = d.per_mille(700);
  const lock_name own{own_lock, own_}, own_simple{own_lock + "-simple", own_simple_};
  s.locks = {!s.own ? of_all_ : d.per_mille(700) ? own : own_simple};
  if (s.own && !red_ && d.per_mille(200)) {
    s.of = section::choice::all;
    s.locks = {own, d.per_mille(500) ? own_simple : lock_name{own_lock + "-second", own_}};
  }
  if (!s.own) {
    s.how = section::wait_mode::bounded;  // the others hold for seconds, and each must come to its end
    s.wait = d.between(1ms, 1500ms);
  }
  if (d.per_mille(500)) s.ttl = d.between(300ms, longest_ttl(campaign_));
  draw_replicas(d, s);
  s.hold = d.between(0ms, std::min(3 * s.ttl, longest_section));
  const bool several = s.of == section::choice::all;
  if (s.own && d.per_mille(300)) {
    s.as_body = true;
  } else if (!several && d.per_mille(300)) {
    s.max_hold = d.between(50ms, s.ttl);
    s.fed_for = d.between(0ms, std::min(3 * s.ttl, longest_section));
    s.counts = false;
  } else {
    if (!several && s.locks.front().reentrant()) s.reentries = static_cast<unsigned>(d.below(3));
    s.renew_by_hand = d.per_mille(200);
  }
  if (d.per_mille(100)) s.end = section::ending::drop;
  return s;
}

}  // namespace holdfast::chaos
