// SPDX-License-Identifier: BSL-1.0
#include "sync/command/ask_twice.hpp"

#include <memory>
#include <utility>

namespace holdfast::detail {
namespace {

class question : public std::enable_shared_from_this<question> {
 public:
  question(const environment& env, time_point end, copy_sender send, topology::handler done)
      : env_(env), end_(end), send_(std::move(send)), done_(std::move(done)) {}

  void ask() {
    send_(end_, [self = shared_from_this()](const outcome& outcome) { self->answered(outcome); });
  }

 private:
  void answered(const outcome& outcome) {
    // Unconfirmed with time left means a lost connection, and the next one may answer. A third copy would help only if
    // connections end one after the other.
    if (outcome.error == errc::unconfirmed && env_.now() < end_ && !std::exchange(again_, true)) return ask();
    done_(outcome);
  }

  // Both copies share one end, so the caller never waits longer than one timeout.
  const environment& env_;
  const time_point end_;
  const copy_sender send_;
  const topology::handler done_;
  bool again_ = false;
};

}  // namespace

void ask_twice(const environment& env, nanoseconds timeout, copy_sender send, topology::handler done) {
  std::make_shared<question>(env, env.now() + timeout, std::move(send), std::move(done))->ask();
}

}  // namespace holdfast::detail
