// SPDX-License-Identifier: BSL-1.0
#include <holdfast/blocking/keep_running.hpp>

#include <boost/asio/error.hpp>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include <holdfast/keep_running.hpp>

#include "blocking/access.hpp"
#include "blocking/stop_of_call.hpp"
#include "blocking/this_thread.hpp"

namespace holdfast::blocking::detail {
namespace {

using worker = holdfast::detail::worker;

std::unique_ptr<worker> worker_on(const any_lock& lock, const keep_options& options) {
  const holdfast::detail::worker_terms terms(options);
  if (const auto* const several = std::get_if<holdfast::any_of>(&lock))
    return std::make_unique<worker>(*several, terms);
  if (std::holds_alternative<holdfast::multi_lock>(lock))
    throw error(errc::invalid_argument, "keep_running() takes no multi_lock");
  return std::make_unique<worker>(plain(lock), terms);
}

/// The name of the lock that this thread has just taken.
std::string name_of_newest(lock_core& core) {
  const auto ask = [](const any_lease& granted) {
    const auto* const own = std::get_if<lease>(&granted);
    return own ? own->name() : std::string();
  };
  return core.newest(this_thread(), ask, std::string());
}

/// One run. False: the stop came before. `thrown`: by the function.
bool run_once(const std::shared_ptr<lock_core>& core, action_ref action, const std::stop_token& stop, worker& shown,
              std::exception_ptr& thrown) {
  shown.wait_for_lock();
  section section(core, stop);
  if (!section.had() || stop.stop_requested()) return false;
  shown.begin_run(name_of_newest(*core));
  {
    std::stop_source either;
    const auto request = [&either] { either.request_stop(); };
    const std::stop_callback on_loss(section.stop(), request), on_stop(stop, request);
    try {
      action.call(action.object, either.get_token());
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  section.end(thrown);
  return true;
}

void pause(lock_core& core, worker& shown, const std::stop_token& stop) {
  const auto waiting = std::make_shared<call>();
  const stop_of_call on_stop(core.home(), waiting, stop);
  core.home().run(this_thread(), shown.pause(), errc::shutting_down, waiting);
}

bool is_cancellation(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& failed) {
    return failed.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

}  // namespace

// The lock object may end, or be assigned to, while the worker waits. Its core then answers closed.
void run_kept(lockable& on, action_ref action, const std::stop_token& stop, const keep_options& options) {
  const auto core = access::core(on);
  const auto shown = worker_on(core->underlying(), options);
  for (bool first = true; !stop.stop_requested(); first = false) {
    std::exception_ptr failed, thrown;
    try {
      if (!first) pause(*core, *shown, stop);
      if (!run_once(core, action, stop, *shown, thrown)) return;
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed && stop.stop_requested()) {
      if (!thrown || is_cancellation(thrown)) return;
      std::rethrow_exception(thrown);
    }
    if (!shown->goes_on(failed)) return;
  }
}

}  // namespace holdfast::blocking::detail
