// SPDX-License-Identifier: BSL-1.0
#include "chaos/workload.hpp"

#include <cmath>

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t fenced_locks = 4;
constexpr std::size_t plain_locks = 1;
constexpr std::size_t simple_locks = 1;
// force_unlock() stays with these: nothing excuses an overlap of the others.
constexpr std::size_t breakable_locks = 1;

constexpr milliseconds brief{150};  // cheap to outstay

// Small numbers are somewhat more likely.
std::size_t skewed_below(dice& d, std::size_t n) {
  const double u = static_cast<double>(d.below(1'000'000)) / 1e6;
  return static_cast<std::size_t>(std::pow(u, 1.2) * static_cast<double>(n));
}

void draw_terms(dice& d, section& s) {
  if (d.per_mille(600)) return;
  s.renewed = d.per_mille(500);
  if (s.renewed)
    s.ttl = d.between(300ms, longest_ttl);
  else
    s.ttl = d.per_mille(300) ? d.between(40ms, brief) : d.between(200ms, longest_ttl);
}

void draw_hold(dice& d, section& s) {
  const bool is_brief = s.ttl <= brief;
  if (!d.per_mille(is_brief ? 60 : 3)) {
    s.hold = d.per_mille(500) ? 0us : d.around(400us);
    return;
  }
  s.renew_by_hand = d.per_mille(200);
  if (s.renewed) {
    s.hold = std::min<microseconds>(d.around(s.ttl * 3 / 4), 2 * s.ttl);
  } else if (is_brief || d.per_mille(300)) {  // beyond its lease: for once no fault but the program is to blame
    s.hold = s.ttl + d.between(10ms, 200ms);
    s.counts = false;
  } else {
    s.hold = s.ttl / 2;
  }
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

section draw_section(dice& d) {
  section s;
  s.think = d.around(4ms);
  constexpr auto unbreakable = fenced_locks + plain_locks + simple_locks;
  const auto number = skewed_below(d, unbreakable + breakable_locks);
  const bool breakable = number >= unbreakable;
  s.by = number < fenced_locks || breakable    ? section::kind::fenced
         : number < fenced_locks + plain_locks ? section::kind::plain
                                               : section::kind::simple;
  s.lock = (breakable                       ? "breakable-"
            : s.by == section::kind::fenced ? "lock-"
            : s.by == section::kind::plain  ? "lock-plain-"
                                            : "lock-simple-") +
           std::to_string(number);
  if (breakable) {
    s.counts = false;
    s.force_unlock = d.per_mille(100);
    if (s.force_unlock) return s;
  }
  if (d.per_mille(150)) {
    s.how = section::patience::once;
  } else if (d.per_mille(300)) {
    s.how = section::patience::bounded;
    s.wait = d.between(1ms, 1500ms);
  }
  if (s.how != section::patience::once && d.per_mille(50)) s.cancel = d.per_mille(400) ? 0ms : d.between(1ms, 60ms);
  draw_terms(d, s);
  if (s.by != section::kind::simple && d.per_mille(300))
    s.reentries = 1 + static_cast<unsigned>(d.below(1 + d.below(4)));
  draw_hold(d, s);
  draw_ending(d, s);
  return s;
}

section draw_long_section(dice& d, const std::string& own_lock) {
  section s;
  s.think = d.around(20ms);
  s.own = d.per_mille(700);
  s.by = s.own ? d.per_mille(700) ? section::kind::fenced : section::kind::simple : section::kind::plain;
  s.lock = !s.own ? "lock-plain-of-all" : s.by == section::kind::simple ? own_lock + "-simple" : own_lock;
  if (!s.own) {
    s.how = section::patience::bounded;  // the others hold for seconds, and each must come to its end
    s.wait = d.between(1ms, 1500ms);
  }
  if (d.per_mille(500)) s.ttl = d.between(300ms, longest_ttl);
  s.hold = d.between(0ms, 3 * s.ttl);
  if (s.own && d.per_mille(300)) {
    s.as_body = true;
  } else if (d.per_mille(300)) {
    s.max_hold = d.between(50ms, s.ttl);
    s.fed_for = d.between(0ms, 3 * s.ttl);
    s.counts = false;
  } else {
    if (s.by != section::kind::simple) s.reentries = static_cast<unsigned>(d.below(3));
    s.renew_by_hand = d.per_mille(200);
  }
  if (d.per_mille(100)) s.end = section::ending::drop;
  return s;
}

}  // namespace holdfast::chaos
