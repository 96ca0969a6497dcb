// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/routed_command.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace holdfast::detail {

// One that waits for as long as it takes has its whole timeout at each node: by that a silent one is found.
redis::delivery routed_command::delivery_at(time_point now) const {
  auto how = asked.how;
  how.asking = asking;
  if (asking) how.rank = urgency::obligation;  // it has waited in its turn already
  how.tell_late = how.tell_late && !told_late;
  if (!how.waits_for_reply || how.tell_late) how.timeout = std::max(deadline - now, lease_clock::duration{});
  return how;
}

void open_commands::add(routed_ptr c) {
  c->number = last_ + 1;
  entries_.push_back({c->number, std::move(c)});
  ++last_;
  ++alive_;
}

std::deque<open_commands::entry>::iterator open_commands::place_of(redis::ticket number) {
  return std::lower_bound(entries_.begin(), entries_.end(), number,
                          [](const entry& e, redis::ticket wanted) { return e.number < wanted; });
}

routed_ptr open_commands::find(redis::ticket number) const {
  const auto found = const_cast<open_commands*>(this)->place_of(number);
  return found != entries_.end() && found->number == number ? found->what : nullptr;
}

void open_commands::remove(routed_command& c) {
  const auto found = place_of(std::exchange(c.number, 0));
  HOLDFAST_ASSERT(found != entries_.end() && found->what.get() == &c && alive_ > 0);
  found->what.reset();
  --alive_;
  while (!entries_.empty() && !entries_.front().what) entries_.pop_front();
  while (!entries_.empty() && !entries_.back().what) entries_.pop_back();
  if (entries_.size() > 2 * alive_) std::erase_if(entries_, [](const entry& e) { return !e.what; });
}

// What a command owns may call us back when it goes.
void open_commands::clear() noexcept {
  for (auto& e : entries_)
    if (e.what) {
      e.what->number = 0;
      e.what->pause.stop();
    }
  alive_ = 0;
  while (!entries_.empty()) {
    const auto dropped = std::move(entries_.front().what);
    entries_.pop_front();
  }
}

}  // namespace holdfast::detail
