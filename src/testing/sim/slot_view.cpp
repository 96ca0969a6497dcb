// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/slot_view.hpp"

#include <algorithm>
#include <utility>

#include "testing/sim/commands.hpp"

namespace holdfast::sim {

slot_number slot_of(std::string_view key) {
  if (const auto open = key.find('{'); open != key.npos) {
    const auto close = key.find('}', open + 1);
    if (close != key.npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  constexpr unsigned polynomial = 0x1021, top = 0x8000;
  unsigned crc = 0;
  for (const auto byte : key) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(byte)) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & top) != 0 ? (crc << 1) ^ polynomial : crc << 1;
    crc &= 0xffff;
  }
  return static_cast<slot_number>(crc % slots_in_all);
}

void slot_view::replace(member from, member to) {
  std::replace(owners_.begin(), owners_.end(), static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to));
}

slot_view::answer slot_view::ask(const question& question,
                                 const std::function<bool(const std::string&)>& exists) const {
  if (question.keys.empty()) return answer::mine;
  const auto slot = slot_of(question.keys.front());
  if (std::any_of(question.keys.begin(), question.keys.end(), [&](const auto& key) { return slot_of(key) != slot; }))
    return answer::cross_slot;
  const auto whose = owner(slot);
  if (whose == nobody) return answer::not_served;
  if (!serves_ && !question.channels) return answer::down;
  const bool leaves = whose == self_ && migrating_.contains(slot), comes = importing_.contains(slot);
  const auto there =
      question.channels ? question.keys.size() : std::count_if(question.keys.begin(), question.keys.end(), exists);
  const bool incomplete = static_cast<std::size_t>(there) < question.keys.size();
  if (leaves && incomplete) return there > 0 ? answer::try_again : answer::ask;
  if (comes && question.asking) return incomplete && question.keys.size() > 1 ? answer::try_again : answer::mine;
  return whose == self_ ? answer::mine : answer::moved;
}

std::string slot_view::text_of(answer answer, const question& question) const {
  const auto to = [&](std::string_view word, member member) {
    const auto& at = identity_of(member);
    return std::string(word) + ' ' + std::to_string(slot_of(question.keys.front())) + ' ' + at.host + ':' +
           std::to_string(at.port);
  };
  switch (answer) {
    case answer::mine: break;
    case answer::moved: return to("MOVED", owner(slot_of(question.keys.front())));
    case answer::ask: return to("ASK", migrating_.at(slot_of(question.keys.front())));
    case answer::try_again: return "TRYAGAIN Multiple keys request during rehashing of slot";
    case answer::cross_slot: return "CROSSSLOT Keys in request don't hash to the same slot";
    case answer::down: return "CLUSTERDOWN The cluster is down";
    case answer::not_served: return "CLUSTERDOWN Hash slot not served";
  }
  return {};
}

redis::reply slot_view::slots() const {
  using kind = redis::reply::kind;
  const auto entry = [&](member member) {
    const auto& at = identity_of(member);
    return redis::reply{kind::array,
                        0,
                        {},
                        {string_reply(at.host), integer_reply(at.port), string_reply(at.id), {kind::array, 0, {}, {}}}};
  };
  redis::reply all{kind::array, 0, {}, {}};
  for (unsigned first = 0, next = 0; first < slots_in_all; first = next) {
    for (next = first + 1; next < slots_in_all && owners_[next] == owners_[first];) ++next;
    if (owners_[first] == unowned) continue;
    redis::reply range{kind::array, 0, {}, {integer_reply(first), integer_reply(next - 1), entry(owners_[first])}};
    if (const auto followers = replicas_.find(owners_[first]); followers != replicas_.end())
      for (const auto member : followers->second) range.elements.push_back(entry(member));
    all.elements.push_back(std::move(range));
  }
  return all;
}

}  // namespace holdfast::sim
