// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chaos/asking.hpp"
#include "chaos/call_book.hpp"
#include "chaos/nested_rig.hpp"
#include "chaos/workload.hpp"

namespace holdfast::chaos {

/// One owner, whose calls nest: what it holds it locks again, and others besides, in turn and in branches of `&&`, and
/// is cancelled in between.
///
/// Tasks do not wait for each other in a circle: who holds anything waits for another lock for a bounded time.
class nested_task {
 public:
  nested_task(call_book& book, nested_rig::kit redis, std::size_t number, std::uint64_t seed)
      : book_(book), redis_(redis), number_(number), dice_(seed) {}

  /// To be spawned as the task of its owner. Returns when `stopping()`, and what it has begun has ended.
  asio::awaitable<void> run(std::function<bool()> stopping);
  const owner& self() const noexcept { return self_; }

 private:
  /// What surrounds a section.
  struct scene {
    unsigned depth = 0;
    std::vector<lock_name> held{};  // by this owner, until the section has ended
    std::shared_ptr<const cancel_scope> cancels{};
  };
  enum class whose { bound, given, stranger };
  struct leases;

  asio::awaitable<void> do_section(scene s);
  asio::awaitable<void> do_one(scene s);
  asio::awaitable<void> do_any(scene s);
  asio::awaitable<void> do_all(scene s);
  asio::awaitable<void> do_body(scene s);
  asio::awaitable<void> do_break(scene s);
  asio::awaitable<void> do_question(const scene& s);

  template <class Lock>
  asio::awaitable<std::optional<lease_of<Lock>>> take(Lock m, const scene& s, const section& how, whose who);
  template <class Lock>
  asio::awaitable<void> do_body_of(Lock m, scene s, section how, whose who);
  template <class Held>
  asio::awaitable<void> work_and_release(Held l, const scene& s, const section& how, whose who);
  template <class Held>
  asio::awaitable<void> work(Held& l, scene s);
  template <class Held>
  asio::awaitable<void> release(Held l, const scene& s);
  template <class Held>
  asio::awaitable<void> unlock(Held& l, const scene& s, bool again);
  asio::awaitable<void> branch(scene s, std::optional<milliseconds> throws_after, std::shared_ptr<cancel_scope> all);
  asio::awaitable<void> branches(const scene& s);

  section draw(const scene& s, std::vector<lock_name> locks, section::choice of);
  std::vector<lock_name> draw_locks(std::size_t most, bool of_one_kind);
  whose draw_whose();
  mutex lock_of(const lock_name& lock, whose who, const owner& stranger) const;
  std::vector<mutex> locks_of(const section& how, whose who) const;
  client& client_of(const lock_name& lock) const;
  call_terms terms(const scene& s, std::string what, std::optional<milliseconds> limit) const;
  call_terms terms_of_ask(const scene& s, const section& how, whose who, std::string verb) const;

  call_book& book_;
  const nested_rig::kit redis_;
  const std::size_t number_;
  dice dice_;
  const owner self_;
  std::function<bool()> stopping_;
};

}  // namespace holdfast::chaos
