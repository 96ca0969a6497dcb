// SPDX-License-Identifier: BSL-1.0
#include <holdfast/testing/world.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "testing/stage.hpp"

namespace holdfast::testing {
namespace {

void check_forward(nanoseconds by) {
  if (by < nanoseconds::zero() || by > longest)
    throw std::invalid_argument(
        error_text("time goes on by 0 to ten years, and never back: not by " + std::to_string(by.count()) + " ns"));
}

}  // namespace

world::world(context where, std::size_t servers)
    : stage_(std::make_shared<stage>(
          stage::context{std::move(where.executor), std::move(where.poll), std::move(where.inside)}, servers)) {}

void world::run_until_idle() {
  stage_->check_outside("run_until_idle()");
  stage_->run_due();
}

void world::advance(nanoseconds by) {
  stage_->check_outside("advance()");
  check_forward(by);
  stage_->run_until(stage_->now() + by);
}

void world::pause_process(nanoseconds by) {
  check_forward(by);
  stage_->pause_until(stage_->now() + by);
}

nanoseconds world::elapsed() const noexcept { return stage_->now() - sim::virtual_clock().now(); }

void world::run_to_its_end(asio::awaitable<void> operation, nanoseconds at_most) {
  stage_->check_outside("run()");
  check_forward(at_most);
  struct outcome {
    bool done = false;
    std::exception_ptr failed{};
    asio::cancellation_signal stop{};
  };
  const auto end = stage_->now() + at_most;
  const auto result = std::make_shared<outcome>();
  asio::co_spawn(stage_->executor(), std::move(operation),
                 asio::bind_cancellation_slot(result->stop.slot(), [result](std::exception_ptr failed) {
                   result->done = true;
                   result->failed = failed;
                 }));
  const auto give_up = [&](const std::string& why) {
    result->stop.emit(asio::cancellation_type::terminal);
    stage_->run_due();
    throw std::logic_error(error_text("the coroutine has not ended: " + why));
  };
  stage_->run_due();
  while (!result->done) {
    const auto next = stage_->plan().next();
    if (!next) give_up("nothing will happen any more in virtual time; does it wait for a timer or a socket of Asio?");
    if (*next > end) {
      stage_->run_until(end);
      give_up("at_most, " + std::to_string(at_most / std::chrono::seconds(1)) + " s of virtual time, is over");
    }
    stage_->step();
  }
  if (result->failed) std::rethrow_exception(result->failed);
}

asio::awaitable<void> world::sleep_for(nanoseconds how_long) {
  check_forward(how_long);
  return [](std::shared_ptr<stage> on, time_point until) -> asio::awaitable<void> {
    // It never fires: the event in virtual time ends its wait.
    const auto alarm =
        std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    bool due = false;
    on->plan().at(until, [&due, waiting = std::weak_ptr(alarm)] {
      const auto sleeping = waiting.lock();
      if (!sleeping) return;
      due = true;
      sleeping->cancel();
    });
    error_code failed;
    co_await alarm->async_wait(asio::redirect_error(asio::use_awaitable, failed));
    if (!due) throw boost::system::system_error(asio::error::operation_aborted);
  }(stage_, stage_->now() + how_long);
}

void world::check() {
  run_until_idle();
  if (const auto text = stage_->held().text(stage_->now()); !text.empty()) throw std::logic_error(error_text(text));
}

}  // namespace holdfast::testing
