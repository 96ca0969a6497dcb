// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/slot_map.hpp"

#include <algorithm>
#include <utility>

#include "base/host_name.hpp"

namespace holdfast::detail {
namespace {

constexpr long long last_port = 65535;
// Of servers without a slot, no more numbers are kept when there are so many servers.
constexpr std::size_t many_servers = 1024;

bool may_be_host(std::string_view text) {
  if (text.empty() || text.size() > longest_host || text == "?") return false;
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return byte > 0x20 && byte < 0x7f && byte != '/' && byte != '@'; });
}

bool is_number(const redis::reply& reply) { return reply.type == redis::reply::kind::integer; }
bool is_array(const redis::reply& reply) { return reply.type == redis::reply::kind::array; }

std::optional<slot_number> slot_in(const redis::reply& reply) {
  if (!is_number(reply) || reply.integer < 0 || reply.integer >= slot_count) return std::nullopt;
  return static_cast<slot_number>(reply.integer);
}

}  // namespace

std::optional<redis::address> announced_address(std::string_view host, long long port,
                                                const redis::address& answered_by, const reach_by& reach) {
  if (port <= 0 || port > last_port) return std::nullopt;
  redis::address announced;
  announced.port = static_cast<std::uint16_t>(port);
  if (host.empty()) {
    announced.host = answered_by.host;  // the host by which we have reached the node: only the port needs a mapping
  } else if (may_be_host(host)) {
    announced.host = host;
  } else {
    return std::nullopt;
  }
  return reach ? reach(announced) : announced;
}

std::optional<slot_view> read_slots(const redis::reply& reply, const redis::address& answered_by,
                                    const reach_by& reach) {
  if (!is_array(reply)) return std::nullopt;
  slot_view view;
  view.ranges.reserve(reply.elements.size());
  for (const auto& row : reply.elements) {
    if (!is_array(row) || row.elements.size() < 3) return std::nullopt;
    const auto first = slot_in(row.elements[0]), last = slot_in(row.elements[1]);
    const auto& primary = row.elements[2];
    if (!first || !last || *first > *last) return std::nullopt;
    if (!is_array(primary) || primary.elements.size() < 2 || !is_number(primary.elements[1])) return std::nullopt;
    const auto& host = primary.elements[0];
    if (host.type != redis::reply::kind::nil && host.type != redis::reply::kind::string) return std::nullopt;
    view.ranges.push_back(
        {*first, *last, announced_address(host.text, primary.elements[1].integer, answered_by, reach)});
  }
  return view;
}

std::optional<std::size_t> slot_map::replace(const slot_view& view, const redis::address& source) {
  forget_unused();
  owners next{};
  std::array<bool, slot_count> named{};
  std::size_t covered = 0;
  for (const auto& [first, last, primary] : view.ranges) {
    if (first > last || last >= slot_count) return std::nullopt;
    const auto id = primary ? entry_of(*primary).number : nobody;
    for (std::size_t slot = first; slot <= last; ++slot) {
      if (std::exchange(named[slot], true)) return std::nullopt;
      next[slot] = primary ? id : owners_[slot];
      covered += next[slot] != nobody;
    }
  }
  if (covered < covered_ && !(doubt_ && doubt_->source != source && doubt_->seen == next)) {
    doubt_ = doubt{source, next};
    return std::nullopt;
  }
  doubt_.reset();
  std::size_t changed = 0;
  for (std::size_t slot = 0; slot < slot_count; ++slot) {
    if (next[slot] == owners_[slot]) continue;
    own(static_cast<slot_number>(slot), next[slot]);
    ++changed;
  }
  return changed;
}

bool slot_map::moved(slot_number slot, const redis::address& to) {
  const auto id = number_of(to);
  if (owners_[slot] == id) return false;
  own(slot, id);
  return true;
}

void slot_map::own(slot_number slot, node_id id) {
  const auto before = std::exchange(owners_[slot], id);
  if (before != nobody) --by_number_.at(before)->slots;
  if (id != nobody) ++by_number_.at(id)->slots;
  covered_ += (id != nobody);
  covered_ -= (before != nobody);
}

bool slot_map::owns_any(node_id node) const noexcept {
  const auto found = by_number_.find(node);
  return found != by_number_.end() && found->second->slots != 0;
}

std::vector<node_id> slot_map::primaries() const {
  std::vector<node_id> all;
  for (const auto& [number, server] : by_number_)
    if (server->slots != 0) all.push_back(number);
  return all;
}

node_id slot_map::number_of(const redis::address& at) {
  if (!servers_.contains(at)) forget_unused();
  return entry_of(at).number;
}

slot_map::server& slot_map::entry_of(const redis::address& at) {
  const auto known = servers_.try_emplace(at).first;
  auto& entry = known->second;
  if (entry.number == nobody) {
    entry.number = ++last_number_;
    entry.at = &known->first;
    by_number_[entry.number] = &entry;
  }
  return entry;
}

void slot_map::forget_unused() {
  if (servers_.size() < many_servers) return;
  std::erase_if(servers_, [this](const auto& each) {
    const auto& server = each.second;
    const bool unused = server.slots == 0;
    if (unused) by_number_.erase(server.number);
    return unused;
  });
}

}  // namespace holdfast::detail
