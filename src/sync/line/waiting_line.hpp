// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/block_pool.hpp"
#include "sync/command/push_demand.hpp"
#include "sync/line/acquisition.hpp"
#include "sync/line/line_rules.hpp"
#include "sync/line/place_keeper.hpp"

namespace holdfast::detail {

/// The waiters of one name in this client, first in, first out: their seats, the rules that decide for them, and the
/// alarm and the subscription that the rules want. The name acts (name.hpp); a line calls nobody.
class waiting_line {
 public:
  waiting_line(const environment& env, const kind& of) noexcept
      : rules(of, env.settings, env.random), alarm(env.alarms), pool_(*env.blocks) {}
  waiting_line(const waiting_line&) = delete;
  waiting_line& operator=(const waiting_line&) = delete;
  /// The engine ends. A cancellation slot may keep a waiter alive longer, so the waiter must forget its caller now.
  ~waiting_line() {
    while (!waiters_.empty()) take_out(first())->forget_caller();
  }

  // In its client's pool: a line comes and goes with each lock.
  static void* operator new(std::size_t size, block_pool& in) { return in.take(size); }
  static void operator delete(void* memory, block_pool& in) noexcept { in.give_back(memory, sizeof(waiting_line)); }
  static void operator delete(waiting_line* ended, std::destroying_delete_t) noexcept {
    auto& pool = ended->pool_;
    ended->~waiting_line();
    pool.give_back(ended, sizeof(waiting_line));
  }

  /// No call waits. The line lingers, or a release is under way.
  bool empty() const noexcept { return waiters_.empty(); }
  /// The line is of no use any more.
  bool over() const noexcept { return empty() && rules.over() && !places; }
  std::size_t size() const noexcept { return waiters_.size(); }
  acquisition& first() noexcept { return *waiters_.front().kept; }
  const acquisition& first() const noexcept { return *waiters_.front().kept; }
  bool is_first(const acquisition& waiter) const noexcept { return &waiter.seat == &waiters_.front(); }
  /// The waiter behind the first has this field.
  bool is_second(const owner_field& field) const noexcept {
    const auto second = empty() ? waiters_.end() : std::next(waiters_.begin());
    return second != waiters_.end() && second->tries.field == field;
  }
  /// The first waiter, if it could take a claim over now. Null: it has an attempt under way, asks once, or wants
  /// several locks.
  const acquisition* successor() const noexcept;
  template <class Visitor>
  void each_waiter(Visitor visit) {
    for (auto& seat : waiters_) visit(*seat.kept);
  }
  /// The waiters behind the first, until `visit` returns false.
  template <class Visitor>
  void each_behind_first(Visitor visit) {
    for (auto seat = std::next(waiters_.begin()); seat != waiters_.end() && visit(*seat->kept); ++seat) {
    }
  }

  /// Calls `visit(place, waiter)` for each of a party, which stands at the head of the line, in its order. Null: the
  /// waiter has left.
  template <class Visitor>
  void each_of(const std::vector<owner_field>& party, Visitor visit) const {
    auto seat = waiters_.begin();
    for (std::size_t place = 0; place < party.size(); ++place) {
      const bool there = seat != waiters_.end() && seat->tries.field == party[place];
      visit(place, there ? seat->kept.get() : nullptr);
      if (there) ++seat;
    }
  }

  /// Gives the waiter the last seat, and keeps it until take_out().
  void add(std::shared_ptr<acquisition> waiter);
  std::shared_ptr<acquisition> take_out(acquisition& waiter);
  /// Takes out a waiter of this owner that stands behind the first and may re-enter. Null: there is none.
  std::shared_ptr<acquisition> take_out_of(owner_id owner);
  /// The waiters for which `matches(const acquisition&)` is true, the last of them first: when the first leaves, the
  /// next one would send a useless attempt.
  template <class Predicate>
  std::vector<std::shared_ptr<acquisition>> matching(Predicate matches) const {
    std::vector<std::shared_ptr<acquisition>> found;
    for (auto seat = waiters_.rbegin(); seat != waiters_.rend(); ++seat)
      if (matches(std::as_const(*seat->kept))) found.push_back(seat->kept);
    return found;
  }
  /// The same for the waiters of one owner that was given or bound.
  std::vector<std::shared_ptr<acquisition>> all_of(owner_id owner) const;

  /// The fields of the attempt under way, the first waiter's before the others: empty if it asks for itself alone.
  std::vector<owner_field> party;
  line_rules rules;
  timer alarm;
  subscription messages;
  /// Of a kind with an order of all waiters, while the line listens or places may stand. Null: otherwise.
  std::shared_ptr<place_keeper> places;
  /// Gives each waiter its place.
  void keep_places(std::shared_ptr<place_keeper> keeper);
  push_demand::user pushes;  // while an attempt has asked for them, and the line listens

 private:
  std::size_t place_of(const acquisition& waiter) const noexcept;

  using seats = boost::intrusive::list<
      line_seat, boost::intrusive::member_hook<line_seat, boost::intrusive::list_member_hook<>, &line_seat::hook>>;

  seats waiters_;
  std::map<std::pair<owner_id, std::uint64_t>, acquisition*> bound_;  // waiters whose owner was given or bound
  std::uint64_t joined_ = 0;
  block_pool& pool_;
};

}  // namespace holdfast::detail
