// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "api/coroutine_caller.hpp"

/// From a coroutine to the client's strand and back.
///
/// The work begins at once if the strand is idle and this thread may run it. The outcome is posted to the coroutine's
/// own executor: a caller never resumes inside the call (Boost 1.81 crashes), nor on the strand. No coroutine runs on
/// the strand. co_spawn does not lead there, because its cancellation handler refers to a signal that may be gone
/// (Boost 1.81). Nothing on the strand refers to the caller's frame.
///
/// The coroutine belongs to its own context, the engine to the client's (context_life). They may end in any order, on
/// any thread. A caller is answered when the client's context ends, and destroyed with its own.
///
/// Decision: no library code in the caller's cancellation state. In Asio that state belongs to the whole thread of
/// coroutines that co_spawn started. The library never resets it, and never awaits in it to clean up.
namespace holdfast::detail {

template <class T>
struct completion_signature {
  using type = void(std::exception_ptr, T);
};
template <>
struct completion_signature<void> {
  using type = void(std::exception_ptr);
};

/// A function for the client's strand, and `otherwise`, which is called if the client has ended or ends with its
/// context before. One of the two is called, once.
template <class Run, class Otherwise>
class strand_task {
 public:
  strand_task(Run run, Otherwise otherwise) : tasks_(std::in_place, std::move(run), std::move(otherwise)) {}
  strand_task(strand_task&& other) noexcept : tasks_(std::exchange(other.tasks_, std::nullopt)) {}
  strand_task& operator=(strand_task&&) = delete;
  ~strand_task() {
    try {
      if (const auto tasks = std::exchange(tasks_, std::nullopt)) tasks->second();
    } catch (...) {
      // No memory for the answer: the caller ends with its context.
    }
  }
  void operator()() {
    auto tasks = std::exchange(tasks_, std::nullopt);
    tasks->first(tasks->second);
  }

 private:
  std::optional<std::pair<Run, Otherwise>> tasks_;
};

/// Takes a caller to the strand, where its task begins. If the client or its context ends before, the caller gets that
/// error.
template <class T>
class strand_entry {
 public:
  using beginning = void (*)(const std::shared_ptr<caller<T>>&);

  strand_entry(std::shared_ptr<caller<T>> waiter, beginning begin) noexcept
      : waiter_(std::move(waiter)), begin_(begin) {}
  strand_entry(strand_entry&&) noexcept = default;
  strand_entry& operator=(strand_entry&&) = delete;
  ~strand_entry() {
    if (waiter_) lost();
  }
  void operator()() {
    const auto waiter = std::move(waiter_);
    begin_(waiter);
  }

 private:
  void lost() noexcept try { waiter_->client_has_ended(); } catch (...) {
    // No memory for the answer: the caller ends with its context.
  }

  std::shared_ptr<caller<T>> waiter_;
  beginning begin_;
};

/// `begin(engine&, std::shared_ptr<caller<T>>, const calling_coroutine&)` runs on the strand of `where`. The caller
/// gets its exceptions. If the client is gone the caller gets `ended`.
template <class T, class Begin>
asio::awaitable<T> on_strand(std::shared_ptr<core> where, Begin begin, errc ended = errc::closed) {
  auto initiate = [called_in = present_run(), ended](auto handler, const std::shared_ptr<core> client, Begin&& start) {
    using waiting_caller = coroutine_caller<T, decltype(handler), Begin>;
    auto waiting = waiting_caller::make(std::move(handler), client, std::move(start), called_in);
    waiting->ends_as(ended);
    if (!client) return waiting->client_has_ended();
    if (waiting->slot().is_connected())
      waiting->slot().assign(
          [to = std::weak_ptr(client), id = std::weak_ptr<caller<T>>(waiting)](asio::cancellation_type type) {
            const auto still_open = to.lock();  // the slot may outlive the client and its context
            if (!still_open || type == asio::cancellation_type::none) return;
            still_open->enter_later([id] {
              if (const auto still = id.lock()) still->cancel();
            });
          });
    client->enter(strand_entry<T>(std::move(waiting), &waiting_caller::begin));
  };
  asio::use_awaitable_t<> token;
  return asio::async_initiate<asio::use_awaitable_t<>, typename completion_signature<T>::type>(
      std::move(initiate), token, std::move(where), std::move(begin));
}

/// The error of a call that takes nothing, if its client has ended. An object that was moved from, or was made by a
/// client that was moved from, gives closed.
inline errc refused_by(const std::weak_ptr<core>& ended) noexcept {
  const std::weak_ptr<core> none;
  const bool never_was = !ended.owner_before(none) && !none.owner_before(ended);
  return never_was ? errc::closed : errc::shutting_down;
}

/// The answer of an empty lease to every verb. It comes at the co_await, like all errors.
template <class T>
asio::awaitable<T> not_held() {
  throw error(errc::not_held, "the lease is empty");
  co_return T();
}

}  // namespace holdfast::detail
