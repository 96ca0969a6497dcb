// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/intrusive/list.hpp>
#include <memory>
#include <mutex>
#include <utility>

#include "base/block_pool.hpp"
#include "base/fork_guard.hpp"

namespace holdfast::detail {

/// The life of an execution_context, for objects that do not run on it: plain memory that may outlive the context.
///
/// Decision: the end of an io_context owns everything that belongs to it. A client, its leases, its callers and two
/// io_contexts may end in any order, on any threads. So strands, timers, sockets and coroutines are guests of their
/// context's life. A guest is removed in time, or ended by ~execution_context. Every other object only refers to a
/// guest; it touches the guest, or posts to its context, in a visit. ~execution_context waits for the visits under
/// way, then ends the guests that are left. A visit costs two atomic operations, and no end waits for another.
class context_life {
 public:
  class guest {
   public:
    guest() = default;
    guest(const guest&) = delete;
    guest& operator=(const guest&) = delete;
    virtual ~guest() = default;
    /// The context ends, and no visit is under way. Destroy here everything that belongs to the context. Called in the
    /// thread that ends it.
    virtual void context_ended() = 0;
    /// This process is a child, and all of this is a copy. The context lives on.
    virtual void forked() {}

   private:
    friend class context_life;

    boost::intrusive::list_member_hook<> hook_;
    std::shared_ptr<guest> kept_;  // by the life, which owns it
  };

  /// Any thread; may be nested. False: the context has ended, or is ending.
  class visit {
   public:
    explicit visit(context_life& at) noexcept : at_(at.enter() ? &at : nullptr) {}
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() {
      if (at_) at_->leave();
    }
    explicit operator bool() const noexcept { return at_ != nullptr; }

   private:
    context_life* const at_;
  };

  /// Of the context of `executor`, which has not begun to end.
  static const std::shared_ptr<context_life>& of(const boost::asio::any_io_executor& executor);

  /// From now on its guests are notified of forks. Call it after the guests have made all services that they use: Asio
  /// notifies services in the order in which they were made. A descriptor that is closed before the reactor was
  /// notified is removed from the parent's epoll set as well.
  static void hear_of_forks(boost::asio::execution_context& context);

  explicit context_life(const boost::asio::execution_context& context) noexcept : context_(&context) {}
  /// In a visit: another context may be at the same address later.
  bool is_of(const boost::asio::execution_context& context) const noexcept { return context_ == &context; }

  /// In a child process, where all of this is a copy.
  bool elsewhere() const noexcept { return here_.elsewhere(); }

  // In a visit.
  void add(std::shared_ptr<guest> guest) noexcept;
  /// Makes one, in memory that was another's before, and adds it.
  template <class Guest, class... Args>
  std::shared_ptr<Guest> admit(Args&&... args) {
    const std::lock_guard lock(guard_);
    auto made = make_pooled<Guest>(blocks_, std::forward<Args>(args)...);
    take_in(made);
    return made;
  }
  /// One that was added; at most once.
  std::shared_ptr<guest> remove(guest& guest) noexcept;

  // The context's.
  void end();
  void fork();

 private:
  bool enter() noexcept;
  void leave() noexcept;
  void take_in(std::shared_ptr<guest> guest) noexcept;
  std::shared_ptr<guest> take_out(guest& guest) noexcept;

  static constexpr int one_visit = 2, ended = 1;

  const boost::asio::execution_context* const context_;
  const fork_guard here_;
  const block_pool_ptr blocks_{new block_pool};
  std::atomic<int> state_{0};  // visits under way, and whether it has ended
  std::mutex guard_;
  boost::intrusive::list<guest,
                         boost::intrusive::member_hook<guest, boost::intrusive::list_member_hook<>, &guest::hook_>>
      guests_;
};

}  // namespace holdfast::detail
