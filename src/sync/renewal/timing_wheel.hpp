// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <array>
#include <boost/intrusive/circular_list_algorithms.hpp>
#include <chrono>
#include <cstddef>
#include <utility>

#include "base/assert.hpp"
#include "base/lease_clock.hpp"

namespace holdfast::detail {

/// Gives objects at their instants, the soonest first. An object waits in a slot, with the objects of about the same
/// instant. A slot is sorted when its first object may be due.
///
/// Decision: the wheel sorts what is due now, and no more (hashed timing wheels, Varghese and Lauck). Most locks are
/// released long before their first renewal, so insertion and removal must be cheap. An object that is sorted long
/// before its instant is out of the cache by then. A slot of 16 ms is used again every 16 s; objects of a later round
/// stay in it. The end of a claim that was renewed meanwhile is put off when its slot is sorted. The slots of a client
/// take 56 kB together.
///
/// `Traits`: of a boost::intrusive hook of a list, or of a set that may have the object at other times.
/// `Sooner`: the order of the objects, by their instants first.
/// An object has when(), its instant, and settle(). settle() is called when its slot is sorted, and may put the instant
/// off. At other times the instant does not change.
template <class Traits, class Sooner>
class timing_wheel {
 public:
  using value_type = typename Traits::value_type;

  timing_wheel() noexcept {
    for (auto& slot : slots_) list::init_header(&slot);
    list::init_header(&sorted_);
    firsts_.fill(time_point::max());
  }
  timing_wheel(const timing_wheel&) = delete;
  timing_wheel& operator=(const timing_wheel&) = delete;
  ~timing_wheel() {
    for (auto& slot : slots_) clear(slot);
    clear(sorted_);
  }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }

  void insert(value_type& item) noexcept {
    links::enter(Traits::to_node_ptr(item));
    ++size_;
    put_into_slot(item);
  }
  void erase(value_type& item) noexcept {
    const auto node = Traits::to_node_ptr(item);
    list::unlink(node);
    links::leave(node);
    const auto slot = slot_of(item.when());
    if (is_empty(slots_[slot])) firsts_[slot] = time_point::max();
    if (--size_ == 0) first_of_slots_ = time_point::max();
  }
  /// Nothing is due before this instant, and perhaps nothing at it. time_point::max(): the wheel is empty.
  time_point earliest() const noexcept {
    return nothing_sorted() ? first_of_slots_ : std::min(first_of_slots_, first_sorted().when());
  }
  /// The first object that is due until `when`; null if there is none.
  value_type* first_until(time_point when) noexcept { return next_until(&sorted_, when); }
  /// Calls `action` for all objects, in no order.
  template <class F>
  void each(F action) {
    const auto in = [&](node& header) {
      for (auto* next = links::get_next(&header); next != &header;)
        action(at(std::exchange(next, links::get_next(next))));
    };
    in(sorted_);
    for (auto& slot : slots_) in(slot);
  }
  /// The next object after one that first_until() or this function has returned.
  value_type* next_until(value_type& after, time_point when) noexcept {
    return next_until(Traits::to_node_ptr(after), when);
  }

 private:
  using node_traits = typename Traits::node_traits;
  using node = typename node_traits::node;
  /// The links of a list, also if the hook is one of a tree. There an object in the wheel is its own parent, so that
  /// is_linked() holds; an object outside has none.
  struct links {
    using node = typename node_traits::node;
    using node_ptr = node*;
    using const_node_ptr = const node*;
    static constexpr bool of_tree = requires(node_ptr node) { node_traits::get_parent(node); };

    static node_ptr get_next(const_node_ptr node) {
      if constexpr (of_tree)
        return node_traits::get_right(node);
      else
        return node_traits::get_next(node);
    }
    static void set_next(node_ptr node, node_ptr next) {
      if constexpr (of_tree)
        node_traits::set_right(node, next);
      else
        node_traits::set_next(node, next);
    }
    static node_ptr get_previous(const_node_ptr node) {
      if constexpr (of_tree)
        return node_traits::get_left(node);
      else
        return node_traits::get_previous(node);
    }
    static void set_previous(node_ptr node, node_ptr previous) {
      if constexpr (of_tree)
        node_traits::set_left(node, previous);
      else
        node_traits::set_previous(node, previous);
    }
    static void enter(node_ptr node) {
      if constexpr (of_tree) {
        HOLDFAST_ASSERT(!node_traits::get_parent(node));
        node_traits::set_parent(node, node);
      } else {
        HOLDFAST_ASSERT(!node_traits::get_next(node));
      }
    }
    static void leave(node_ptr node) {
      set_next(node, nullptr);
      set_previous(node, nullptr);
      if constexpr (of_tree) node_traits::set_parent(node, nullptr);
    }
  };
  using list = boost::intrusive::circular_list_algorithms<links>;

  /// A slot has one span of each round. Objects of a later round stay there.
  static constexpr std::size_t slot_count = 1024;
  static constexpr time_point::duration span = std::chrono::milliseconds(16);

  static auto span_of(time_point when) noexcept { return when.time_since_epoch() / span; }
  static std::size_t slot_of(time_point when) noexcept { return static_cast<std::size_t>(span_of(when)) % slot_count; }
  static value_type& at(node* node) noexcept { return *Traits::to_value_ptr(node); }
  static bool sooner(node* left, node* right) noexcept { return Sooner()(at(left), at(right)); }

  static bool is_empty(const node& header) noexcept { return links::get_next(&header) == &header; }
  bool nothing_sorted() const noexcept { return is_empty(sorted_); }
  const value_type& first_sorted() const noexcept { return *Traits::to_value_ptr(links::get_next(&sorted_)); }
  // Sorts no more slots than this question needs: their objects would be out of the cache when they are due.
  value_type* next_until(node* after, time_point when) noexcept {
    for (;;) {
      auto* const next = links::get_next(after);
      const auto limit = next == &sorted_ ? when : std::min(when, at(next).when());
      if (first_of_slots_ == time_point::max() || first_of_slots_ > limit)
        return next != &sorted_ && at(next).when() <= when ? &at(next) : nullptr;
      sort_first_slot();
    }
  }

  void put_into_slot(value_type& item) noexcept {
    const auto when = item.when();
    const auto slot = slot_of(when);
    list::link_before(&slots_[slot], Traits::to_node_ptr(item));
    firsts_[slot] = std::min(firsts_[slot], when);
    first_of_slots_ = std::min(first_of_slots_, when);
  }

  void sort_first_slot() noexcept {
    const auto span_now = span_of(first_of_slots_);
    const auto slot = slot_of(first_of_slots_);
    node* found = nullptr;
    node waiting;
    list::init_header(&waiting);
    list::swap_nodes(&waiting, &slots_[slot]);
    firsts_[slot] = time_point::max();
    for (auto next = links::get_next(&waiting); next != &waiting;) {
      const auto node = std::exchange(next, links::get_next(next));
      auto& item = at(node);
      item.settle();
      if (span_of(item.when()) <= span_now) {
        links::set_next(node, std::exchange(found, node));
      } else {
        put_into_slot(item);
      }
    }
    add_to_sorted(in_order(found));
    first_of_slots_ = *std::min_element(firsts_.begin(), firsts_.end());
  }

  // A chain has nodes that are linked forwards, up to null. Merging needs no memory, so sorting cannot fail.
  static node* merged(node* left, node* right) noexcept {
    node before;
    node* last = &before;
    while (left && right) {
      auto& next = sooner(right, left) ? right : left;
      links::set_next(last, next);
      last = std::exchange(next, links::get_next(next));
    }
    links::set_next(last, left ? left : right);
    return links::get_next(&before);
  }
  static node* in_order(node* chain) noexcept {
    std::array<node*, 64> runs{};  // each null, or a chain of 2^n nodes
    while (chain) {
      node* run = std::exchange(chain, links::get_next(chain));
      links::set_next(run, nullptr);
      std::size_t n = 0;
      for (; runs[n]; ++n) run = merged(std::exchange(runs[n], nullptr), run);
      runs[n] = run;
    }
    node* all = nullptr;
    for (auto* run : runs) all = merged(run, all);
    return all;
  }
  void add_to_sorted(node* chain) noexcept {
    if (!chain) return;
    auto* const last = links::get_previous(&sorted_);
    auto* place = last == &sorted_ || sooner(last, chain) ? &sorted_ : links::get_next(&sorted_);
    while (chain) {
      auto* const node = std::exchange(chain, links::get_next(chain));
      while (place != &sorted_ && sooner(place, node)) place = links::get_next(place);
      list::link_before(place, node);
    }
  }
  static void clear(node& header) noexcept {
    for (auto* next = links::get_next(&header); next != &header;)
      links::leave(std::exchange(next, links::get_next(next)));
  }

  node sorted_;
  std::array<node, slot_count> slots_;
  std::array<time_point, slot_count> firsts_;  // per slot: nothing in it is due before
  time_point first_of_slots_ = time_point::max();
  std::size_t size_ = 0;
};

}  // namespace holdfast::detail
