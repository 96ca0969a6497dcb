// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <boost/intrusive/circular_list_algorithms.hpp>
#include <cstddef>

#include "base/assert.hpp"
#include "base/lease_clock.hpp"

namespace holdfast::detail {

/// Objects that have an instant each, the soonest first. A newcomer is put in its place when the first of them may be
/// due, and not before: most locks are released long before that, and coming and going costs next to nothing.
///
/// `Set`: a boost::intrusive::set in the order of the instants. One hook is enough: of a newcomer it is a link of a
/// list, whose head is taken for the parent in a tree.
template <class Set>
class agenda {
 public:
  using value_type = typename Set::value_type;

  agenda() noexcept { list::init_header(&head_); }
  agenda(const agenda&) = delete;
  agenda& operator=(const agenda&) = delete;
  ~agenda() {
    while (newcomers_ > 0) take_out(list_traits::get_next(&head_));
  }

  bool empty() const noexcept { return size() == 0; }
  std::size_t size() const noexcept { return sorted_.size() + newcomers_; }

  /// Its instant is `when` as long as it is here.
  void insert(value_type& what, time_point when) noexcept {
    const auto node = traits::to_node_ptr(what);
    HOLDFAST_ASSERT(!tree::get_parent(node));
    list::link_before(&head_, node);
    tree::set_parent(node, &head_);
    ++newcomers_;
    first_of_newcomers_ = std::min(first_of_newcomers_, when);
  }
  void erase(value_type& what) noexcept {
    const auto node = traits::to_node_ptr(what);
    if (tree::get_parent(node) == &head_) return take_out(node);
    sorted_.erase(sorted_.iterator_to(what));
  }
  /// Nothing is due before that; perhaps nothing at it either. time_point::max(): there is nothing.
  time_point earliest() const noexcept {
    const auto first = sorted_.empty() ? time_point::max() : sorted_.begin()->when();
    return std::min(first, first_of_newcomers_);
  }
  /// All, in their order.
  Set& sorted() noexcept {
    while (newcomers_ > 0) {
      const auto node = list_traits::get_next(&head_);
      take_out(node);
      sorted_.insert(sorted_.end(), *traits::to_value_ptr(node));  // most often the last
    }
    return sorted_;
  }

 private:
  using traits = typename Set::value_traits;
  using tree = typename traits::node_traits;
  struct list_traits {
    using node = typename tree::node;
    using node_ptr = typename tree::node_ptr;
    using const_node_ptr = typename tree::const_node_ptr;
    static node_ptr get_next(const const_node_ptr& n) { return tree::get_right(n); }
    static void set_next(const node_ptr& n, const node_ptr& next) { tree::set_right(n, next); }
    static node_ptr get_previous(const const_node_ptr& n) { return tree::get_left(n); }
    static void set_previous(const node_ptr& n, const node_ptr& previous) { tree::set_left(n, previous); }
  };
  using list = boost::intrusive::circular_list_algorithms<list_traits>;

  void take_out(typename tree::node_ptr node) noexcept {
    list::unlink(node);
    Set::node_algorithms::init(node);
    if (--newcomers_ == 0) first_of_newcomers_ = time_point::max();
  }

  Set sorted_;
  typename tree::node head_;
  std::size_t newcomers_ = 0;
  time_point first_of_newcomers_ = time_point::max();
};

}  // namespace holdfast::detail
