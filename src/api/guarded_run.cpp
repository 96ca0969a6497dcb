// SPDX-License-Identifier: BSL-1.0
#include "api/guarded_run.hpp"

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

/// A run's registration for the end of one lease. The client's strand.
struct loss_listener {
  cancellable_ptr registered;
  bool over = false;  // the run has ended
};

/// The loss of the lock `name`, and its evidence.
struct loss {
  error_code why;
  std::string name, known_by;
};

/// One body under its lease. Everything here happens on `on`, the body's strand: emitting a signal is not thread-safe.
template <class Held>
struct guarded_run {
  guarded_run(Held& guarded, basic_body_ref<Held> guarded_body, afterwards end, const asio::any_io_executor& home)
      : held(guarded), records(access::records(guarded)), body(guarded_body), then(end),
        on(held.owner().bind(asio::make_strand(home))), listeners(records.size()) {
    for (auto& listener : listeners) listener = std::make_shared<loss_listener>();
  }

  void stop_for_loss(loss found) {
    lost = std::move(found);
    stop.emit(asio::cancellation_type::terminal);
  }
  void stop_from_outside(asio::cancellation_type type) {
    stopped_from_outside = true;
    stop.emit(type);
  }

  Held& held;                                                // in the frame of the caller, which waits for the run
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

/// Reports the loss of its lease to a run, from any thread. It keeps neither the run nor its context alive.
template <class Held>
class loss_report {
 public:
  loss_report(const run_ptr<Held>& run, std::string name)
      : run_(run), life_(context_life::of(run->on)), name_(std::move(name)) {}

  /// An end that is no loss is ignored.
  void operator()(error_code why, const std::string& known_by) const {
    if (why == errc::not_held || why == asio::error::operation_aborted) return;
    const context_life::visit here(*life_);
    if (!here) return;  // the run ends with its context
    const auto run = run_.lock();
    if (!run) return;
    asio::post(run->on, [id = run_, found = loss{why, name_, known_by}] {
      if (const auto still = id.lock()) still->stop_for_loss(found);
    });
  }

 private:
  std::weak_ptr<guarded_run<Held>> run_;
  std::shared_ptr<context_life> life_;
  std::string name_;
};

template <class Held>
void stop_when_lost(const run_ptr<Held>& run, const std::shared_ptr<lease_record>& record,
                    const std::shared_ptr<loss_listener>& listener) {
  const auto& name = record->of->keys()->name;
  if (!record->home || home_of(*record)->closed()) return run->stop_for_loss({errc::closed, name, by_its_end});
  const loss_report report(run, name);
  auto on_end = [report, of = record->of](error_code why) {
    report(why, why == errc::closed ? by_its_end : of->end_detail());
  };
  auto listen = [record, listener, on_end](auto& otherwise) {
    auto* const locks = home_of(*record)->locks();
    if (!locks) return otherwise();
    if (!listener->over) listener->registered = locks->when_ended(record, on_end);
  };
  auto closed = [report] { report(errc::closed, by_its_end); };
  home_of(*record)->enter_later(strand_task(std::move(listen), std::move(closed)));
}

/// A lease that is kept may have many runs: each removes its listener.
void stop_listening(const std::shared_ptr<lease_record>& record,
                    const std::shared_ptr<loss_listener>& listener) noexcept {
  try {
    home_of(*record)->enter_later([listener] {
      listener->over = true;
      if (const auto still = std::exchange(listener->registered, nullptr)) still->cancel();
    });
  } catch (...) {
    // No memory: the listener stays until the lease ends, and then finds no run.
  }
}

/// Runs the body to its end; the exception that it threw, or null. A co_spawn of its own gives it a cancellation state
/// of its own.
template <class Held>
asio::awaitable<std::exception_ptr> body_outcome(run_ptr<Held> run) {
  auto initiate = [](auto handler, run_ptr<Held> running) {
    auto ended = [handler = std::move(handler)](std::exception_ptr thrown) mutable {
      std::move(handler)(std::exception_ptr{}, std::move(thrown));
    };
    asio::co_spawn(running->on, running->body.call(running->body.object, running->held),
                   asio::bind_cancellation_slot(running->stop.slot(), std::move(ended)));
  };
  asio::use_awaitable_t<> token;
  return asio::async_initiate<asio::use_awaitable_t<>, void(std::exception_ptr, std::exception_ptr)>(
      std::move(initiate), token, std::move(run));
}

bool is_cancellation(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& failure) {
    return failure.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

[[noreturn]] void throw_loss(const loss& found, const std::string& when, const std::exception_ptr& thrown) {
  const error lost(found.why, about(found.name, "lost " + when + ": " + found.known_by));
  if (!thrown) throw lost;
  try {
    std::rethrow_exception(thrown);
  } catch (...) {
    std::throw_with_nested(lost);
  }
}

/// Notes a loss that was not reported yet, too.
template <class Held>
void note_loss(guarded_run<Held>& run) {
  if (run.lost || run.held.state() != lease_state::lost) return;
  const auto found = std::find_if(run.records.begin(), run.records.end(),
                                  [](const auto& each) { return each->state() == lease_state::lost; });
  if (found == run.records.end()) return;  // the body has put another lease there
  const auto& record = **found;
  const auto& name = record.of->keys()->name;
  if (record.home && !home_of(record)->closed())
    run.lost = {errc::lost, name, record.of->cause_of_loss()};
  else
    run.lost = {errc::closed, name, by_its_end};  // the end of its client ends the lease before any notification
}

/// Runs the body under the watch for a loss, and throws a loss. Returns the exception of the body, or null.
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

/// The exception of unlock(), or null. Unconfirmed is none: a section that was not exclusive to its end gets lost, and
/// the release goes on, under the observer's eyes.
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

}  // namespace

/// supervise() on the body's strand, and back.
template <class Held>
asio::awaitable<void> run_guarded(Held& held, basic_body_ref<Held> body, afterwards then) {
  auto initiate = [](auto handler, Held* guarded, basic_body_ref<Held> guarded_body, afterwards end) {
    const asio::any_io_executor home = asio::get_associated_executor(handler);
    auto slot = asio::get_associated_cancellation_slot(handler);
    const auto run = std::make_shared<guarded_run<Held>>(*guarded, guarded_body, end, home);
    if (slot.is_connected())
      slot.assign([id = std::weak_ptr(run)](asio::cancellation_type type) {
        const auto running = id.lock();  // the slot may outlive the run, and its context
        if (!running) return;
        asio::post(running->on, [id, type] {
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

template asio::awaitable<void> run_guarded(lease&, basic_body_ref<lease>, afterwards);
template asio::awaitable<void> run_guarded(multi_lease&, basic_body_ref<multi_lease>, afterwards);

}  // namespace holdfast::detail
