// SPDX-License-Identifier: BSL-1.0
#include "blocking/stop_thread.hpp"

#include <utility>

namespace holdfast::blocking::detail {

stop_thread::stop_thread() : thread_([line = line_] { line->work(); }) {}

stop_thread::~stop_thread() {
  if (!thread_.joinable()) return;
  close();
  join();
}

void stop_thread::line::work() {
  std::unique_lock lock(guard);
  for (;;) {
    changed.wait(lock, [this] { return closed || !requested.empty(); });
    if (requested.empty()) return;
    stop_to_request next;
    next.splice(next.begin(), requested, requested.begin());
    lock.unlock();
    next.front().request_stop();
    if (here.elsewhere()) return;  // a callback has forked, and this is the child
    lock.lock();
  }
}

void stop_thread::request(stop_to_request stop) noexcept {
  {
    const std::lock_guard lock(line_->guard);
    if (line_->closed) return;
    line_->requested.splice(line_->requested.end(), stop);
  }
  line_->changed.notify_one();
}

void stop_thread::close() noexcept {
  {
    const std::lock_guard lock(line_->guard);
    line_->closed = true;
  }
  line_->changed.notify_one();
}

void stop_thread::join() noexcept {
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

}  // namespace holdfast::blocking::detail
