// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/sorted_sets.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <optional>

namespace holdfast::sim::sorted_sets {
namespace {

using kind = reply::kind;

std::string text_of(double score) {
  if (std::isinf(score)) return score > 0 ? "inf" : "-inf";
  std::array<char, 64> digits;
  std::snprintf(digits.data(), digits.size(), "%.17g", score);
  return digits.data();
}

/// Redis' string2d. A small set keeps -0 as 0.
std::optional<double> to_score(const std::string& text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text.front()))) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const double score = std::strtod(text.c_str(), &end);
  const bool whole = end == text.c_str() + text.size();
  return whole && errno == 0 && !std::isnan(score) ? std::optional(score + 0.0) : std::nullopt;
}

/// One end of a range of scores.
struct bound {
  double score = 0;
  bool open = false;  // without the score itself
};

/// Redis' zslParseRange, which takes an empty text for 0.
std::optional<bound> to_bound(const std::string& text) {
  bound made;
  made.open = text.starts_with('(');
  const auto* number = text.c_str() + (made.open ? 1 : 0);
  char* end = nullptr;
  made.score = std::strtod(number, &end);
  return *end == '\0' && !std::isnan(made.score) ? std::optional(made) : std::nullopt;
}

struct score_range {
  bound low, high;
  bool has(double score) const {
    return (low.open ? score > low.score : score >= low.score) &&
           (high.open ? score < high.score : score <= high.score);
  }
};

std::optional<score_range> to_range(const std::string& low, const std::string& high) {
  const auto from = to_bound(low), to = to_bound(high);
  return from && to ? std::optional(score_range{*from, *to}) : std::nullopt;
}

reply not_a_range() { return error_reply("ERR min or max is not a float"); }

/// The sorted set at a key for reading: `absent` when there is none.
template <class Use>
reply with_set(database& db, const std::string& key, reply absent, Use use) {
  const auto* entry = db.keys.find(key);
  if (!entry) return absent;
  const auto* set = entry->sorted();
  return set ? use(*set) : wrong_type();
}

const reply none{kind::array, 0, {}, {}};

void append(reply& to, const sorted_set::member& member, bool with_score) {
  to.elements.push_back(string_reply(member.second));
  if (with_score) to.elements.push_back(string_reply(text_of(member.first)));
}

}  // namespace

reply zadd(database& db, const arguments& args) {
  bool only_new = false, only_old = false, only_greater = false;
  std::size_t first = 2;
  for (; first < args.size(); ++first) {
    const auto option = lower(args[first]);
    if (option == "nx")
      only_new = true;
    else if (option == "xx")
      only_old = true;
    else if (option == "gt")
      only_greater = true;
    else
      break;
  }
  if (first == args.size() || (args.size() - first) % 2 != 0) return syntax_error();
  if (only_new && only_old) return error_reply("ERR XX and NX options at the same time are not compatible");
  if (only_new && only_greater) return error_reply("ERR GT, LT, and/or NX options at the same time are not compatible");
  std::vector<double> scores;
  for (auto i = first; i < args.size(); i += 2) {
    const auto score = to_score(args[i]);
    if (!score) return error_reply("ERR value is not a valid float");
    scores.push_back(*score);
  }
  const auto* entry = db.keys.find(args[1]);
  if (entry && !entry->sorted()) return wrong_type();
  if (!entry && only_old) return db.stayed = true, integer_reply(0);
  auto& set = *db.keys.to_write<sorted_set>(args[1]);
  long long fresh = 0;
  db.stayed = true;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto& name = args[first + 2 * i + 1];
    const auto before = set.score_of(name);
    if (before ? only_new || (only_greater && scores[i] <= *before) : only_old) continue;
    db.stayed &= before == scores[i];
    fresh += set.set(name, scores[i]);
  }
  return integer_reply(fresh);
}

reply zcard(database& db, const arguments& args) {
  return with_set(db, args[1], integer_reply(0),
                  [](const sorted_set& set) { return integer_reply(static_cast<long long>(set.members().size())); });
}

reply zcount(database& db, const arguments& args) {
  const auto range = to_range(args[2], args[3]);
  if (!range) return not_a_range();
  return with_set(db, args[1], integer_reply(0), [&](const sorted_set& set) {
    const auto& all = set.members();
    return integer_reply(
        std::count_if(all.begin(), all.end(), [&](const auto& member) { return range->has(member.first); }));
  });
}

reply zincrby(database& db, const arguments& args) {
  const auto by = to_score(args[2]);
  if (!by) return error_reply("ERR value is not a valid float");
  auto* entry = db.keys.find(args[1]);
  if (entry && !entry->sorted()) return wrong_type();
  const auto before = entry ? entry->sorted()->score_of(args[3]) : std::nullopt;
  const double score = before.value_or(0) + *by;
  if (std::isnan(score)) return error_reply("ERR resulting score is not a number (NaN)");
  db.stayed = before == score;
  db.keys.to_write<sorted_set>(args[1])->set(args[3], score);
  // Redis answers with the score as it was before a small set made 0 of it.
  const bool minus_zero = !before && score == 0 && args[2].front() == '-';
  return string_reply(minus_zero ? "-0" : text_of(score));
}

reply zpopmin(database& db, const arguments& args) {
  auto* entry = db.keys.find(args[1]);
  if (!entry) return none;
  auto* set = std::get_if<sorted_set>(&entry->value);
  if (!set) return wrong_type();
  const auto least = *set->members().begin();
  auto all = none;
  append(all, least, true);
  set->erase(least.second);
  if (set->members().empty()) db.keys.erase(args[1]);
  return all;
}

reply zrange(database& db, const arguments& args) {
  const bool with_scores = args.size() == 5 && lower(args[4]) == "withscores";
  if (args.size() > 4 && !with_scores) return syntax_error();
  long long first = 0, last = 0;
  if (!to_integer(args[2], first) || !to_integer(args[3], last)) return not_an_integer();
  return with_set(db, args[1], none, [&](const sorted_set& set) {
    const auto size = static_cast<long long>(set.members().size());
    if (first < 0) first = std::max(0LL, size + first);
    if (last < 0) last = size + last;
    last = std::min(last, size - 1);
    auto all = none;
    if (first > last) return all;
    auto member = std::next(set.members().begin(), first);
    for (auto i = first; i <= last; ++i, ++member) append(all, *member, with_scores);
    return all;
  });
}

reply zrangebyscore(database& db, const arguments& args) {
  bool with_scores = false;
  long long offset = 0, count = -1;
  for (std::size_t i = 4; i < args.size(); ++i) {
    const auto option = lower(args[i]);
    if (option == "withscores") {
      with_scores = true;
    } else if (option == "limit" && i + 2 < args.size()) {
      if (!to_integer(args[i + 1], offset) || !to_integer(args[i + 2], count)) return not_an_integer();
      i += 2;
    } else {
      return syntax_error();
    }
  }
  const auto range = to_range(args[2], args[3]);
  if (!range) return not_a_range();
  return with_set(db, args[1], none, [&](const sorted_set& set) {
    auto all = none;
    if (offset < 0) return all;
    for (const auto& member : set.members()) {
      if (!range->has(member.first) || offset-- > 0) continue;
      if (count-- == 0) break;
      append(all, member, with_scores);
    }
    return all;
  });
}

reply zrank(database& db, const arguments& args) {
  return with_set(db, args[1], {}, [&](const sorted_set& set) {
    const auto score = set.score_of(args[2]);
    if (!score) return reply{};
    const auto& all = set.members();
    return integer_reply(std::distance(all.begin(), all.find({*score, args[2]})));
  });
}

reply zrem(database& db, const arguments& args) {
  auto* entry = db.keys.find(args[1]);
  if (!entry) return integer_reply(0);
  auto* set = std::get_if<sorted_set>(&entry->value);
  if (!set) return wrong_type();
  const auto gone = std::count_if(args.begin() + 2, args.end(), [&](const auto& name) { return set->erase(name); });
  if (set->members().empty()) db.keys.erase(args[1]);
  return integer_reply(gone);
}

reply zscore(database& db, const arguments& args) {
  return with_set(db, args[1], {}, [&](const sorted_set& set) {
    const auto score = set.score_of(args[2]);
    return score ? string_reply(text_of(*score)) : reply{};
  });
}

}  // namespace holdfast::sim::sorted_sets
