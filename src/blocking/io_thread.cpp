// SPDX-License-Identifier: BSL-1.0
#include "blocking/io_thread.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <string>

namespace holdfast::blocking::detail {
namespace {

constexpr int one_thread = 1;  // a concurrency hint: the context need not wake other threads

}  // namespace

io_thread::io_thread(config config)
    : grace_(config.command_timeout), observer_(config.observer), context_(std::in_place, one_thread),
      client_(context_->get_executor(), std::move(config)) {}

std::shared_ptr<io_thread> io_thread::start(config config) {
  const std::shared_ptr<io_thread> made(new io_thread(std::move(config)));
  made->thread_ = std::thread([self = made] { self->work(); });
  return made;
}

void io_thread::work() {
  {
    const auto busy = asio::make_work_guard(*context_);
    while (!ended_) {
      try {
        context_->run();
        if (!ended_) context_->restart();  // a user's handler has stopped it
      } catch (...) {
        // An exception of a user's handler: the locks have to go on.
      }
    }
  }
  { const std::lock_guard nobody_posts_any_more(guard_); }
  context_.reset();  // destroys the handlers that wait: their callers get `ended`, and their stops are handed over
  stops_.close();
}

void io_thread::stop() noexcept {
  ended_ = true;
  context_->stop();
}

void io_thread::check_open(errc ended) {
  if (!open_) throw error(ended, "the blocking client has ended");
  if (context_->get_executor().running_in_this_thread())
    throw error(make_error_code(boost::system::errc::resource_deadlock_would_occur),
                "a blocking call on the thread that has to work for it");
}

void io_thread::check_may_wait() {
  if (elsewhere()) throw error(errc::shutting_down, "the blocking client is the parent process's");
  const std::lock_guard lock(guard_);
  check_open(errc::shutting_down);
}

void io_thread::run(const owner& owner, asio::awaitable<void> operation, errc ended, const call_ptr& as) {
  if (elsewhere()) throw error(ended, "the blocking client is the parent process's");
  {
    const std::lock_guard lock(guard_);
    check_open(ended);
    // Spawned on the io thread: without memory co_spawn may end the process, and a post does not.
    asio::post(*context_, [to = answer(as, *context_), this, owner, op = std::move(operation)]() mutable {
      if (to.unwanted())
        return to(std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted)));
      asio::co_spawn(owner.bind(context_->get_executor()), std::move(op), std::move(to));
    });
  }
  as->wait(ended);
}

bool io_thread::start_operation(asio::awaitable<void> operation) {
  const std::lock_guard lock(guard_);
  if (!open_) return false;
  // Never inside the call: the operation may end at once, and its notification may call this object.
  asio::post(*context_,
             [this, op = std::move(operation)]() mutable { asio::co_spawn(*context_, std::move(op), asio::detached); });
  return true;
}

void io_thread::cancel(const call_ptr& call) {
  const std::lock_guard lock(guard_);
  if (open_) asio::post(*context_, [call] { call->cancel(); });
}

void io_thread::tell_foreign_unlock(const owner& owner, std::string_view name) {
  if (!observer_) return;
  const std::lock_guard lock(guard_);
  if (!open_) return;
  asio::post(*context_, [observer = observer_, owner, name = std::string(name)] {
    event event{.kind = event_kind::foreign_unlock, .name = name, .reason = errc::not_held};
    event.owner = owner;
    observer->on(event);
  });
}

void io_thread::begin_end() noexcept {
  const auto shut_down = [this]() noexcept {
    try {
      asio::co_spawn(*context_, client_.shutdown(grace_), [this](std::exception_ptr) { stop(); });
    } catch (...) {
      stop();  // no memory: held locks end with their TTL
    }
  };
  try {
    asio::dispatch(*context_, shut_down);
  } catch (...) {
    stop();
  }
}

void io_thread::end() noexcept {
  const bool on_it = thread_.get_id() == std::this_thread::get_id();
  {
    const std::lock_guard lock(guard_);
    if (!std::exchange(open_, false)) return;
    if (!on_it) begin_end();
  }
  if (!on_it) {
    thread_.join();
    return stops_.join();
  }
  begin_end();  // at once, and without the mutex: an observer that is notified of it may call this object
  thread_.detach();
  stops_.detach();
}

}  // namespace holdfast::blocking::detail
