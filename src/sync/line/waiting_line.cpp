// SPDX-License-Identifier: BSL-1.0
#include "sync/line/waiting_line.hpp"

#include "base/assert.hpp"

namespace holdfast::detail {

// An attempt in flight may be granted as well: the waiter would have two grants.
const acquisition* waiting_line::successor() const noexcept {
  if (empty() || rules.trying()) return nullptr;
  const auto& waiter = first();
  return waiter.request.whole || waiter.asks_once() ? nullptr : &waiter;
}

void waiting_line::add(std::shared_ptr<acquisition> waiter) {
  auto& caller = *waiter;
  caller.seat.ahead = static_cast<unsigned>(waiters_.size());
  caller.seat.number = ++joined_;
  if (caller.request.bound) bound_.emplace(std::pair(caller.request.owner, caller.seat.number), &caller);
  waiters_.push_back(caller.seat);
  caller.seat.kept = std::move(waiter);
  if (places && !caller.asks_once()) places->rules.joined();
}

void waiting_line::keep_places(std::shared_ptr<place_keeper> keeper) {
  places = std::move(keeper);
  each_waiter([this](const acquisition& waiter) {
    if (!waiter.asks_once()) places->rules.joined();
  });
}

// The number of waiters before it that may have a place. A try_lock() has none.
std::size_t waiting_line::place_of(const acquisition& waiter) const noexcept {
  std::size_t before = 0;
  for (auto seat = waiters_.begin(); &*seat != &waiter.seat && before < detail::places::most; ++seat)
    if (!seat->kept->asks_once()) ++before;
  return before;
}

std::shared_ptr<acquisition> waiting_line::take_out(acquisition& waiter) {
  HOLDFAST_ASSERT(waiter.seat.hook.is_linked());
  if (places && !waiter.asks_once()) places->rules.left(place_of(waiter));
  waiters_.erase(waiters_.iterator_to(waiter.seat));
  if (waiter.request.bound) bound_.erase({waiter.request.owner, waiter.seat.number});
  return std::move(waiter.seat.kept);
}

// The first waiter stays: its attempt brought the grant, and its own answer follows.
std::shared_ptr<acquisition> waiting_line::take_out_of(owner_id owner) {
  if (empty()) return nullptr;
  for (auto seat = bound_.upper_bound({owner, waiters_.front().number});
       seat != bound_.end() && seat->first.first == owner; ++seat)
    if (!seat->second->request.one_of_several) return take_out(*seat->second);
  return nullptr;
}

std::vector<std::shared_ptr<acquisition>> waiting_line::all_of(owner_id owner) const {
  std::vector<std::shared_ptr<acquisition>> found;
  for (auto seat = bound_.upper_bound({owner, 0}); seat != bound_.end() && seat->first.first == owner; ++seat)
    found.push_back(seat->second->seat.kept);
  return {found.rbegin(), found.rend()};
}

}  // namespace holdfast::detail
