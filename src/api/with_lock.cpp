// SPDX-License-Identifier: BSL-1.0
#include <holdfast/with_lock.hpp>

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/on_strand.hpp"

namespace holdfast::detail {
namespace {

/// What becomes of the lease when its body has ended.
enum class afterwards { unlocked, kept };

/// Where a run hears of its lease's end. The client's strand.
struct loss_listener {
  cancellable_ptr registered;
  bool over = false;  // nobody wants to hear any more
};

/// Of which lock, and how it is known.
struct loss {
  error_code why;
  std::string name, known_by;
};

/// One body under its lease. Everything here happens on `on`, the body's strand: emitting a signal is not thread-safe.
/// `Held`: lease or multi_lease.
template <class Held>
struct guarded_run {
  guarded_run(Held& l, basic_body_ref<Held> b, afterwards t, const asio::any_io_executor& home)
      : held(l), records(access::records(l)), body(b), then(t), on(held.owner().bind(asio::make_strand(home))),
        listeners(records.size()) {
    for (auto& listener : listeners) listener = std::make_shared<loss_listener>();
  }

  void stop_for_loss(loss what) {
    lost = std::move(what);
    stop.emit(asio::cancellation_type::terminal);
  }
  void stop_from_outside(asio::cancellation_type type) {
    stopped_from_outside = true;
    stop.emit(type);
  }

  Held& held;                                                // in the frame of the caller, who waits for the run
  const std::vector<std::shared_ptr<lease_record>> records;  // the body may move the lease away
  const basic_body_ref<Held> body;
  const afterwards then;
  const asio::any_io_executor on;
  std::vector<std::shared_ptr<loss_listener>> listeners;  // one for each record
  asio::cancellation_signal stop;
  std::optional<loss> lost;
  bool stopped_from_outside = false;
};
template <class Held>
using run_ptr = std::shared_ptr<guarded_run<Held>>;

constexpr const char* by_its_end = "the client was closed";

template <class Held>
void stop_when_lost(const run_ptr<Held>& run, const std::shared_ptr<lease_record>& record,
                    const std::shared_ptr<loss_listener>& listener) {
  const auto& name = record->of->keys()->name;
  if (!record->home || home_of(*record)->closed()) return run->stop_for_loss({errc::closed, name, by_its_end});
  auto heard = [id = std::weak_ptr(run), life = context_life::of(run->on), name](error_code why,
                                                                                 const std::string& known_by) {
    if (why == errc::not_held || why == asio::error::operation_aborted) return;
    const context_life::visit here(*life);
    if (!here) return;  // the run ends with its context
    const auto r = id.lock();
    if (!r) return;
    asio::post(r->on, [id, what = loss{why, name, known_by}] {
      if (const auto still = id.lock()) still->stop_for_loss(what);
    });
  };
  auto listen = [record, heard, listener](auto& otherwise) {
    auto* const locks = home_of(*record)->locks();
    if (!locks) return otherwise();
    if (listener->over) return;
    listener->registered = locks->when_ended(record, [of = record->of, heard](error_code why) {
      heard(why, why == errc::closed ? by_its_end : of->end_detail());
    });
  };
  auto closed = [heard] { heard(errc::closed, by_its_end); };
  home_of(*record)->enter_later(strand_task(std::move(listen), std::move(closed)));
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
template <class Held>
asio::awaitable<std::exception_ptr> body_outcome(run_ptr<Held> run) {
  auto initiate = [](auto handler, run_ptr<Held> r) {
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

[[noreturn]] void throw_loss(const loss& what, const std::string& when, const std::exception_ptr& thrown) {
  const error lost(what.why, about(what.name, "lost " + when + ": " + what.known_by));
  if (!thrown) throw lost;
  try {
    std::rethrow_exception(thrown);
  } catch (...) {
    std::throw_with_nested(lost);
  }
}

/// Also one that nobody has told yet.
template <class Held>
void note_loss(guarded_run<Held>& run) {
  if (run.lost || run.held.state() != lease_state::lost) return;
  const auto record = std::find_if(run.records.begin(), run.records.end(),
                                   [](const auto& r) { return r->state() == lease_state::lost; });
  if (record == run.records.end()) return;  // the body has put another lease there
  const auto& r = **record;
  const auto& name = r.of->keys()->name;
  if (r.home && !home_of(r)->closed())
    run.lost = {errc::lost, name, r.of->cause_of_loss()};
  else
    run.lost = {errc::closed, name, by_its_end};  // the end of its client ends the lease before anybody is told
}

/// Runs the body under the watch for a loss, and throws that. What the body threw, or null.
template <class Held>
asio::awaitable<std::exception_ptr> guarded(run_ptr<Held> run) {
  for (std::size_t n = 0; n < run->records.size(); ++n) stop_when_lost(run, run->records[n], run->listeners[n]);
  note_loss(*run);
  if (run->lost) throw_loss(*run->lost, "before its section began", nullptr);
  const std::exception_ptr thrown = co_await body_outcome(run);
  if (run->then == afterwards::kept)
    for (std::size_t n = 0; n < run->records.size(); ++n) stop_listening(run->records[n], run->listeners[n]);
  note_loss(*run);
  if (run->lost) throw_loss(*run->lost, "while its section ran", thrown);
  co_return thrown;
}

/// What unlock() throws, or null. Unconfirmed is not its caller's affair: who unlocks what is not exclusive any more
/// gets lost, so the section was, to its end; and the release goes on, under the observer's eyes.
template <class Held>
asio::awaitable<std::exception_ptr> unlocked(Held& held) {
  try {
    co_await held.unlock();
  } catch (const error& failed) {
    if (failed.code() != errc::unconfirmed) co_return std::current_exception();
  } catch (...) {
    co_return std::current_exception();
  }
  co_return nullptr;
}

template <class Held>
asio::awaitable<void> supervise(run_ptr<Held> run) {
  const std::exception_ptr thrown = co_await guarded(run);
  const auto state = run->held.state();
  const bool ours = state != lease_state::empty && state != lease_state::released;  // the body did not give it away
  std::exception_ptr not_unlocked;
  if (ours && run->then == afterwards::unlocked) {
    if (thrown && run->stopped_from_outside && is_cancellation(thrown))
      run->held = Held();  // the caller wants to leave: released in the background
    else
      not_unlocked = co_await unlocked(run->held);
  }
  if (thrown) std::rethrow_exception(thrown);  // its own failure matters more; the observer has heard of the other
  if (not_unlocked) std::rethrow_exception(not_unlocked);
}

/// supervise() on the body's strand, and back. Not cancelled itself: cancellation goes to the body, and the unlock
/// after it is awaited.
template <class Held>
asio::awaitable<void> supervised(Held& held, basic_body_ref<Held> body, afterwards then) {
  auto initiate = [](auto handler, Held* l, basic_body_ref<Held> b, afterwards t) {
    const asio::any_io_executor home = asio::get_associated_executor(handler);
    auto slot = asio::get_associated_cancellation_slot(handler);
    const auto run = std::make_shared<guarded_run<Held>>(*l, b, t, home);
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

template <class Lock, class Held>
asio::awaitable<void> locked_run(Lock m, basic_body_ref<Held> body, lock_options options) {
  Held held = co_await m.lock(options);
  co_await supervised(held, body, afterwards::unlocked);
}

template <class Lock, class Held>
asio::awaitable<bool> try_locked_run(Lock m, milliseconds wait, basic_body_ref<Held> body, lock_options options) {
  std::optional<Held> held = co_await m.try_lock_for(wait, options);
  if (held) co_await supervised(*held, body, afterwards::unlocked);
  co_return held.has_value();
}

template <class Held>
asio::awaitable<void> run_under_held(Held& held, basic_body_ref<Held> body) {
  const auto state = held.state();
  if (state == lease_state::empty) throw error(errc::not_held, "the lease is empty");
  if (state == lease_state::released)
    throw error(errc::not_held, about(access::records(held).front()->of->keys()->name, "released"));
  co_await supervised(held, body, afterwards::kept);
}

}  // namespace

asio::awaitable<void> run_locked(mutex m, body_ref body, lock_options options) {
  return locked_run(std::move(m), body, options);
}

asio::awaitable<void> run_locked(any_of m, body_ref body, lock_options options) {
  return locked_run(std::move(m), body, options);
}

asio::awaitable<void> run_locked(multi_lock m, multi_body_ref body, lock_options options) {
  return locked_run(std::move(m), body, options);
}

asio::awaitable<bool> try_run_locked(mutex m, milliseconds wait, body_ref body, lock_options options) {
  return try_locked_run(std::move(m), wait, body, options);
}

asio::awaitable<bool> try_run_locked(any_of m, milliseconds wait, body_ref body, lock_options options) {
  return try_locked_run(std::move(m), wait, body, options);
}

asio::awaitable<bool> try_run_locked(multi_lock m, milliseconds wait, multi_body_ref body, lock_options options) {
  return try_locked_run(std::move(m), wait, body, options);
}

asio::awaitable<void> run_under(lease& held, body_ref body) { return run_under_held(held, body); }

asio::awaitable<void> run_under(multi_lease& held, multi_body_ref body) { return run_under_held(held, body); }

}  // namespace holdfast::detail
