// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/detail/thread_context.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "api/core.hpp"

/// From a coroutine to the client's strand and back.
///
/// The work begins at once where the strand is idle and ours to run, and its outcome is posted to the coroutine's own
/// executor: a caller never resumes inside the call (Boost 1.81 crashes) nor on our strand. No coroutine runs on the
/// strand, and co_spawn is not used to get there, because its cancellation handler refers to a signal that may be gone
/// (Boost 1.81). Nothing on the strand refers to the caller's frame.
///
/// The coroutine belongs to its own context, the engine to the client's (context_life): whichever ends first, and on
/// whichever thread, a caller is answered when the client's does, and is destroyed with its own.
namespace holdfast::detail {

template <class T>
using value_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

inline std::exception_ptr to_exception(const error_code& code, const std::string& detail) {
  if (code == asio::error::operation_aborted) return std::make_exception_ptr(boost::system::system_error(code));
  return std::make_exception_ptr(error(code, detail));
}

/// A suspended coroutine that waits for a T. On the strand; answered once, what comes later is dropped.
template <class T>
class caller {
 public:
  virtual ~caller() = default;

  /// Its answer if the client has ended.
  void ends_as(errc code) noexcept { when_ended_ = code; }
  void client_has_ended() { answer(when_ended_, {}); }
  /// From now on the text of a failure begins with this lock's name.
  void concerns(shared_keys lock) { lock_ = std::move(lock); }

  void answer(const error_code& code, const std::string& detail, value_of<T> value = {}) {
    if (!code) return fail_or_resume(nullptr, std::move(value));
    fail(to_exception(code, lock_ ? about(lock_->name, detail) : detail));
  }
  void fail(std::exception_ptr failure) { fail_or_resume(std::move(failure), value_of<T>()); }

  /// Who is to be told of a cancellation. Without one the caller is answered and the work goes on in the background.
  void cancels(cancellable_ptr what) {
    if (!answered_) target_ = std::move(what);
  }
  void cancel() {
    if (answered_) return;
    if (const auto target = target_) return target->cancel();
    answer(asio::error::operation_aborted, {});
  }

 private:
  virtual void resume(std::exception_ptr&& failure, value_of<T>&& value) = 0;

  void fail_or_resume(std::exception_ptr&& failure, value_of<T>&& value) {
    if (std::exchange(answered_, true)) return;
    target_.reset();
    resume(std::move(failure), std::move(value));
  }

  shared_keys lock_;
  cancellable_ptr target_;
  errc when_ended_ = errc::closed;
  bool answered_ = false;
};

/// The caller of an operation, as far as its coroutine tells.
struct calling_coroutine {
  std::optional<owner> bound;       // to its executor
  const void* coroutine = nullptr;  // the thread of its co_spawn; null: it cannot be known
};

/// The run of an executor's thread that the caller is in; null: none that Asio knows. A call that is awaited elsewhere
/// than it was made was not made by the coroutine that awaits it.
inline const void* present_run() noexcept { return asio::detail::thread_context::top_of_thread_call_stack(); }

/// The thread of co_spawn that a completion handler of use_awaitable resumes. A later thread may have the address of
/// one that has ended.
template <class Handler>
const void* coroutine_of(Handler& handler) noexcept {
  if constexpr (requires { handler.entry_point(); })
    return handler.entry_point();
  else
    return nullptr;
}

/// While it lives its lease is handed to who asked for it: what is destroyed meanwhile was held for no time.
class handing_over {
 public:
  explicit handing_over(const lease& l) : record_(access::record(l)) { mark(); }
  explicit handing_over(const std::optional<lease>& l) : record_(l ? access::record(*l) : nullptr) { mark(); }
  template <class Other>
  explicit handing_over(const Other&) noexcept {}
  handing_over(const handing_over&) = delete;
  handing_over& operator=(const handing_over&) = delete;
  ~handing_over() {
    if (record_) record_->handed_over_at.store(0, std::memory_order_release);
  }

 private:
  void mark() noexcept {
    if (record_)
      record_->handed_over_at.store(record_->of->time().now().time_since_epoch().count(), std::memory_order_release);
  }

  std::shared_ptr<lease_record> record_;
};

/// The coroutine and its executor belong to its own context, which may end before the client's: a guest of that one's
/// life.
template <class T, class Handler, class Begin>
class coroutine_caller final : public caller<T>, public context_life::guest {
  static_assert(std::is_nothrow_move_constructible_v<Begin>, "it goes to the strand, and must come to an answer");

 public:
  using slot_type = asio::associated_cancellation_slot_t<Handler>;

  /// `client`: the one that it calls; null if that has ended. `called_in`: present_run() of the call.
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
  static void begin(const std::shared_ptr<caller<T>>& who) {
    auto& self = static_cast<coroutine_caller&>(*who);
    auto* const waiting = std::get_if<task>(&self.state_);
    if (!waiting) return;  // answered meanwhile
    const auto [client, by, begin] = std::move(*waiting);
    self.state_.template emplace<std::monostate>();
    try {
      client->catch_up();
      auto* const locks = client->locks();
      if (!locks) return self.client_has_ended();
      begin(*locks, who, by);
    } catch (...) {
      self.fail(std::current_exception());
    }
  }

 private:
  struct coroutine {
    explicit coroutine(Handler&& h) : slot(asio::get_associated_cancellation_slot(h)), handler(std::move(h)) {}
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
  struct handler_memory {
    alignas(void*) std::byte bytes[6 * sizeof(void*)];
    bool used = false;
  };
  /// In the place that its task has left: there may be many waiters.
  struct outcome {
    std::exception_ptr failure;
    value_of<T> value;
    handler_memory memory{};
  };

  template <class U>
  struct own_memory {
    using value_type = U;

    explicit own_memory(handler_memory& m) noexcept : of(&m) {}
    template <class Other>
    own_memory(const own_memory<Other>& other) noexcept : of(other.of) {}

    U* allocate(std::size_t n) {
      constexpr bool aligned = alignof(U) <= alignof(void*);
      const bool fits = aligned && n * sizeof(U) <= sizeof of->bytes && !std::exchange(of->used, true);
      return static_cast<U*>(fits ? of->bytes : ::operator new(n * sizeof(U)));
    }
    void deallocate(U* memory, std::size_t) noexcept {
      if (static_cast<void*>(memory) != of->bytes) ::operator delete(memory);
    }
    friend bool operator==(const own_memory&, const own_memory&) = default;

    handler_memory* of;
  };

  /// Takes the answer home. Where it is destroyed on the way, the coroutine ends: its context has ended, or there was
  /// no memory to go there.
  class way_home {
   public:
    using allocator_type = own_memory<std::byte>;

    explicit way_home(std::shared_ptr<coroutine_caller> who) noexcept : who_(std::move(who)) {}
    way_home(way_home&&) noexcept = default;
    way_home& operator=(way_home&&) = delete;
    ~way_home() {
      if (who_) who_->end();
    }
    allocator_type get_allocator() const noexcept {
      return allocator_type(std::get_if<outcome>(&who_->state_)->memory);
    }
    void operator()() {
      const auto who = std::move(who_);
      who->go_on();
    }

   private:
    std::shared_ptr<coroutine_caller> who_;
  };

  void resume(std::exception_ptr&& failure, value_of<T>&& value) override {
    const context_life::visit here(*life_);
    if (!here) return;
    way_home way(std::static_pointer_cast<coroutine_caller>(life_->remove(*this)));
    state_.template emplace<outcome>(std::move(failure), std::move(value));
    post_to(asio::get_associated_executor(coroutine_->handler), std::move(way));
  }

  // On the coroutine's own executor.
  void go_on() {
    auto& slot = coroutine_->slot;
    if (slot.is_connected()) slot.clear();  // here, and never from the strand
    auto handler = std::move(coroutine_->handler);
    auto& said = std::get<outcome>(state_);
    coroutine_.reset();
    const handing_over under_way(said.value);
    if constexpr (std::is_void_v<T>)
      std::move(handler)(std::move(said.failure));
    else
      std::move(handler)(std::move(said.failure), std::move(said.value));
  }

  // Nothing else is touched: its task may be beginning on the client's strand.
  void end() { coroutine_.reset(); }
  void context_ended() override { end(); }

  const std::shared_ptr<context_life> life_;
  std::optional<coroutine> coroutine_;                 // until it goes on
  std::variant<task, std::monostate, outcome> state_;  // on its way to the strand, there, and on its way home
};

template <class T>
struct completion_signature {
  using type = void(std::exception_ptr, T);
};
template <>
struct completion_signature<void> {
  using type = void(std::exception_ptr);
};

/// A function for the client's strand, and `otherwise`, which is called instead when the client has ended or ends with
/// its context before. One of the two is called, once.
template <class Run, class Otherwise>
class errand {
 public:
  errand(Run run, Otherwise otherwise) : tasks_(std::in_place, std::move(run), std::move(otherwise)) {}
  errand(errand&& other) noexcept : tasks_(std::exchange(other.tasks_, std::nullopt)) {}
  errand& operator=(errand&&) = delete;
  ~errand() {
    try {
      if (const auto t = std::exchange(tasks_, std::nullopt)) t->second();
    } catch (...) {
      // No memory for the answer: whoever waits for it ends with its context.
    }
  }
  void operator()() {
    auto t = std::exchange(tasks_, std::nullopt);
    t->first(t->second);
  }

 private:
  std::optional<std::pair<Run, Otherwise>> tasks_;
};

/// Takes a caller to the strand, where its task begins. Where the client ends before, or with its context, the caller
/// hears that.
template <class T>
class way_there {
 public:
  using beginning = void (*)(const std::shared_ptr<caller<T>>&);

  way_there(std::shared_ptr<caller<T>> who, beginning begin) noexcept : who_(std::move(who)), begin_(begin) {}
  way_there(way_there&&) noexcept = default;
  way_there& operator=(way_there&&) = delete;
  ~way_there() {
    if (who_) lost();
  }
  void operator()() {
    const auto who = std::move(who_);
    begin_(who);
  }

 private:
  void lost() noexcept try { who_->client_has_ended(); } catch (...) {
    // No memory for the answer: whoever waits for it ends with its context.
  }

  std::shared_ptr<caller<T>> who_;
  beginning begin_;
};

/// `begin(engine&, std::shared_ptr<caller<T>>, const calling_coroutine&)` runs on the strand of `where`. The caller
/// gets its exceptions. If the client is gone the caller gets `ended`.
template <class T, class Begin>
asio::awaitable<T> on_strand(std::shared_ptr<core> where, Begin begin, errc ended = errc::closed) {
  auto initiate = [called_in = present_run(), ended](auto handler, const std::shared_ptr<core> c, Begin&& start) {
    using waiting_caller = coroutine_caller<T, decltype(handler), Begin>;
    auto waiting = waiting_caller::make(std::move(handler), c, std::move(start), called_in);
    waiting->ends_as(ended);
    if (!c) return waiting->client_has_ended();
    if (waiting->slot().is_connected())
      waiting->slot().assign(
          [to = std::weak_ptr(c), id = std::weak_ptr<caller<T>>(waiting)](asio::cancellation_type type) {
            const auto client = to.lock();  // the slot may outlive the client, and its context
            if (!client || type == asio::cancellation_type::none) return;
            client->enter_later([id] {
              if (const auto still = id.lock()) still->cancel();
            });
          });
    c->enter(way_there<T>(std::move(waiting), &waiting_caller::begin));
  };
  asio::use_awaitable_t<> token;
  return asio::async_initiate<asio::use_awaitable_t<>, typename completion_signature<T>::type>(
      std::move(initiate), token, std::move(where), std::move(begin));
}

/// The error of a call that takes nothing, if its client has ended. An object that was moved from, or made of a client
/// that was, gives closed.
inline errc refused_by(const std::weak_ptr<core>& ended) noexcept {
  const std::weak_ptr<core> none;
  const bool never_was = !ended.owner_before(none) && !none.owner_before(ended);
  return never_was ? errc::closed : errc::shutting_down;
}

/// The answer of an empty lease to every verb, at the co_await like all errors.
template <class T>
asio::awaitable<T> not_held() {
  throw error(errc::not_held, "the lease is empty");
  co_return T();
}

}  // namespace holdfast::detail
