// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/lists.hpp"

#include <algorithm>

namespace holdfast::sim::lists {
namespace {

using kind = reply::kind;

const reply none{kind::array, 0, {}, {}};

/// The list at a key for reading: `absent` when there is none.
template <class Use>
reply with_list(database& db, const std::string& key, reply absent, Use use) {
  const auto* entry = db.keys.find(key);
  if (!entry) return absent;
  const auto* list = entry->list();
  return list ? use(*list) : wrong_type();
}

/// The list at a key for a command that takes elements out. The key goes with the last one.
template <class Take>
reply take_out(database& db, const std::string& key, reply absent, Take take) {
  auto* entry = db.keys.find(key);
  if (!entry) return absent;
  auto* list = std::get_if<list_value>(&entry->value);
  if (!list) return wrong_type();
  const auto taken = take(*list);
  if (list->empty()) db.keys.erase(key);
  return taken;
}

}  // namespace

reply lindex(database& db, const arguments& args) {
  return with_list(db, args[1], {}, [&](const list_value& list) {
    long long index = 0;
    if (!to_integer(args[2], index)) return not_an_integer();
    const auto size = static_cast<long long>(list.size());
    if (index < 0) index += size;
    return index >= 0 && index < size ? string_reply(list[static_cast<std::size_t>(index)]) : reply{};
  });
}

reply llen(database& db, const arguments& args) {
  return with_list(db, args[1], integer_reply(0),
                   [](const list_value& list) { return integer_reply(static_cast<long long>(list.size())); });
}

reply lpop(database& db, const arguments& args) {
  return take_out(db, args[1], {}, [](list_value& list) {
    auto first = string_reply(list.front());
    list.pop_front();
    return first;
  });
}

reply lrange(database& db, const arguments& args) {
  long long first = 0, last = 0;
  if (!to_integer(args[2], first) || !to_integer(args[3], last)) return not_an_integer();
  return with_list(db, args[1], none, [&](const list_value& list) {
    const auto size = static_cast<long long>(list.size());
    if (first < 0) first = std::max(0LL, size + first);
    if (last < 0) last = size + last;
    last = std::min(last, size - 1);
    auto all = none;
    for (auto i = first; i <= last; ++i) all.elements.push_back(string_reply(list[static_cast<std::size_t>(i)]));
    return all;
  });
}

reply lrem(database& db, const arguments& args) {
  long long count = 0;
  if (!to_integer(args[2], count)) return not_an_integer();
  return take_out(db, args[1], integer_reply(0), [&](list_value& list) {
    // A negative count takes from the end, and 0 takes all.
    const bool from_end = count < 0;
    auto left = from_end ? -count : count == 0 ? static_cast<long long>(list.size()) : count;
    const auto before = list.size();
    const auto goes = [&](const std::string& element) { return left > 0 && element == args[3] && left-- > 0; };
    if (from_end) std::reverse(list.begin(), list.end());
    list.erase(std::remove_if(list.begin(), list.end(), goes), list.end());
    if (from_end) std::reverse(list.begin(), list.end());
    return integer_reply(static_cast<long long>(before - list.size()));
  });
}

reply rpush(database& db, const arguments& args) {
  auto* list = db.keys.to_write<list_value>(args[1]);
  if (!list) return wrong_type();
  list->insert(list->end(), args.begin() + 2, args.end());
  return integer_reply(static_cast<long long>(list->size()));
}

}  // namespace holdfast::sim::lists
