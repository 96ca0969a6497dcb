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

/// Objects that have an instant each, the soonest first. Each waits in a slot, with those of about its instant, until
/// the first of them may be due; only then its slot is put in order. Coming and going costs next to nothing, most locks
/// are released long before that, and what was put in order is in the cache for what is done with it.
///
/// Decision: what is due now is put in order, and no more. Most locks are released long before their first renewal, and
/// what is sorted long before its turn is out of the cache by then. Slots of 16 ms are used again every 16 s: what is
/// due in a later round is passed over. The end of a claim that was renewed meanwhile is put off when its slot is
/// looked at, and never sorted. The slots of a client take 56 kB together.
///
/// `Traits`: of a boost::intrusive hook of a list, or of a set whose tree may have the object at other times.
/// An object has when(), its instant, and settle(), which is called when its slot is put in order, and may put the
/// instant off; at other times the instant stays. `Sooner`: orders them, by their instants first.
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
  /// Nothing is due before that; perhaps nothing at it either. time_point::max(): there is nothing.
  time_point earliest() const noexcept {
    return nothing_sorted() ? first_of_slots_ : std::min(first_of_slots_, first_sorted().when());
  }
  /// The first that is due until `when`; null: there is none.
  value_type* first_until(time_point when) noexcept { return next_until(&sorted_, when); }
  /// All, in no order.
  template <class F>
  void each(F action) {
    const auto in = [&](node& header) {
      for (auto* next = links::get_next(&header); next != &header;)
        action(at(std::exchange(next, links::get_next(next))));
    };
    in(sorted_);
    for (auto& slot : slots_) in(slot);
  }
  /// The next one after one that came from first_until(), or from here.
  value_type* next_until(value_type& after, time_point when) noexcept {
    return next_until(Traits::to_node_ptr(after), when);
  }

 private:
  using node_traits = typename Traits::node_traits;
  using node = typename node_traits::node;
  /// The links of a list, also where they are those of a tree. What is there has a parent in a tree, or is free.
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

  /// A slot has one such span of each round; what is for a later round stays there.
  static constexpr std::size_t slot_count = 1024;
  static constexpr time_point::duration span = std::chrono::milliseconds(16);

  static auto span_of(time_point when) noexcept { return when.time_since_epoch() / span; }
  static std::size_t slot_of(time_point when) noexcept { return static_cast<std::size_t>(span_of(when)) % slot_count; }
  static value_type& at(node* node) noexcept { return *Traits::to_value_ptr(node); }
  static bool sooner(node* left, node* right) noexcept { return Sooner()(at(left), at(right)); }

  static bool is_empty(const node& header) noexcept { return links::get_next(&header) == &header; }
  bool nothing_sorted() const noexcept { return is_empty(sorted_); }
  const value_type& first_sorted() const noexcept { return *Traits::to_value_ptr(links::get_next(&sorted_)); }
  // Not more is put in order than is asked for: it would be out of the cache when its turn comes.
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

  // Chains: nodes that are linked forwards, up to null.
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
    std::array<node*, 64> runs{};  // each of twice as many as the one before, or null
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
  std::array<time_point, slot_count> firsts_;  // of each slot; nothing there is due before
  time_point first_of_slots_ = time_point::max();
  std::size_t size_ = 0;
};

}  // namespace holdfast::detail
