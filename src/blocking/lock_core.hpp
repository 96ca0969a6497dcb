// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <holdfast/any_of.hpp>
#include <holdfast/fenced_mutex.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_options.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/owner.hpp>

#include "blocking/io_thread.hpp"
#include "blocking/stop_thread.hpp"

namespace holdfast::blocking::detail {

using any_lock = std::variant<holdfast::mutex, holdfast::fenced_mutex, holdfast::any_of, holdfast::multi_lock>;
/// The lock on one name that it is.
const holdfast::mutex& plain(const any_lock& what);
using any_lease = std::variant<lease, multi_lease>;

/// How a hold was given back.
struct hold_ending {
  bool known = false;           // it was
  bool lost = false;            // before that
  std::exception_ptr failed{};  // why it was not given back in order, or null
};

/// What a lock object refers to, and what threads hold through it. Any thread, besides what is said in a child process:
/// see io_thread::elsewhere().
class lock_core : public std::enable_shared_from_this<lock_core> {
 public:
  using number = std::uint64_t;  // of a hold; never again

  struct hold {
    owner_id who;
    number which;
    any_lease what;
    stop_to_request loss{};                // once somebody has asked for it
    std::shared_ptr<hold_ending> ended{};  // where to say it, if somebody wants to know
  };

  /// `homes`: of all clients concerned; the first runs its operations. `name`: empty where there are several.
  lock_core(std::vector<std::shared_ptr<io_thread>> homes, any_lock what, lock_options terms, std::string name);

  io_thread& home() const noexcept { return *homes_.front(); }
  const std::vector<std::shared_ptr<io_thread>>& homes() const noexcept { return homes_; }
  const any_lock& what() const noexcept { return what_; }
  const std::string& name() const noexcept { return name_; }
  bool elsewhere() const noexcept { return home().elsewhere(); }
  /// For texts.
  std::string about(std::string_view said) const;

  // These wait, and throw as lockable says.
  number lock(const owner& who);
  /// Empty: not had in time.
  std::optional<number> try_lock(const owner& who, milliseconds wait);
  void renew(const owner& who, milliseconds ttl);
  void check(const owner& who);
  void unlock(const owner& who) noexcept;
  void give_back(hold what) noexcept;

  /// The newest hold of this thread, or that one of its holds; empty: there is none.
  std::optional<hold> take_out(const owner& who, std::optional<number> which = {}) noexcept;
  /// `ask(const any_lease&)` of the newest hold of this thread; `otherwise` without one.
  template <class Ask, class T>
  T newest(const owner& who, Ask ask, T otherwise) const {
    if (elsewhere()) return otherwise;
    const std::lock_guard lock(guard_);
    const auto* const h = find(who);
    return h ? ask(h->what) : otherwise;
  }
  std::stop_token stop_token(const owner& who);
  /// Where it is said how the newest hold of this thread was given back; not known if its object ends before.
  std::shared_ptr<const hold_ending> watch(const owner& who);
  void feed(const owner& who) noexcept;

  /// Its object ends: what is held is released in the background, its stops are requested, who waits gets closed, and
  /// so does who comes later.
  void abandon() noexcept;
  /// The thread ends: what it holds is released in the background.
  void thread_ends(const owner& who) noexcept;

 private:
  std::optional<number> acquire(const owner& who, std::optional<milliseconds> wait);
  number keep(const owner& who, any_lease got);
  void check_here() const;  // throws closed in a child process
  // Guarded.
  const hold* find(const owner& who) const noexcept;
  hold* find(const owner& who) noexcept;
  hold& must_find(const owner& who);

  const std::vector<std::shared_ptr<io_thread>> homes_;
  const any_lock what_;
  const lock_options terms_;
  const std::string name_;
  mutable std::mutex guard_;
  bool abandoned_ = false;  // it and all below are guarded
  number last_ = 0;
  std::vector<hold> holds_;  // of one thread, its re-entries, and those who have lost theirs: few
  std::vector<call_ptr> waiting_;
};

}  // namespace holdfast::blocking::detail
