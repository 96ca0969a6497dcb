// SPDX-License-Identifier: BSL-1.0
#include "api/worker_record.hpp"

#include <utility>

namespace holdfast {
namespace detail {

void worker_record::begin(const std::shared_ptr<core>& client) {
  const std::lock_guard lock(guard_);
  if (now_.state != worker_state::stopped)
    throw error(errc::invalid_argument, "the monitor shows another keep_running()");
  client_ = client;
  now_ = {.state = worker_state::waiting};
  since_ = client_->now();
}

void worker_record::enter(worker_state state) {
  const std::lock_guard lock(guard_);
  now_.state = state;
  since_ = client_->now();
}

void worker_record::begin_run(std::string_view name) {
  const std::lock_guard lock(guard_);
  now_.name = name;
  now_.state = worker_state::running;
  since_ = client_->now();
  ++now_.runs;
}

void worker_record::note_failure(std::string text, const error_code& code, std::uint64_t in_row) {
  const std::lock_guard lock(guard_);
  ++now_.failures;
  now_.failures_in_row = in_row;
  now_.last_failure = std::move(text);
  now_.last_code = code;
}

void worker_record::note_success() {
  const std::lock_guard lock(guard_);
  now_.failures_in_row = 0;
}

void worker_record::stop() noexcept {
  const std::lock_guard lock(guard_);
  now_.state = worker_state::stopped;
  since_ = client_->now();
}

worker_status worker_record::status() const {
  const std::lock_guard lock(guard_);
  auto status = now_;
  status.elapsed = elapsed_now();
  return status;
}

std::chrono::nanoseconds worker_record::elapsed() const {
  const std::lock_guard lock(guard_);
  return elapsed_now();
}

std::chrono::nanoseconds worker_record::elapsed_now() const {
  return client_ ? client_->now() - since_ : std::chrono::nanoseconds::zero();
}

}  // namespace detail

worker_monitor::worker_monitor() : record_(std::make_shared<detail::worker_record>()) {}

worker_status worker_monitor::status() const { return record_->status(); }

}  // namespace holdfast
