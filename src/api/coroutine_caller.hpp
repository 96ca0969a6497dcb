// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <atomic>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/detail/thread_context.hpp>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "api/caller.hpp"
#include "base/reserved_block.hpp"

/// A caller that is a coroutine: its memory, its way home, and the end of its context.
///
/// Decision: a coroutine is known by the bottom of its stack. Only a call of the coroutine that holds the lock waits
/// for itself. The completion handler of use_awaitable knows the thread of co_spawn that it resumes; its address is
/// kept with the hold. If a call is made in one handler and awaited in another, its caller is unknown: the awaiting
/// coroutine did not make it. A later coroutine may get the address of one that has ended and has handed its lease on.
/// The event is then wrong, so nothing but an event depends on it.
namespace holdfast::detail {

/// The run of an executor's thread that the caller is in; null: none that Asio knows.
inline const void* present_run() noexcept { return asio::detail::thread_context::top_of_thread_call_stack(); }

/// The thread of co_spawn that a completion handler of use_awaitable resumes.
template <class Handler>
const void* coroutine_of(Handler& handler) noexcept {
  if constexpr (requires { handler.entry_point(); })
    return handler.entry_point();
  else
    return nullptr;
}

/// While it lives, its lease is on its way to the caller. A lease that is destroyed meanwhile was held for no time.
class handover_mark {
 public:
  explicit handover_mark(const lease& granted) : record_(access::record(granted)) { mark(); }
  explicit handover_mark(const std::optional<lease>& granted) : record_(granted ? access::record(*granted) : nullptr) {
    mark();
  }
  template <class Other>
  explicit handover_mark(const Other&) noexcept {}
  handover_mark(const handover_mark&) = delete;
  handover_mark& operator=(const handover_mark&) = delete;
  ~handover_mark() {
    if (record_) record_->handed_over_at.store(0, std::memory_order_release);
  }

 private:
  void mark() noexcept {
    if (record_)
      record_->handed_over_at.store(record_->of->time().now().time_since_epoch().count(), std::memory_order_release);
  }

  std::shared_ptr<lease_record> record_;
};

/// The coroutine and its executor belong to its own context, which may end before the client's. So the caller is a
/// guest of its own context's life.
///
/// Decision: the answer waits in the caller. The caller has the coroutine, the answer, and the memory for the handler
/// that takes the answer home. Nothing is copied on the way, and each context destroys what is its own. There may be a
/// hundred thousand waiters, so the caller has nothing else.
template <class T, class Handler, class Begin>
class coroutine_caller final : public caller<T>, public context_life::guest {
  static_assert(std::is_nothrow_move_constructible_v<Begin>, "it goes to the strand, and must come to an answer");

 public:
  using slot_type = asio::associated_cancellation_slot_t<Handler>;

  /// `client`: the called one; null if it has ended. `called_in`: present_run() of the call.
  static std::shared_ptr<coroutine_caller> make(Handler&& handler, const std::shared_ptr<core>& client, Begin&& begin,
                                                const void* called_in) {
    const asio::any_io_executor home = asio::get_associated_executor(handler);
    const auto& life = life_of(home, client.get());
    const bool called_here = called_in && called_in == present_run();
    const calling_coroutine by{owner::of(home), called_here ? coroutine_of(handler) : nullptr};
    const context_life::visit here(*life);
    return here ? life->admit<coroutine_caller>(std::move(handler), life, client, by, std::move(begin))
                : std::make_shared<coroutine_caller>(std::move(handler), life, client, by, std::move(begin));
  }

  coroutine_caller(Handler&& handler, const std::shared_ptr<context_life>& life, const std::shared_ptr<core>& client,
                   const calling_coroutine& by, Begin&& begin)
      : life_(life), coroutine_(std::in_place, std::move(handler)),
        state_(std::in_place_type<task>, client, by, std::move(begin)) {}

  // Before anything is answered, in the call.
  slot_type& slot() { return coroutine_->slot; }

  /// On the strand, once.
  static void begin(const std::shared_ptr<caller<T>>& waiter) {
    auto& self = static_cast<coroutine_caller&>(*waiter);
    auto* const waiting = std::get_if<task>(&self.state_);
    if (!waiting) return;  // answered meanwhile
    const auto [client, by, begin] = std::move(*waiting);
    self.state_.template emplace<std::monostate>();
    try {
      client->catch_up();
      auto* const locks = client->locks();
      if (!locks) return self.client_has_ended();
      begin(*locks, waiter, by);
    } catch (...) {
      self.fail(std::current_exception());
    }
  }

 private:
  struct coroutine {
    explicit coroutine(Handler&& to) : slot(asio::get_associated_cancellation_slot(to)), handler(std::move(to)) {}
    slot_type slot;
    Handler handler;
  };

  static const std::shared_ptr<context_life>& life_of(const asio::any_io_executor& home, const core* client) {
    auto& context = asio::query(home, asio::execution::context);
    if (client)
      if (const context_life::visit here(*client->life()); here && client->life()->is_of(context))
        return client->life();
    return context_life::of(home);
  }

  /// Its work on the strand.
  struct task {
    std::shared_ptr<core> client;
    calling_coroutine by;
    Begin begin;
  };
  /// Memory for the handler that takes the answer home, once.
  using handler_memory = reserved_block<6 * sizeof(void*), single_use_block>;
  /// It takes the place of the task: there may be many waiters.
  struct outcome {
    std::exception_ptr failure;
    value_of<T> value;
    handler_memory memory;
  };

  /// Takes the answer home. If it is destroyed on the way, the coroutine ends: its context has ended, or there was no
  /// memory for the post.
  class resumption {
   public:
    using allocator_type = source_allocator<std::byte, handler_memory>;

    explicit resumption(std::shared_ptr<coroutine_caller> waiter) noexcept : waiter_(std::move(waiter)) {}
    resumption(resumption&&) noexcept = default;
    resumption& operator=(resumption&&) = delete;
    ~resumption() {
      if (waiter_) waiter_->end();
    }
    allocator_type get_allocator() const noexcept {
      return allocator_type(std::get_if<outcome>(&waiter_->state_)->memory);
    }
    void operator()() {
      const auto waiter = std::move(waiter_);
      waiter->go_on();
    }

   private:
    std::shared_ptr<coroutine_caller> waiter_;
  };

  void resume(std::exception_ptr&& failure, value_of<T>&& value) override {
    const context_life::visit here(*life_);
    if (!here) return;
    resumption way(std::static_pointer_cast<coroutine_caller>(life_->remove(*this)));
    state_.template emplace<outcome>(std::move(failure), std::move(value));
    post_to(asio::get_associated_executor(coroutine_->handler), std::move(way));
  }

  // On the coroutine's own executor.
  void go_on() {
    auto& slot = coroutine_->slot;
    if (slot.is_connected()) slot.clear();  // here, and never from the strand
    auto handler = std::move(coroutine_->handler);
    auto& answer = std::get<outcome>(state_);
    coroutine_.reset();
    const handover_mark under_way(answer.value);
    if constexpr (std::is_void_v<T>)
      std::move(handler)(std::move(answer.failure));
    else
      std::move(handler)(std::move(answer.failure), std::move(answer.value));
  }

  // Nothing else is touched: its task may be beginning on the client's strand.
  void end() { coroutine_.reset(); }
  void context_ended() override { end(); }

  const std::shared_ptr<context_life> life_;
  std::optional<coroutine> coroutine_;                 // until it goes on
  std::variant<task, std::monostate, outcome> state_;  // on its way to the strand, there, and on its way home
};

}  // namespace holdfast::detail
