// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/routed_command.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace holdfast::detail {

// A command without a deadline has its whole timeout at each node: that timeout finds a silent node.
redis::delivery routed_command::delivery_at(time_point now) const {
  auto delivery = asked.terms;
  delivery.asking = asking;
  if (asking) delivery.rank = urgency::obligation;  // it has waited in a queue already
  delivery.tell_late = delivery.tell_late && !reported_late;
  if (!delivery.waits_for_reply || delivery.tell_late)
    delivery.timeout = std::max(deadline - now, lease_clock::duration{});
  return delivery;
}

void open_commands::add(routed_ptr command) {
  command->number = last_ + 1;
  entries_.push_back({command->number, std::move(command)});
  ++last_;
  ++alive_;
}

std::deque<open_commands::entry>::iterator open_commands::place_of(redis::ticket number) {
  return std::lower_bound(entries_.begin(), entries_.end(), number,
                          [](const entry& entry, redis::ticket wanted) { return entry.number < wanted; });
}

routed_ptr open_commands::find(redis::ticket number) const {
  const auto found = const_cast<open_commands*>(this)->place_of(number);
  return found != entries_.end() && found->number == number ? found->command : nullptr;
}

void open_commands::remove(routed_command& command) {
  const auto found = place_of(std::exchange(command.number, 0));
  HOLDFAST_ASSERT(found != entries_.end() && found->command.get() == &command && alive_ > 0);
  found->command.reset();
  --alive_;
  while (!entries_.empty() && !entries_.front().command) entries_.pop_front();
  while (!entries_.empty() && !entries_.back().command) entries_.pop_back();
  if (entries_.size() > 2 * alive_) std::erase_if(entries_, [](const entry& entry) { return !entry.command; });
}

// The destructor of a command's part may call this object.
void open_commands::clear() noexcept {
  for (auto& entry : entries_)
    if (entry.command) {
      entry.command->number = 0;
      entry.command->pause.stop();
    }
  alive_ = 0;
  while (!entries_.empty()) {
    const auto dropped = std::move(entries_.front().command);
    entries_.pop_front();
  }
}

}  // namespace holdfast::detail
