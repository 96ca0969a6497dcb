// SPDX-License-Identifier: BSL-1.0
#include <holdfast/with_lock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "api/operation.hpp"

namespace holdfast::detail {
namespace {

/// What becomes of the lease when its body has ended.
enum class afterwards { unlocked, kept };

/// Where a run hears of its lease's end. The client's strand.
struct loss_listener {
  cancellable_ptr registered;
  bool over = false;  // nobody wants to hear any more
};

/// One body under its lease. Everything here happens on `on`, the body's strand: emitting a signal is not thread-safe.
struct guarded_run {
  guarded_run(lease& l, body_ref b, afterwards t, const asio::any_io_executor& home)
      : held(l), body(b), then(t), on(held.owner().bind(asio::make_strand(home))) {}

  void stop_for_loss(error_code why, const std::string& known_by) {
    loss = why;
    loss_known_by = known_by;
    stop.emit(asio::cancellation_type::terminal);
  }
  void stop_from_outside(asio::cancellation_type type) {
    stopped_from_outside = true;
    stop.emit(type);
  }

  lease& held;  // in the frame of the caller, who waits for the run
  const body_ref body;
  const afterwards then;
  const asio::any_io_executor on;
  const std::shared_ptr<loss_listener> listener = std::make_shared<loss_listener>();
  asio::cancellation_signal stop;
  std::optional<error_code> loss;
  std::string loss_known_by;
  bool stopped_from_outside = false;
};
using run_ptr = std::shared_ptr<guarded_run>;

constexpr const char* by_its_end = "the client was closed";

void stop_when_lost(const run_ptr& run) {
  const auto& record = access::record(run->held);
  if (!record->home || home_of(*record)->closed()) return run->stop_for_loss(errc::closed, by_its_end);
  auto heard = [id = std::weak_ptr(run), life = context_life::of(run->on)](error_code why,
                                                                           const std::string& known_by) {
    if (why == errc::not_held || why == asio::error::operation_aborted) return;
    const context_life::visit here(*life);
    if (!here) return;  // the run ends with its context
    const auto r = id.lock();
    if (!r) return;
    asio::post(r->on, [id, why, known_by] {
      if (const auto still = id.lock()) still->stop_for_loss(why, known_by);
    });
  };
  auto listen = [record, heard, listener = run->listener](auto& otherwise) {
    auto* const locks = home_of(*record)->locks();
    if (!locks) return otherwise();
    if (listener->over) return;
    listener->registered = locks->when_ended(record, [of = record->of, heard](error_code why) {
      heard(why, why == errc::closed ? by_its_end : of->end_detail());
    });
  };
  auto closed = [heard] { heard(errc::closed, by_its_end); };
  home_of(*record)->enter_later(errand(std::move(listen), std::move(closed)));
}

/// A lease that is kept may see many runs: each takes its listener away.
void stop_listening(const std::shared_ptr<lease_record>& record,
                    const std::shared_ptr<loss_listener>& listener) noexcept {
  try {
    home_of(*record)->enter_later([listener] {
      listener->over = true;
      if (const auto still = std::exchange(listener->registered, nullptr)) still->cancel();
    });
  } catch (...) {
    // No memory: the listener stays until the lease ends, and then finds nobody.
  }
}

/// Runs the body to its end; what it threw, or null. A co_spawn of its own gives it a cancellation state of its own.
asio::awaitable<std::exception_ptr> body_outcome(run_ptr run) {
  auto initiate = [](auto handler, run_ptr r) {
    auto ended = [handler = std::move(handler)](std::exception_ptr thrown) mutable {
      std::move(handler)(std::exception_ptr{}, std::move(thrown));
    };
    asio::co_spawn(r->on, r->body.call(r->body.object, r->held),
                   asio::bind_cancellation_slot(r->stop.slot(), std::move(ended)));
  };
  asio::use_awaitable_t<> token;
  return asio::async_initiate<asio::use_awaitable_t<>, void(std::exception_ptr, std::exception_ptr)>(
      std::move(initiate), token, std::move(run));
}

bool is_cancellation(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

[[noreturn]] void throw_loss(const guarded_run& run, const std::string& name, const std::string& when,
                             const std::exception_ptr& thrown) {
  const error lost(*run.loss, about(name, "lost " + when + ": " + run.loss_known_by));
  if (!thrown) throw lost;
  try {
    std::rethrow_exception(thrown);
  } catch (...) {
    std::throw_with_nested(lost);
  }
}

/// Runs the body under the watch for a loss, and throws that. What the body threw, or null.
asio::awaitable<std::exception_ptr> guarded(run_ptr run) {
  const std::string name = run->held.name();
  const auto record = access::record(run->held);  // the body may move the lease away
  stop_when_lost(run);
  const auto note_loss = [&run, &record] {
    if (run->loss || run->held.state() != lease_state::lost) return;
    run->loss = errc::lost;
    run->loss_known_by = record->of->cause_of_loss();
    if (record->home && !home_of(*record)->closed()) return;
    run->loss = errc::closed;  // the end of its client ends the lease before anybody is told
    run->loss_known_by = by_its_end;
  };
  note_loss();
  if (run->loss) throw_loss(*run, name, "before its section began", nullptr);
  const std::exception_ptr thrown = co_await body_outcome(run);
  if (run->then == afterwards::kept) stop_listening(record, run->listener);
  note_loss();
  if (run->loss) throw_loss(*run, name, "while its section ran", thrown);
  co_return thrown;
}

/// What unlock() throws, or null. Unconfirmed is not its caller's affair: who unlocks what is not exclusive any more
/// gets lost, so the section was, to its end; and the release goes on, under the observer's eyes.
asio::awaitable<std::exception_ptr> unlocked(lease& held) {
  try {
    co_await held.unlock();
  } catch (const error& failed) {
    if (failed.code() != errc::unconfirmed) co_return std::current_exception();
  } catch (...) {
    co_return std::current_exception();
  }
  co_return nullptr;
}

asio::awaitable<void> supervise(run_ptr run) {
  const std::exception_ptr thrown = co_await guarded(run);
  const auto state = run->held.state();
  const bool ours = state != lease_state::empty && state != lease_state::released;  // the body did not give it away
  std::exception_ptr not_unlocked;
  if (ours && run->then == afterwards::unlocked) {
    if (thrown && run->stopped_from_outside && is_cancellation(thrown))
      run->held = lease();  // the caller wants to leave: released in the background
    else
      not_unlocked = co_await unlocked(run->held);
  }
  if (thrown) std::rethrow_exception(thrown);  // its own failure matters more; the observer has heard of the other
  if (not_unlocked) std::rethrow_exception(not_unlocked);
}

/// supervise() on the body's strand, and back. Not cancelled itself: cancellation goes to the body, and the unlock
/// after it is awaited.
asio::awaitable<void> supervised(lease& held, body_ref body, afterwards then) {
  auto initiate = [](auto handler, lease* l, body_ref b, afterwards t) {
    const asio::any_io_executor home = asio::get_associated_executor(handler);
    auto slot = asio::get_associated_cancellation_slot(handler);
    const auto run = std::make_shared<guarded_run>(*l, b, t, home);
    if (slot.is_connected())
      slot.assign([id = std::weak_ptr(run)](asio::cancellation_type type) {
        const auto r = id.lock();  // the slot may outlive the run, and its context
        if (!r) return;
        asio::post(r->on, [id, type] {
          if (const auto still = id.lock()) still->stop_from_outside(type);
        });
      });
    auto finished = [slot, home, handler = std::move(handler)](std::exception_ptr failure) mutable {
      auto on_return = [slot, handler = std::move(handler), failure = std::move(failure)]() mutable {
        if (slot.is_connected()) slot.clear();
        std::move(handler)(std::move(failure));
      };
      asio::post(home, std::move(on_return));
    };
    asio::co_spawn(run->on, supervise(run), std::move(finished));
  };
  asio::use_awaitable_t<> token;
  return asio::async_initiate<asio::use_awaitable_t<>, void(std::exception_ptr)>(std::move(initiate), token, &held,
                                                                                 body, then);
}

template <class Lock>
asio::awaitable<void> locked_run(Lock m, body_ref body, lock_options options) {
  lease held = co_await m.lock(options);
  co_await supervised(held, body, afterwards::unlocked);
}

template <class Lock>
asio::awaitable<bool> try_locked_run(Lock m, milliseconds wait, body_ref body, lock_options options) {
  std::optional<lease> held = co_await m.try_lock_for(wait, options);
  if (held) co_await supervised(*held, body, afterwards::unlocked);
  co_return held.has_value();
}

}  // namespace

asio::awaitable<void> run_locked(mutex m, body_ref body, lock_options options) {
  return locked_run(std::move(m), body, options);
}

asio::awaitable<void> run_locked(any_of m, body_ref body, lock_options options) {
  return locked_run(std::move(m), body, options);
}

asio::awaitable<bool> try_run_locked(mutex m, milliseconds wait, body_ref body, lock_options options) {
  return try_locked_run(std::move(m), wait, body, options);
}

asio::awaitable<bool> try_run_locked(any_of m, milliseconds wait, body_ref body, lock_options options) {
  return try_locked_run(std::move(m), wait, body, options);
}

asio::awaitable<void> run_under(lease& held, body_ref body) {
  const auto state = held.state();
  if (state == lease_state::empty) throw error(errc::not_held, "the lease is empty");
  if (state == lease_state::released) throw error(errc::not_held, about(held.name(), "released"));
  co_await supervised(held, body, afterwards::kept);
}

}  // namespace holdfast::detail
