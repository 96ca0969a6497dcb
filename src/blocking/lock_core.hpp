// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/error.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <holdfast/any_of.hpp>
#include <holdfast/fair_mutex.hpp>
#include <holdfast/fenced_mutex.hpp>
#include <holdfast/lock_options.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/shared_mutex.hpp>

#include "blocking/io_thread.hpp"
#include "blocking/this_thread.hpp"
#include "blocking/thread_holds.hpp"

namespace holdfast::blocking::detail {

using any_lock =
    std::variant<holdfast::mutex, holdfast::fair_mutex, holdfast::fenced_mutex, holdfast::any_of, holdfast::multi_lock>;
/// The lock as one on a single name. It must not be an any_of or a multi_lock.
const holdfast::mutex& plain(const any_lock& lock);

/// The state of a lock object: the calls of threads, run by the io thread of a client. Any thread; in a child process
/// see io_thread::elsewhere().
///
/// Decision: a thread's holds are kept in the lock object, because that may end while threads hold. A thread notes the
/// objects through which it holds something, because it may end before them. In a child process all of it stays as it
/// was copied and is never destroyed.
class lock_core final : public thread_end_listener, public std::enable_shared_from_this<lock_core> {
 public:
  using serial = std::uint64_t;  // of a hold

  /// `homes`: of all clients concerned; the first runs its operations. `name`: empty where there are several.
  lock_core(std::vector<std::shared_ptr<io_thread>> homes, any_lock lock, lock_options terms, std::string name);

  io_thread& home() const noexcept { return *homes_.front(); }
  const std::vector<std::shared_ptr<io_thread>>& homes() const noexcept { return homes_; }
  const any_lock& underlying() const noexcept { return underlying_; }
  lock_options terms() const noexcept { return terms_; }
  const std::string& name() const noexcept { return holds_.name(); }
  bool elsewhere() const noexcept { return home().elsewhere(); }
  /// For texts.
  std::string about(std::string_view text) const { return holds_.about(text); }

  // These wait, and throw as documented for lockable. `thread` keeps the hold: an owner that is no thread keeps it when
  // threads end. The owner of the lock is the calling thread.
  serial lock(const owner& thread);
  /// Empty: not granted in time.
  std::optional<serial> try_lock(const owner& thread, milliseconds wait);
  /// Empty: the stop was requested before.
  std::optional<serial> lock_until_stopped(const owner& thread, const std::stop_token& stop);
  void renew(const owner& thread, milliseconds ttl);
  /// Runs an operation on the newest hold of this thread: `begin(any_lease&)` makes it.
  template <class Begin>
  void run_on_newest(const owner& thread, Begin begin) {
    check_here();
    auto operation = holds_.with_own(thread, [&begin](thread_hold& own) { return begin(own.granted); });
    home().run(thread, std::move(operation), errc::closed);
  }
  /// The result of an operation that may wait for long. It throws closed when the lock object ends.
  template <class T>
  T get_while_here(asio::awaitable<T> operation) {
    const auto waiting = std::make_shared<call>();
    const place_in_line place(holds_, waiting);
    try {
      return home().get(this_thread(), std::move(operation), errc::shutting_down, waiting);
    } catch (const boost::system::system_error& failure) {
      if (failure.code() != asio::error::operation_aborted) throw;
      throw_object_ended();
    }
  }
  /// The thread's newest hold, a writer's, becomes one of `reader`, the other side. If that fails, it stays here, and
  /// the failure is thrown.
  void downgrade(const owner& thread, const holdfast::shared_mutex& of, lock_core& reader);
  void check(const owner& thread);
  void unlock(const owner& thread) noexcept;
  void give_back(thread_hold held) noexcept;

  /// The newest hold of this thread, or the one of this number; empty: there is none.
  std::optional<thread_hold> take_out(const owner& thread, std::optional<serial> number = {}) noexcept;
  /// The newest lost hold of this thread, or else its newest; empty: there is none.
  std::optional<thread_hold> take_out_lost_first(const owner& thread) noexcept;
  /// `ask(const any_lease&)` of the newest hold of this thread; `otherwise` without one.
  template <class Ask, class T>
  T newest(const owner& thread, Ask ask, T otherwise) const {
    if (elsewhere()) return otherwise;
    return holds_.with_newest(thread, [&](const thread_hold* own) { return own ? ask(own->granted) : otherwise; });
  }
  std::stop_token stop_token(const owner& thread);
  /// The place where the end of this thread's newest hold will be noted. It stays unknown if the object ends before.
  std::shared_ptr<const hold_ending> watch(const owner& thread) { return holds_.watch(thread); }
  void feed(const owner& thread) noexcept;

  /// The lock object ends: its holds are released in the background, their stops are requested, and every waiter,
  /// present or future, gets closed.
  void end() noexcept { (void)close(); }
  /// end(), without the release of the holds: the result releases them when it is destroyed. Two sides of one lock need
  /// it, since a hold of one may keep a waiter of the other out.
  [[nodiscard]] std::vector<thread_hold> close() noexcept;
  /// Releases the holds of the thread in the background.
  void thread_ends(const owner& thread) noexcept override;

 private:
  std::optional<serial> acquire(const owner& thread, std::optional<milliseconds> wait,
                                const std::stop_token& stop = {});
  serial keep(const owner& thread, any_lease granted);
  void note_thread(const owner& thread);
  thread_hold take_newest(const owner& thread);  // throws not_held
  void check_here() const;                       // throws closed in a child process
  [[noreturn]] void throw_object_ended() const;

  const std::vector<std::shared_ptr<io_thread>> homes_;
  const any_lock underlying_;
  const std::string note_;  // terms_ refers to it
  lock_options terms_;
  thread_holds holds_;
};

}  // namespace holdfast::blocking::detail
